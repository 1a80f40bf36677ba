/** Performs the steps of one translation. `TranslatedForward` adds resending and time limits. */
import { setImmediate } from 'node:timers/promises';
import type {
  FormFile,
  KeptImage,
  RequestProgress,
  SocketMessage,
  StepResult,
  Steps,
  TranslationEnd,
  TranslationStep,
  UpstreamAnswer,
  UpstreamRequest,
} from '../../providers/translation.ts';
import { sleep } from '../../platform/clock.ts';
import { bufferOf } from '../../platform/read-body.ts';
import { upstreamHeadOf } from './decide/translation-heads.ts';
import { readRange } from './translated-answer.ts';
import { UpstreamBroken, UpstreamCall, type UpstreamCallDeps } from './upstream-call.ts';
import { UpstreamSocket } from './upstream-socket.ts';

/**
 * Puts an image that comes in pieces, the last one undefined, into the cache. `status`: of its answer. `origin`: where
 * the client reaches this service, empty if unknown. Rejects if `next` does or the disk fails; nothing is left of an
 * incomplete image.
 */
export type KeepImage = (next: () => Promise<Uint8Array | undefined>, status: number, origin: string) => Promise<KeptImage>;

export interface TranslationRunDeps extends UpstreamCallDeps {
  readonly begin: (step: Extract<TranslationStep, { kind: 'begin' }>['head']) => void;
  /** Resolves when the client has read enough. */
  readonly write: (bytes: Buffer) => Promise<void>;
  /** Reserves memory for answers that are collected, until the request ends. */
  readonly reserve: (bytes: number) => boolean;
  readonly unreserve: (bytes: number) => void;
  readonly keepImage: (next: () => Promise<Uint8Array | undefined>, status: number) => Promise<KeptImage>;
  readonly onReport: (progress: RequestProgress) => void;
  readonly signal: AbortSignal;
}

const DEFAULT_ANSWER_BYTES = 1024 * 1024;
/** The largest answer that a translation may collect: an image of 4096 × 4096 pixels without compression. */
const MOST_ANSWER_BYTES = 64 * 1024 * 1024;
const MOST_READ_BYTES = 1024 * 1024;
/** Steps that wait for nothing give way to other requests this often. */
const STEPS_IN_A_ROW = 32;

export class TranslationRun {
  /** Sent to the server if the request ends early. */
  onLeave: readonly UpstreamRequest[] = [];
  /** Sent to the server when the request has ended. */
  onEnd: readonly UpstreamRequest[] = [];
  readonly #deps: TranslationRunDeps;
  #call: UpstreamCall | undefined;
  #socket: UpstreamSocket | undefined;
  /** Reserved for an answer that the translation keeps until the next step only. */
  #briefBytes = 0;

