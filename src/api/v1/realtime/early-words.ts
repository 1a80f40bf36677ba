/** Asks for the words of sound that is not committed yet, and sends those that are certain. `decide/partial-transcript.ts` decides when, and which. */
import { agreedDelta, wantsPartial } from './decide/partial-transcript.ts';
import { transcribeSound, type SoundToTranscribe, type TranscribeDeps } from './transcribe-sound.ts';

export interface EarlyWordsOptions extends TranscribeDeps {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly send: (event: object) => void;
}

interface Words {
  readonly sent: string;
  /** The last transcript. */
  readonly before: string;
  readonly askedMs: number;
  readonly tookMs: number;
  readonly answeredAt: number;
}

const NO_WORDS: Words = { sent: '', before: '', askedMs: 0, tookMs: 0, answeredAt: Number.NEGATIVE_INFINITY };

export type EarlyWords = ReturnType<typeof createEarlyWords>;

export function createEarlyWords({ now, send, ...deps }: EarlyWordsOptions) {
  let words = NO_WORDS;
  let asking: AbortController | undefined;

  return {
    /** Whether it is time to ask about this much pending sound. */
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
