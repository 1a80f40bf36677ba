/** The committed utterances of a session, transcribed one at a time, so that transcripts keep their order. */
import type { Transcription } from './decide/session-settings.ts';
import { transcribeSound, type InnerCaller, type SoundToTranscribe } from '../ask-gateway.ts';
import type { BufferBudget } from '../../../gateway/traffic/traffic.ts';
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import type { Settings } from '../../../schema/settings/settings.ts';

interface Utterance {
  readonly item: string;
  readonly pcm: Buffer;
  readonly rate: number;
  /** Undefined: it is not transcribed. */
  readonly transcription: Transcription | undefined;
  /** The words that were sent before it was complete. */
  readonly sent: string;
}

interface UtteranceQueueOptions extends InnerCaller {
  readonly send: (event: object) => void;
  readonly onDone: () => void;
  /** Ends the session. */
  readonly signal: AbortSignal;
}

const SAMPLE_BYTES = 2;

export type UtteranceQueue = ReturnType<typeof createUtteranceQueue>;

export function createUtteranceQueue(options: UtteranceQueueOptions) {
  const { signal, onDone } = options;
  const queue: Utterance[] = [];
  let bytes = 0;
  let working = false;

  async function work(): Promise<void> {
    working = true;
    for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
      if (next.transcription !== undefined) await transcribe(next, next.transcription, options);
      bytes -= next.pcm.length;
      working = queue.length > 0;
      onDone();
    }
    working = false;
  }

  return {
    add(utterance: Utterance): void {
      queue.push(utterance);
      bytes += utterance.pcm.length;
      if (!working) void work();
    },
    bytes: (): number => bytes,
    isBusy: (): boolean => working,
  };
}

async function transcribe(
  { item, pcm, rate, sent }: Utterance,
  transcription: Transcription,
  options: UtteranceQueueOptions,
): Promise<void> {
  const { signal, send } = options;
  const transcript = await transcribeSound({ pcm, rate, ...transcription }, options, signal).catch(() => undefined);
  // The client has left.
  if (transcript === undefined || signal.aborted) return;
  const about = { item_id: item, content_index: 0 };
  if (!transcript.ok) return send({ type: 'conversation.item.input_audio_transcription.failed', ...about, error: transcript.error });
  const delta = restAfter(sent, transcript.text);
  if (delta !== '') send({ type: 'conversation.item.input_audio_transcription.delta', ...about, delta });
  const usage = { type: 'duration', seconds: pcm.length / SAMPLE_BYTES / rate };
  send({ type: 'conversation.item.input_audio_transcription.completed', ...about, transcript: transcript.text, usage });
}

