/** Reads the recording of a voice that a model is to imitate. */
import type { Speech } from './decide/parse-speech.ts';
import { RefusalError } from './decide/refusal.ts';
import type { VoiceSample } from './messages.ts';
import { openSound } from './open-sound.ts';
import { recordingOf, type Recording } from './recording.ts';

/** Of the recording. Less says too little about a voice; more makes every sentence slower and no better. */
const LEAST_SECONDS = 1;
const MOST_SECONDS = 30;

export interface SampleOptions {
  /** Directory for the file that ffmpeg reads. */
  readonly directory: string;
  readonly ffmpeg: string | undefined;
  readonly signal: AbortSignal;
}

/** Throws a `RefusalError` if it contains no sound, or too little or too much of it. */
export async function openSample(sample: Speech['sample'], options: SampleOptions): Promise<VoiceSample | undefined> {
  if (sample === undefined) return undefined;
  const recording = recordingOf(sample.bytes, options.directory);
  try {
    return { ...(await readSample(recording, options)), text: sample.text };
  } catch (error) {
    throw error instanceof RefusalError ? new RefusalError({ ...error.refusal, param: 'ref_audio' }) : error;
  } finally {
    await recording.remove();
  }
}

async function readSample(recording: Recording, { ffmpeg, signal }: SampleOptions): Promise<Omit<VoiceSample, 'text'>> {
  const sound = await openSound(recording, ffmpeg);
  const close = (): void => sound.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    const parts: Float32Array[] = [];
    let length = 0;
    for await (const part of sound.samples) {
      parts.push(part.slice());
      length += part.length;
      if (length > MOST_SECONDS * sound.rate) throw wrongLength('longer');
    }
    if (length < LEAST_SECONDS * sound.rate) throw wrongLength('shorter');
    return { samples: join(parts, length), rate: sound.rate };
  } finally {
    signal.removeEventListener('abort', close);
    sound.close();
  }
}

function join(parts: readonly Float32Array[], length: number): Float32Array {
  const samples = new Float32Array(length);
  let at = 0;
  for (const part of parts) {
    samples.set(part, at);
    at += part.length;
  }
  return samples;
}

const wrongLength = (how: string): RefusalError =>
  new RefusalError({
    status: 400,
    code: 'audio.invalid',
    message: `Send a recording of ${LEAST_SECONDS} to ${MOST_SECONDS} seconds: this one is ${how}`,
    param: 'ref_audio',
  });
