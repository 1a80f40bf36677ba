/** Requests of this process to its own gateway, which treats them like any other: routed, held, parked, sent again. */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import type { ClientRequest, ClientResponse } from '../../gateway/client-exchange.ts';
import type { RequestCaller } from '../../schema/words/caller-limits.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { INFERENCE_PATHS, type InferencePath } from '../../gateway/route/decide/inference-paths.ts';
import { parseRequestHead } from '../../gateway/upstream/decide/request-head.ts';
import { wavHeadOf } from '../../platform/decide/wav-head.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { Transcription } from './realtime/decide/session-settings.ts';

/** A client of this process whose work needs such requests. */
export interface InnerCaller {
  readonly gateway: Pick<Gateway, 'handle'>;
  readonly socket: Socket;
  /** The caller's; each request id begins with it. */
  readonly requestId: string;
  readonly caller?: RequestCaller | undefined;
  /** The header of the caller's request. */
  readonly traceparent?: string | undefined;
}

const Failure = z.object({
  error: z.object({ message: z.string(), type: z.string().nullish(), code: z.string().nullish(), param: z.string().nullish() }),
});

/** The error in the body of an answer. `otherwise`: the message if there is none. */
export function errorOf(json: unknown, otherwise: string) {
  const { message = otherwise, type, code, param } = Failure.safeParse(json).data?.error ?? {};
  return { type: type ?? 'upstream_error', code: code ?? null, message, param: param ?? null };
}

export interface SoundToTranscribe extends Transcription {
  /** Little-endian samples of 16 bits in one channel. */
  readonly pcm: Buffer;
  /** Hertz. */
  readonly rate: number;
}

type TranscriptionError = Readonly<Record<'type' | 'message', string> & Record<'code' | 'param', string | null>>;
type Transcript = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly error: TranscriptionError };

const PATH = INFERENCE_PATHS.find(({ path }) => path === '/v1/audio/transcriptions');
const Text = z.object({ text: z.string() });

/** Rejects only if the signal aborts. */
export async function transcribeSound(sound: SoundToTranscribe, deps: InnerCaller, signal: AbortSignal): Promise<Transcript> {
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

interface InnerRequest {
  readonly path: InferencePath;
  readonly contentType: string;
  readonly body: readonly Buffer[];
  /** Gets the body of an answer with status 200 instead of `text`. The next piece waits until it resolves. */
  readonly onPiece?: (piece: Buffer) => Promise<void>;
}

/** A transcript of an hour has about 60 KB. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/** Rejects if the signal aborts, or if the answer is cut. Errors of the gateway are answers. */
export async function askGateway(
  { gateway, socket, requestId: callerId, caller, traceparent }: InnerCaller,
  request: InnerRequest,
  signal: AbortSignal,
) {
  signal.throwIfAborted();
  const { path, contentType, onPiece } = request;
  const requestId = `${callerId}.${randomUUID().slice(0, 8)}`;
  const length = String(request.body.reduce((bytes, piece) => bytes + piece.length, 0));
  const traced = traceparent === undefined ? [] : ['traceparent', traceparent];
  const rawHeaders = [...traced, 'content-type', contentType, 'content-length', length];
  const req = new MemoryRequest(request, rawHeaders, socket);
  const res = new MemoryResponse(onPiece);
  // A caller that cannot take a piece ends the request.
  res.on('error', () => undefined);
  const abort = (): void => void res.destroy();
  signal.addEventListener('abort', abort, { once: true });
  try {
    const closed = new Promise<void>((resolve) => res.once('close', resolve));
    gateway.handle({ req, res, path, head: parseRequestHead(rawHeaders), requestId, caller });
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

  constructor({ path, body }: InnerRequest, rawHeaders: readonly string[], socket: Socket) {
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
  readonly #onPiece: InnerRequest['onPiece'];
  #bytes = 0;

  constructor(onPiece: InnerRequest['onPiece']) {
    super();
    this.#onPiece = onPiece;
  }

  setHeader(): void {}

  writeContinue(): void {}

  writeHead(status: number): void {
    this.headersSent = true;
    this.status = status;
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    if (this.status === 200 && this.#onPiece !== undefined) return void this.#pass(this.#onPiece(piece), done);
    this.#bytes += piece.length;
    if (this.#bytes > ANSWER_BYTES) this.destroy();
    else this.pieces.push(piece);
    done();
  }

  async #pass(passed: Promise<void>, done: (error?: Error) => void): Promise<void> {
    try {
      await passed;
    } catch (error) {
      return done(error instanceof Error ? error : new Error(String(error)));
    }
    done();
  }
}
