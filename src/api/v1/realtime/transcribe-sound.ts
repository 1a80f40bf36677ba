/** Transcribes a piece of sound through the gateway, as a request to `/v1/audio/transcriptions` of the slot. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { INFERENCE_PATHS } from '../../../gateway/route/decide/inference-paths.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { messageOf } from '../../../platform/error-text.ts';
import { wavHeadOf } from '../../../platform/decide/wav-head.ts';
import type { Transcription } from './decide/session-settings.ts';
import { askGateway, errorOf, type InnerCaller } from '../inner-request.ts';

export interface SoundToTranscribe extends Transcription {
  /** Little-endian samples of 16 bits in one channel. */
  readonly pcm: Buffer;
  /** Hertz. */
  readonly rate: number;
}

type TranscriptionError = Readonly<Record<'type' | 'message', string> & Record<'code' | 'param', string | null>>;
type Transcript = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly error: TranscriptionError };

export type TranscribeDeps = InnerCaller;

const PATH = INFERENCE_PATHS.find(({ path }) => path === '/v1/audio/transcriptions');
const Text = z.object({ text: z.string() });

/** Rejects only if the signal aborts. */
export async function transcribeSound(sound: SoundToTranscribe, deps: TranscribeDeps, signal: AbortSignal): Promise<Transcript> {
  if (PATH === undefined) throw new Error('There is no path for transcriptions');
  const boundary = `svc-${randomUUID()}`;
  const request = { path: PATH, contentType: `multipart/form-data; boundary=${boundary}`, body: formOf(sound, boundary) };
  try {
    const { status, text } = await askGateway(deps, request, signal);
    const json = parseJson(text);
    const transcript = Text.safeParse(json).data;
    if (status === 200 && transcript !== undefined) return { ok: true, text: transcript.text.trim() };
    return { ok: false, error: errorOf(json, 'The model server sent no transcript: try again') };
  } catch (error) {
    signal.throwIfAborted();
    return { ok: false, error: { type: 'upstream_error', code: 'upstream.failed', message: messageOf(error), param: null } };
  }
}

/** The sound comes last: what stands before it decides where it goes. */
function formOf({ pcm, rate, model, language, prompt }: SoundToTranscribe, boundary: string): readonly Buffer[] {
  const fields = Object.entries({ model, language, prompt, response_format: 'json' }).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`],
  );
  const file = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="sound.wav"\r\nContent-Type: audio/wav\r\n\r\n`;
  return [Buffer.from(`${fields.join('')}${file}`), wavHeadOf(rate, pcm.length), pcm, Buffer.from(`\r\n--${boundary}--\r\n`)];
}