  constructor(deps: TranslationRunDeps) {
    this.#deps = deps;
    deps.signal.addEventListener('abort', () => this.#socket?.destroy(), { once: true });
  }

  get call(): UpstreamCall | undefined {
    return this.#call;
  }

  /** Rejects with an error of the translation or of `UpstreamCall`. Undefined once the signal has aborted. */
  async perform(steps: Steps<TranslationEnd>): Promise<TranslationEnd | undefined> {
    try {
      let next = steps.next();
      for (let count = 1; next.done !== true; count += 1) {
        if (count % STEPS_IN_A_ROW === 0) await setImmediate();
        const result = await this.#step(next.value);
        if (this.#deps.signal.aborted) return undefined;
        next = steps.next(result);
      }
      return next.value;
    } finally {
      this.#socket?.destroy();
    }
  }

  async #step(step: TranslationStep): Promise<StepResult> {
    this.#deps.unreserve(this.#briefBytes);
    this.#briefBytes = 0;
    switch (step.kind) {
      case 'ask': {
        const answer = await this.#ask(step.request, step.limitBytes ?? DEFAULT_ANSWER_BYTES);
        if (step.brief === true) this.#briefBytes = answer.body.length;
        return { kind: 'answer', answer };
      }
      case 'open':
        return { kind: 'head', head: upstreamHeadOf(await this.#send(step.request).head()) };
      case 'next':
        return { kind: 'bytes', bytes: await this.#next() };
      case 'read':
        return { kind: 'bytes', bytes: await this.#read(step.file, step.from, step.bytes) };
      case 'keep':
        return { kind: 'kept', kept: await this.#keep(step.request) };
      case 'wait':
        await sleep(Math.max(1, step.ms), this.#deps.signal);
        return DONE;
      case 'listen':
        await this.#listen(step.path);
        return DONE;
      case 'message':
        return this.#message(step.withinMs);
      case 'progress':
        this.#deps.onReport(step.progress);
        return DONE;
      case 'begin':
        this.#deps.begin(step.head);
        return DONE;
      case 'write':
        await this.#deps.write(bufferOf(step.bytes));
        return DONE;
      case 'on-leave':
        this.onLeave = step.requests;
        return DONE;
      case 'on-end':
        this.onEnd = step.requests;
        return DONE;
      default:
        return step satisfies never;
    }
  }

  #send(request: UpstreamRequest): UpstreamCall {
    this.#call?.destroy();
    const call = new UpstreamCall(request, this.#deps);
    this.#call = call;
    call.start();
    return call;
  }

  async #ask(request: UpstreamRequest, limitBytes: number): Promise<UpstreamAnswer> {
    const call = this.#send(request);
    const head = upstreamHeadOf(await call.head());
    const most = Math.min(limitBytes, MOST_ANSWER_BYTES);
    const pieces: Buffer[] = [];
    let bytes = 0;
    for (let piece = await call.next(); piece !== undefined; piece = await call.next()) {
      bytes += piece.length;
      if (bytes > most) throw new UpstreamBroken(`The answer of the upstream to "${request.path}" has more than ${most} bytes`);
      if (!this.#deps.reserve(piece.length))
        throw new UpstreamBroken('Answers fill the memory reserved for bodies ("SVC_BUFFER_LIMIT"): try again later');
      pieces.push(piece);
    }
    this.#call = undefined;
    return { ...head, body: Buffer.concat(pieces) };
  }

  /** An answer with another status is no image either. What goes to the cache ends when the client leaves. */
  async #keep(request: UpstreamRequest): Promise<KeptImage> {
    const call = this.#send(request);
    const { status } = await call.head();
    const left = leftOf(this.#deps.signal);
    const kept = await this.#deps.keepImage(async () => Promise.race([call.next(), left]), status);
    this.#call = undefined;
    return kept;
  }

  async #listen(path: string): Promise<void> {
    this.#socket?.destroy();
    this.#socket = new UpstreamSocket(path, this.#deps);
    await this.#socket.opened();
  }

  /** A message that has no room is the last one: the translation goes on without the WebSocket. */
  async #message(withinMs: number): Promise<StepResult> {
    if (this.#socket === undefined) throw new TypeError('No WebSocket is open');
    const since = performance.now();
    let message: SocketMessage = await this.#socket.next(withinMs);
    const waitedMs = performance.now() - since;
    const size = message.kind === 'text' ? Buffer.byteLength(message.text) : message.kind === 'binary' ? message.bytes.length : 0;
    if (this.#deps.reserve(size)) this.#briefBytes = size;
    else {
      this.#socket.destroy();
      message = { kind: 'closed' };
    }
    return { kind: 'message', message, waitedMs };
  }

  async #next(): Promise<Uint8Array | undefined> {
    if (this.#call === undefined) throw new TypeError('No answer is open');
    const piece = await this.#call.next();
    if (piece === undefined) this.#call = undefined;
    return piece;
  }

  async #read(file: FormFile, from: number, bytes: number): Promise<Uint8Array> {
    const most = Math.min(bytes, MOST_READ_BYTES, file.bytes - from);
    return (await readRange(this.#deps.readBody, file.from + from, most)) ?? Buffer.alloc(0);
  }
}

/** Rejects when the request has ended. */
function leftOf(signal: AbortSignal): Promise<never> {
  const left = new Promise<never>((_resolve, reject) => {
    const leave = (): void => reject(new Error('The request has ended'));
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
  left.catch(() => undefined);
  return left;
}

const DONE: StepResult = { kind: 'done' };
