/** What the client gets from a translation: an answer that is sent at once, or one that is begun and then written piece by piece. Throws if the translation breaks that order. */
import type { AnswerHead, FormField, FormFile, TranslatableBody, UpstreamRequest } from '../../providers/translation.ts';
import { AnswerTail, type ClientAnswer } from '../answer.ts';
import type { AttemptRequest } from '../exchange-deps.ts';
import { responseHeadOf } from './decide/translation-heads.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { RequestBody } from '../body/request-body.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import { UpstreamCall, type UpstreamCallDeps } from './upstream-call.ts';

export class TranslatedAnswer {
  ttftMs: number | undefined;
  /** Coarse milliseconds at which the client was last sent something; undefined before the answer has begun. */
  wroteAt: number | undefined;
  readonly #answer: ClientAnswer;
  readonly #tick: () => number;
  readonly #startedAt: number;
  readonly #tail = new AnswerTail();

  constructor({ answer, deps, startedAt }: AttemptRequest) {
    this.#answer = answer;
    this.#tick = deps.tick;
    this.#startedAt = startedAt;
  }

  /** `bytes` undefined: the length of the body is not known. */
  begin(head: AnswerHead, bytes?: number): void {
    if (this.#answer.started) throw new TypeError('Begin an answer once');
    const checked = responseHeadOf(head, bytes);
    this.ttftMs = performance.now() - this.#startedAt;
    this.wroteAt = this.#tick();
    this.#answer.begin(checked, this.ttftMs);
  }

  /** Resolves when the client has read enough. */
  async write(bytes: Buffer): Promise<void> {
    if (!this.#answer.started) throw new TypeError('Begin an answer before writing to it');
    if (bytes.length === 0) return;
    this.wroteAt = this.#tick();
    this.#tail.add(bytes);
    if (this.#answer.write(bytes)) return;
    await new Promise<void>((resolve) => this.#answer.onceDrained(resolve));
    this.wroteAt = this.#tick();
  }

  end(last: Buffer): void {
    if (!this.#answer.started) throw new TypeError('Begin an answer before it ends');
    this.#tail.add(last);
    this.#answer.end(last);
  }

  usage() {
    return this.#tail.usage();
  }
}

/** Reads a complete request body into what a translation is given. */

interface BodyRefusal {
  readonly kind: 'refuse';
  readonly code: ErrorCode;
  readonly message: string;
  readonly param?: string;
}

const DEFAULT_JSON_BYTES = 1024 * 1024;
/** All fields of a form together: prompts have up to 32 KiB, and a few fields hold small files as data URLs. */
const FIELD_BYTES = 1024 * 1024;

/** Returns undefined if the body was released meanwhile. Rejects if the disk fails. */
export async function readTranslatableBody(
  body: Pick<RequestBody, 'received' | 'parts' | 'read'>,
  maxJsonBytes = DEFAULT_JSON_BYTES,
): Promise<TranslatableBody | BodyRefusal | undefined> {
  if (body.parts !== undefined) return await readForm(body, body.parts);
  if (body.received > maxJsonBytes) {
    return { kind: 'refuse', code: 'request.too_large', message: `Send a smaller body: this path takes at most ${maxJsonBytes} bytes` };
  }
  const bytes = await readRange(body, 0, body.received);
  if (bytes === undefined) return undefined;
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  try {
    return { kind: 'json', text, value: JSON.parse(text) };
  } catch (error) {
    return { kind: 'refuse', code: 'request.invalid', message: `Send valid JSON: ${messageOf(error)}` };
  }
}

async function readForm(
  body: Pick<RequestBody, 'read'>,
  parts: NonNullable<RequestBody['parts']>,
): Promise<TranslatableBody | BodyRefusal | undefined> {
  const fields: FormField[] = [];
  const files: FormFile[] = [];
  let fieldBytes = 0;
  for (const { name, fileName, contentType, from, bytes } of parts) {
    if (fileName !== undefined) {
      files.push({ name, fileName, contentType, from, bytes });
      continue;
    }
    fieldBytes += bytes;
    if (fieldBytes > FIELD_BYTES) {
      const message = `Send smaller fields: those of a form have at most ${FIELD_BYTES} bytes together`;
      return { kind: 'refuse', code: 'request.too_large', message, param: name };
    }
    const value = await readRange(body, from, bytes);
    if (value === undefined) return undefined;
    fields.push({ name, value: value.toString('utf8') });
  }
  return { kind: 'form', fields, files };
}

async function readRange(body: Pick<RequestBody, 'read'>, from: number, bytes: number): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  for (let read = 0; read < bytes;) {
    const piece = await body.read(from + read, bytes - read);
    if (piece === undefined || piece.length === 0) return undefined;
    pieces.push(piece);
    read += piece.length;
  }
  return Buffer.concat(pieces);
}

/** What is left to do at the server when a translated request has ended: read a request that must finish to its end, and send what the translation asked for. */

interface Leaving {
  readonly call: UpstreamCall | undefined;
  readonly requests: readonly UpstreamRequest[];
  readonly settings: Pick<Settings, 'SVC_FIRST_BYTE_TIMEOUT'>;
  /** Aborts when the workload is about to be stopped. */
  readonly signal: AbortSignal;
}

/** Requests that cancel or forget something are answered at once. */
const LEAVE_MS = 5000;

/** Returns undefined if there is nothing to do. What is returned never rejects. */
export function leaveUpstream(deps: UpstreamCallDeps, { call, requests, settings, signal }: Leaving): Promise<void> | undefined {
  const mustFinish = call?.request.mustFinish === true && call.isSent ? call : undefined;
  if (mustFinish === undefined) call?.destroy();
  if (mustFinish === undefined && requests.length === 0) return undefined;
  const withinMs = mustFinish === undefined ? LEAVE_MS : settings.SVC_FIRST_BYTE_TIMEOUT;
  return limited(signal, withinMs, async (within) => finish(deps, { mustFinish, requests, signal: within }));
}

/** The signal that the work gets aborts with the given one, or after some time. Nothing is left of it when the work has ended, unlike of `AbortSignal.timeout`. */
async function limited(signal: AbortSignal, withinMs: number, work: (within: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const timer = setTimeout(end, withinMs);
  timer.unref();
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    await work(ending.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}

interface Rest {
  readonly mustFinish: UpstreamCall | undefined;
  readonly requests: readonly UpstreamRequest[];
  readonly signal: AbortSignal;
}

async function finish(deps: UpstreamCallDeps, { mustFinish, requests, signal }: Rest): Promise<void> {
  if (mustFinish !== undefined) await drain(mustFinish, signal);
  for (const request of requests) {
    if (signal.aborted) return;
    const call = new UpstreamCall(request, deps);
    await drain(call, signal, () => call.start());
  }
}

/** Reads an answer to its end and drops it. The connection is closed when the signal aborts. */
async function drain(call: UpstreamCall, signal: AbortSignal, start?: () => void): Promise<void> {
  let stop: (() => void) | undefined;
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  const abort = (): void => {
    call.destroy();
    stop?.();
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    start?.();
    await Promise.race([stopped, readAll(call)]);
  } catch {
    // The server is gone, or the request is malformed: nothing is left to be cancelled.
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

async function readAll(call: UpstreamCall): Promise<void> {
  while ((await call.next()) !== undefined);
}
