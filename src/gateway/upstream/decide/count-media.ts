/** What an answer holds besides tokens: seconds of sound, and images. Pure; `text` has one character per byte. */
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import type { Usage } from './judge-answer.ts';

/** What is not known is absent. */
export interface Media {
  /** Heard in a recording, or spoken. */
  readonly audioSeconds?: number | undefined;
  readonly images?: number | undefined;
}

/** What is known of an answer. */
export interface AnswerCounts {
  readonly tokens: Usage | undefined;
  readonly media: Media | undefined;
}

export type MediaKind = 'heard' | 'spoken' | 'drawn';

const KINDS: Partial<Record<Capability, MediaKind>> = { transcription: 'heard', translation: 'heard', speech: 'spoken', image: 'drawn' };

export const mediaKindOf = (capability: Capability): MediaKind | undefined => KINDS[capability];

/** `usage` of transcripts, and of the last event of a stream. */
const SECONDS = /"seconds"\s*:\s*(\d{1,7}(?:\.\d{1,20})?)(?![\d.])/;
/** The field of a verbose transcript stands before its text. */
const DURATION = /^\s*\{[^[{]{0,200}?"duration"\s*:\s*"?(\d{1,7}(?:\.\d{1,20})?)(?![\d.])/;

/** `end`: the end of the body. */
export function secondsIn(end: string): number | undefined {
  const at = end.lastIndexOf('"usage"');
  return at === -1 ? undefined : numberOf(SECONDS, end.slice(at));
}

/** `begin`: the first piece of the body of a transcript. */
export const durationIn = (begin: string): number | undefined => numberOf(DURATION, begin);

/** The speech server says it of transcripts that are no JSON. */
const SECONDS_HEADER = 'x-svc-audio-seconds';

/** `headers`: name, value, name, value. */
export function secondsInHead(headers: readonly string[]): number | undefined {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === SECONDS_HEADER);
  const value = at === -1 ? '' : (headers[at + 1] ?? '');
  return /^\d{1,7}(?:\.\d{1,20})?$/.test(value) ? Number(value) : undefined;
}

function numberOf(pattern: RegExp, text: string): number | undefined {
  const found = pattern.exec(text);
  return found === null ? undefined : Number(found[1]);
}

/** 16-bit samples of one channel at 24 kHz, as OpenAI has them. */
const PCM = { headBytes: 0, bytesPerSecond: 48_000 };
const WAV_HEAD = 44;
const BYTE_RATE_AT = 28;
/** A telephone's has 8000. With less, a small file would be hours. */
const LEAST_RATE = 1000;

export interface SoundForm {
  readonly headBytes: number;
  readonly bytesPerSecond: number;
}

/** Undefined if the length of the sound cannot be told from the number of its bytes. */
export function soundFormOf(contentType: string, begin: Buffer): SoundForm | undefined {
  if (/^audio\/(?:pcm|l16)\b/i.test(contentType)) return PCM;
  if (begin.length < WAV_HEAD || begin.toString('latin1', 0, 4) !== 'RIFF' || begin.toString('latin1', 8, 16) !== 'WAVEfmt ')
    return undefined;
  const bytesPerSecond = begin.readUInt32LE(BYTE_RATE_AT);
  return bytesPerSecond < LEAST_RATE ? undefined : { headBytes: WAV_HEAD, bytesPerSecond };
}

/** More in one answer are nonsense. */
export const MOST_IMAGES = 1000;
/** Images of an answer, and those of a stream that are complete. Base64 has no quotes. */
export const IMAGE_MARKS = ['"b64_json":', '"url":'] as const;
export const COMPLETED_MARK = '.completed"';
