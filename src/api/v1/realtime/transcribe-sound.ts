/** Transcribes a piece of sound through the gateway, as a request to `/v1/audio/transcriptions` of the slot. */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import { INFERENCE_PATHS, type InferencePath } from '../../../gateway/route/decide/inference-paths.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import { messageOf } from '../../../platform/error-text.ts';
import { wavHeadOf } from '../../../platform/decide/wav-head.ts';
import type { Transcription } from './decide/session-settings.ts';
import type { ClientRequest, ClientResponse } from '../../../gateway/client-exchange.ts';
import { parseRequestHead } from '../../../gateway/upstream/decide/request-head.ts';

export interface SoundToTranscribe extends Transcription {
  /** Little-endian samples of 16 bits in one channel. */
  readonly pcm: Buffer;
  /** Hertz. */
  readonly rate: number;
}

type TranscriptionError = Readonly<Record<'type' | 'message', string> & Record<'code' | 'param', string | null>>;
type Transcript = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly error: TranscriptionError };

export interface TranscribeDeps {
  readonly gateway: Pick<Gateway, 'handle'>;
  readonly socket: Socket;
  /** The session's; each request id begins with it. */
  readonly requestId: string;
}

const PATH = INFERENCE_PATHS.find(({ path }) => path === '/v1/audio/transcriptions');
const Text = z.object({ text: z.string() });
const Failure = z.object({
  error: z.object({ message: z.string(), type: z.string().nullish(), code: z.string().nullish(), param: z.string().nullish() }),
});

/** Rejects only if the signal aborts. */
export async function transcribeSound(sound: SoundToTranscribe, deps: TranscribeDeps, signal: AbortSignal): Promise<Transcript> {
  if (PATH === undefined) throw new Error('There is no path for transcriptions');
  const boundary = `svc-${randomUUID()}`;
  const requestId = `${deps.requestId}.${randomUUID().slice(0, 8)}`;
  const request = { path: PATH, contentType: `multipart/form-data; boundary=${boundary}`, body: formOf(sound, boundary), requestId };
  try {
    const { status, text } = await askGateway(deps.gateway, { ...request, socket: deps.socket }, signal);
    const json = parseJson(text);
    const transcript = Text.safeParse(json).data;
    if (status === 200 && transcript !== undefined) return { ok: true, text: transcript.text.trim() };
    const { message = 'The model server sent no transcript: try again', type, code, param } = Failure.safeParse(json).data?.error ?? {};
    return { ok: false, error: { type: type ?? 'upstream_error', code: code ?? null, message, param: param ?? null } };
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

/** In memory, to the gateway of this process, which treats it like any other: routed, held, parked, sent again. */
interface InnerRequest {
  readonly path: InferencePath;
  readonly contentType: string;
  readonly body: readonly Buffer[];
  readonly requestId: string;
  readonly socket: Socket;
}

/** A transcript of an hour has about 60 KB. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/** Rejects if the signal aborts, or if the answer is cut. Errors of the gateway are answers. */
async function askGateway(gateway: Pick<Gateway, 'handle'>, request: InnerRequest, signal: AbortSignal) {
  signal.throwIfAborted();
  const { path, contentType, requestId } = request;
  const length = String(request.body.reduce((bytes, piece) => bytes + piece.length, 0));
  const rawHeaders = ['content-type', contentType, 'content-length', length];
  const req = new MemoryRequest(request, rawHeaders);
  const res = new MemoryResponse();
  const abort = (): void => void res.destroy();
  signal.addEventListener('abort', abort, { once: true });
  try {
    const closed = new Promise<void>((resolve) => res.once('close', resolve));
    gateway.handle({ req, res, path, head: parseRequestHead(rawHeaders), requestId });
    await closed;
  } finally {
    signal.removeEventListener('abort', abort);
    req.destroy();
  }
  signal.throwIfAborted();
  if (!res.writableFinished) throw new Error('The answer was cut: try again');
  return { status: res.status, text: Buffer.concat(res.pieces).toString('utf8') };
}

class MemoryRequest extends Readable implements ClientRequest {
  readonly method = 'POST';
  readonly url: string;
  /** An answer of unknown length ends with its connection then, and has no framing. */
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 0;
  readonly rawHeaders: readonly string[];
  readonly headers: ClientRequest['headers'];
  readonly socket: Socket;
  readonly complete = true;
  readonly #pieces: Buffer[];

  constructor({ path, body, socket }: InnerRequest, rawHeaders: readonly string[]) {
    super();
    this.url = path.path;
    this.rawHeaders = rawHeaders;
    this.headers = { 'content-length': rawHeaders.at(-1) };
    this.socket = socket;
    this.#pieces = [...body];
  }

  override _read(): void {
    this.push(this.#pieces.shift() ?? null);
  }
}

class MemoryResponse extends Writable implements ClientResponse {
  shouldKeepAlive = false;
  chunkedEncoding = false;
  headersSent = false;
  status = 0;
  readonly pieces: Buffer[] = [];
  #bytes = 0;

  setHeader(): void {}

  writeContinue(): void {}

  writeHead(status: number): void {
    this.headersSent = true;
    this.status = status;
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.#bytes += piece.length;
    if (this.#bytes > ANSWER_BYTES) this.destroy();
    else this.pieces.push(piece);
    done();
  }
}