interface EarlyWordsOptions extends InnerCaller, Pick<UtteranceQueueOptions, 'send'> {
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

interface Words {
  readonly sent: string;
  readonly before: string;
  readonly askedMs: number;
  readonly tookMs: number;
  readonly answeredAt: number;
}

const NO_WORDS: Words = { sent: '', before: '', askedMs: 0, tookMs: 0, answeredAt: Number.NEGATIVE_INFINITY };

export type EarlyWords = ReturnType<typeof createEarlyWords>;

/** Requests the words of uncommitted sound, and sends those that are certain. */
export function createEarlyWords({ now, send, ...deps }: EarlyWordsOptions) {
  let words = NO_WORDS;
  let asking: AbortController | undefined;

  return {
    /** It is time to ask about this much pending sound. */
    isTime: (soundMs: number) =>
      asking === undefined && wantsPartial({ soundMs, askedMs: words.askedMs, tookMs: words.tookMs, sinceMs: now() - words.answeredAt }),
    async ask(item: string, soundMs: number, sound: SoundToTranscribe): Promise<void> {
      const own = new AbortController();
      asking = own;
      const beganAt = now();
      const transcript = await transcribeSound(sound, deps, own.signal).catch(() => undefined);
      // It was committed or cleared meanwhile.
      if (asking !== own) return;
      asking = undefined;
      const answeredAt = now();
      const tookMs = answeredAt - beganAt;
      words = { ...words, askedMs: soundMs, tookMs, answeredAt };
      if (transcript?.ok !== true) return;
      const delta = agreedDelta(words.sent, words.before, transcript.text);
      words = { ...words, sent: words.sent + delta, before: transcript.text };
      if (delta !== '') send({ type: 'conversation.item.input_audio_transcription.delta', item_id: item, content_index: 0, delta });
    },
    /** Returns what was sent of the sound, which has been committed or cleared. Its cost is remembered. */
    end(): string {
      const { sent, tookMs, answeredAt } = words;
      words = { ...NO_WORDS, tookMs, answeredAt };
      asking?.abort();
      asking = undefined;
      return sent;
    },
  };
}

export interface MemoryDeps {
  readonly budget: Pick<BufferBudget, 'reserve' | 'release'>;
  readonly settings: Pick<Settings, 'SVC_AUDIO_LIMIT'>;
}

/** WAV header before the samples. */
const FILE_HEAD_BYTES = 44;

/** The sound of one session is bounded by `SVC_AUDIO_LIMIT`, and together with bodies by `SVC_BUFFER_LIMIT`. */
export function createSessionMemory({ budget, settings }: MemoryDeps) {
  let reserved = 0;
  return {
    /** Reserves memory for more sound, where `held` bytes are kept already. Returns why there is none. */
    reserve(bytes: number, held: number): { readonly code: ErrorCode; readonly message: string } | undefined {
      if (held + bytes > settings.SVC_AUDIO_LIMIT - FILE_HEAD_BYTES) {
        const message = 'The session holds as much sound as "SVC_AUDIO_LIMIT" permits: commit or clear it, or wait for its transcripts';
        return { code: 'request.too_large', message };
      }
      if (!budget.reserve(bytes))
        return { code: 'server.overloaded', message: 'The memory for bodies is full ("SVC_BUFFER_LIMIT"): send the sound again later' };
      reserved += bytes;
      return undefined;
    },
    /** Releases the memory reserved beyond the kept bytes. */
    keep(bytes: number): void {
      const more = Math.max(0, reserved - bytes);
      budget.release(more);
      reserved -= more;
    },
  };
}

interface PartialFacts {
  readonly soundMs: number;
  /** Pending sound at the last request; 0 before. */
  readonly askedMs: number;
  /** Duration of the last request; 0 before. */
  readonly tookMs: number;
  /** Time since the last answer. */
  readonly sinceMs: number;
}

/** Models need this much for the first words, and more often than this nobody reads. */
const EVERY_MS = 1000;
/** A session asks for at most a third of the time. Durations include queueing, so a busy engine is asked less. */
const PAUSE_FACTOR = 2;
/** The cost grows with the sound: beyond this, the words follow when the sound is committed. */
const LONGEST_MS = 30_000;

/** Whether it is time to transcribe the pending sound again. Pure. */
export function wantsPartial({ soundMs, askedMs, tookMs, sinceMs }: PartialFacts): boolean {
  return soundMs - askedMs >= EVERY_MS && soundMs <= LONGEST_MS && sinceMs >= tookMs * PAUSE_FACTOR;
}

/** A word with the space before it; in scripts without spaces, one character. */
const WORD =
  /\s*(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+)/gu;

/** The agreed words after `sent`; empty if there are none. The last word of a transcript may be cut off. */
export function agreedDelta(sent: string, before: string, now: string): string {
  const old = wordsOf(before);
  const words = wordsOf(now);
  let agreed = 0;
  while (agreed < words.length - 1 && words[agreed] === old[agreed]) agreed += 1;
  return restAfter(sent, words.slice(0, agreed).join(''));
}

/** The final transcript after `sent`; empty if it begins differently, since the client gets all of it anyway. */
export function restAfter(sent: string, text: string): string {
  return text.length > sent.length && text.startsWith(sent) ? text.slice(sent.length) : '';
}

const wordsOf = (text: string): readonly string[] => text.trim().match(WORD) ?? [];
