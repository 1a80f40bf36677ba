/** The committed sound of a session: transcribed one piece after the other, so that the transcripts come in the order in which things were said. */
import { restAfter } from './decide/partial-transcript.ts';
import type { Transcription } from './decide/session-settings.ts';
import { transcribeSound, type TranscribeDeps } from './transcribe-sound.ts';

export interface Utterance {
  readonly item: string;
  readonly pcm: Buffer;
  /** Hertz. */
  readonly rate: number;
  /** Undefined: it is not transcribed. */
  readonly transcription: Transcription | undefined;
  /** The words that were sent before it was complete. */
  readonly sent: string;
}

export interface UtteranceQueueOptions extends TranscribeDeps {
  readonly send: (event: object) => void;
  /** Called after each utterance. */
  readonly onDone: () => void;
  /** Ends the session. */
  readonly signal: AbortSignal;
}

const SAMPLE_BYTES = 2;

export interface UtteranceQueue {
  add(utterance: Utterance): void;
  /** Of sound whose transcript is pending. */
  bytes(): number;
  isBusy(): boolean;
}

export function createUtteranceQueue(options: UtteranceQueueOptions): UtteranceQueue {
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
    add(utterance) {
      queue.push(utterance);
      bytes += utterance.pcm.length;
      if (!working) void work();
    },
    bytes: () => bytes,
    isBusy: () => working,
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
  if (!transcript.ok) {
    send({ type: 'conversation.item.input_audio_transcription.failed', ...about, error: transcript.error });
    return;
  }
  const delta = restAfter(sent, transcript.text);
  if (delta !== '') send({ type: 'conversation.item.input_audio_transcription.delta', ...about, delta });
  const usage = { type: 'duration', seconds: pcm.length / SAMPLE_BYTES / rate };
  send({ type: 'conversation.item.input_audio_transcription.completed', ...about, transcript: transcript.text, usage });
}
