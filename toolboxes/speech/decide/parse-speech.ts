/** Checks the body of a request for speech. Pure. */
import { KOKORO_LANGUAGES } from './describe-model.ts';
import { accept, invalid, refuse, type Outcome } from './refusal.ts';
import { isSpeakable, plainText, splitSentences } from './split-sentences.ts';

export type SpeechFormat = 'mp3' | 'opus' | 'aac' | 'flac' | 'wav' | 'pcm';
const SPEECH_FORMATS: readonly SpeechFormat[] = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'];
/** What can be written without another program. */
export const isOwnFormat = (format: SpeechFormat): format is 'wav' | 'pcm' => format === 'wav' || format === 'pcm';

export const CONTENT_TYPES: Readonly<Record<SpeechFormat, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg; codecs=opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
};

export interface Speech {
  readonly sentences: readonly [string, ...string[]];
  readonly characters: number;
  readonly voice: string | undefined;
  /** Empty: that of the voice. */
  readonly language: string;
  readonly format: SpeechFormat;
  /** 1 is the usual speed. */
  readonly speed: number;
  readonly events: boolean;
  /** A recording of the voice to imitate. */
  readonly sample: { readonly bytes: Buffer; readonly text: string } | undefined;
}

/** Bytes of the recording of a voice: 30 seconds in one channel with 48 kHz and 16 bits. */
export const SAMPLE_BYTES = 3_000_000;
const SAMPLE_CHARACTERS = Math.ceil(SAMPLE_BYTES / 3) * 4;
const SAMPLE_TEXT_CHARACTERS = 1000;

export interface SpeakerAbilities {
  /** Whether a program that writes compressed formats was found. */
  readonly compression: boolean;
  readonly maxInput: number;
}

export function parseSpeech(text: string, { compression, maxInput }: SpeakerAbilities): Outcome<Speech> {
  const body = parseObject(text);
  if (body === undefined) return refuse({ status: 400, code: 'request.invalid', message: 'Send a JSON object as the body' });
  const { input } = body;
  if (typeof input !== 'string') return invalid('input', 'Set "input" to the text to speak');
  if (input.length > maxInput) {
    const message = `Send at most ${maxInput} characters in "input", not ${input.length}`;
    return refuse({ status: 413, code: 'request.too_large', message, param: 'input' });
  }
  const format = SPEECH_FORMATS.find((candidate) => candidate === (body['response_format'] ?? (compression ? 'mp3' : 'wav')));
  if (format === undefined) return invalid('response_format', `Set "response_format" to one of ${SPEECH_FORMATS.join(', ')}`);
  if (!compression && !isOwnFormat(format)) {
    const message = `Install ffmpeg on the machine of the server, or set "response_format" to "wav" or "pcm": "${format}" needs ffmpeg`;
    return refuse({ status: 422, code: 'audio.format_unsupported', message, param: 'response_format' });
  }
  const speed = body['speed'] ?? 1;
  if (typeof speed !== 'number' || !(speed >= 0.25 && speed <= 4)) return invalid('speed', 'Set "speed" to a number from 0.25 to 4');
  const stream = body['stream_format'] ?? 'audio';
  if (stream !== 'audio' && stream !== 'sse') return invalid('stream_format', 'Set "stream_format" to "audio" or "sse"');
  const voice = parseVoice(body['voice']);
  if (!voice.ok) return voice;
  const language = parseLanguage(body['lang_code']);
  if (!language.ok) return language;
  const sample = parseSample(body);
  if (!sample.ok) return sample;
  const [first, ...more] = isSpeakable(input) ? splitSentences(plainText(input)) : [];
  if (first === undefined) return invalid('input', 'Set "input" to a text with at least one letter or digit');
  return accept({
    sentences: [first, ...more],
    characters: input.length,
    voice: voice.value,
    language: language.value,
    format,
    speed,
    events: stream === 'sse',
    sample: sample.value,
  });
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** OpenAI's clients send a name, or an object with an id. */
function parseVoice(value: unknown): Outcome<string | undefined> {
  if (value === undefined || value === null || value === '') return accept(undefined);
  if (typeof value === 'string') return accept(value);
  if (typeof value === 'object' && 'id' in value && typeof value.id === 'string') return accept(value.id);
  return invalid('voice', 'Set "voice" to the name of a voice');
}

/** Kokoro-FastAPI names this field so, and takes the first letters of voices. */
function parseLanguage(value: unknown): Outcome<string> {
  if (value === undefined || value === null || value === '') return accept('');
  if (typeof value !== 'string' || !/^[a-z]{1,3}(?:[-_][a-z0-9]{2,8})?$/i.test(value))
    return invalid('lang_code', 'Set "lang_code" to a code such as "en-us", or to the first letter of a voice');
  const code = value.toLowerCase().replace('_', '-');
  return accept(KOKORO_LANGUAGES[code] ?? code);
}

const DATA_ADDRESS = /^data:[a-z0-9.+/-]{1,80}(?:;[a-z0-9.=+-]{1,80}){0,4},/i;
const BASE64 = /^[a-z0-9+/_-]+={0,2}$/i;

/** Other servers give these fields the same names. An address of a recording elsewhere is refused: the server fetches nothing. */
function parseSample(body: Readonly<Record<string, unknown>>): Outcome<Speech['sample']> {
  const { ref_audio: audio, ref_text: text = '' } = body;
  if (audio === undefined || audio === null) return accept(undefined);
  if (typeof text !== 'string' || text.length > SAMPLE_TEXT_CHARACTERS)
    return invalid('ref_text', `Set "ref_text" to what is said in the recording, with at most ${SAMPLE_TEXT_CHARACTERS} characters`);
  const encoded = typeof audio === 'string' ? audio.replace(DATA_ADDRESS, '') : '';
  if (encoded.length > SAMPLE_CHARACTERS) {
    const message = `Send a recording of at most ${SAMPLE_BYTES} bytes in "ref_audio"`;
    return refuse({ status: 413, code: 'request.too_large', message, param: 'ref_audio' });
  }
  if (!BASE64.test(encoded)) return invalid('ref_audio', 'Set "ref_audio" to the bytes of a recording in Base64');
  return accept({ bytes: Buffer.from(encoded, 'base64'), text });
}
