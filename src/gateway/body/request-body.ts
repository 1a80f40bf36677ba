/**
 * Reads a client's request body until the request can be routed. One of ordinary size is kept, so that it can be sent
 * again. A larger one is read until `model` is known; then reading pauses, and the rest flows to the upstream. If the
 * request waits, the rest is kept too, because only a client that is read is noticed leaving. Large forms go to disk.
 */
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { ClientRequest } from '../client-exchange.ts';
import { bodyTooLarge, refuseBody, type BodyLimit } from '../route/decide/request-limits.ts';
import type { RequestHead } from '../upstream/decide/request-head.ts';
import type { UpstreamConnection } from '../upstream/upstream-connection.ts';
import { ReadMemory } from './body-memory.ts';
import type { BodyEvents, BodyPart, BodyScan, EditableBody } from './body-scan.ts';
import type { ApplyPreset } from './apply-preset.ts';
import { BODIES_FILL_MEMORY, BodyWriter, KeptBody, type KeptBodyDeps } from './kept-body.ts';

export interface ReadRequest {
  readonly req: ClientRequest;
  readonly head: RequestHead;
  readonly scan: BodyScan;
  readonly limit: BodyLimit;
}

/** Bodies up to this size are kept: long conversations fit, and 64 parked ones are small compared with a model. */
const KEPT_BODY_BYTES = 1024 * 1024;
/** Bodies up to this size are joined into one buffer when they arrive in several TCP segments. */
const JOIN_BYTES = 16 * 1024;

// oxlint-disable-next-line house/function-length -- One state machine over the body on its way through memory, disk and connection: its states share all of its fields
export class RequestBody implements EditableBody {
  received = 0;
  whole = false;
  isEdited = false;
  named: string | undefined;
  onRelease: (() => void) | undefined;
  readonly #scan: BodyScan;
  readonly #request: ReadRequest;
  readonly #events: BodyEvents;
  readonly #kept: KeptBody;
  readonly #memory: ReadMemory;
  #isSentAgain = false;
  #ready = false;
  #released = false;
  /** The body is sent in chunks, because its length was not known when the request began. */
  #chunked = false;
  #onWhole: (() => void) | undefined;
  /** Set while the body flows without being kept. */
  #writer: BodyWriter | undefined;

  constructor(request: ReadRequest, deps: KeptBodyDeps, events: BodyEvents) {
    const { req, scan } = request;
    this.#request = request;
    this.#scan = scan;
    this.#events = events;
    this.#memory = new ReadMemory(req);
    this.#kept = new KeptBody(deps, req, this.#memory, events);
  }

  /** The complete body, or the part that was read before the pause; nothing if it is on disk. */
  get chunks(): readonly Buffer[] {
    return this.#kept.chunks;
  }

  get isReleased(): boolean {
    return this.#released;
  }

  get model(): string | undefined {
    return this.#scan.model;
  }

  get parts(): readonly BodyPart[] | undefined {
    return this.#scan.parts;
  }

  /** The request can be sent from its first byte, also a second time. */
  get resendable(): boolean {
    return this.#writer === undefined && !this.#released;
  }

  get inMemory(): boolean {
    return this.whole && !this.#kept.isOnDisk;
  }

  /** The request stays resendable while it is being sent. */
  get isKept(): boolean {
    return this.whole || this.#kept.isOnDisk;
  }

  /** The request goes on once the whole body is here. */
  get isAwaited(): boolean {
    return this.#onWhole !== undefined && !this.whole;
  }

  /** Bytes that flow wait for the upstream, so the client is not read. */
  get isHeldBack(): boolean {
    return this.#writer?.hasWrittenAll === false;
  }

  start(): void {
    const { req, head, limit } = this.#request;
    const refusal = refuseBody({ head, isForm: this.#scan.isForm, mayLack: this.#scan.mayLack }, limit);
    if (refusal !== undefined) return this.#fail(...refusal);
    if (this.#scan.status === 'invalid') return this.#invalid();
    req.on('data', (chunk: Buffer) => this.#onData(chunk));
    req.on('end', () => this.#onEnd());
  }

  /** Begins an attempt. Returns the header with the body's length, and the end of the head. */
  lengthHeader(): string {
    this.stopFlow();
    // An earlier connection may not have written all of it yet.
    if (this.#isSentAgain) this.#memory.leave();
    this.#isSentAgain = true;
    const length = this.whole ? this.received : this.#request.head.contentLength;
    this.#chunked = length === undefined;
    return length === undefined ? 'transfer-encoding: chunked\r\n\r\n' : `content-length: ${length}\r\n\r\n`;
  }

  /** Sends what was read and lets the rest flow. From here on, only a body that is kept can be sent again. */
  flowTo(connection: UpstreamConnection): void {
    const writer = new BodyWriter(connection, this.#chunked, this.#memory);
    if (this.#kept.isOnDisk)
      return this.#kept.flowTo(
        (bytes) => this.#passOn(writer, bytes),
        () => writer.end(),
      );
    for (const chunk of this.chunks) writer.write(chunk);
    if (this.whole) return writer.end();
    this.#writer = writer;
    this.#kept.clearMemory();
    writer.freeWritten();
    this.#request.req.resume();
  }

  /** Nothing more is written to the connection, which has ended. */
  stopFlow(): void {
    this.#kept.stopFlow();
  }

  /** Reads the rest of the body into memory, or onto the disk, because the request has to wait. */
  keepReading(): void {
    if (!this.#released && !this.whole) this.#request.req.resume();
  }

  /** Reads the rest of the body, and calls back once the whole of it can be read. */
  whenWhole(callback: () => void): void {
    this.#onWhole = callback;
    if (this.whole) callback();
    else this.keepReading();
  }

  /** Reads up to `bytes` bytes of the whole body. Undefined once it is released. Rejects if the disk fails. */
  async read(from: number, bytes: number): Promise<Uint8Array | undefined> {
    return this.#released ? undefined : await this.#kept.read(from, bytes);
  }

  reserve(bytes: number): boolean {
    return this.#kept.reserve(bytes);
  }

  replace(pieces: readonly Buffer[]): void {
    this.#kept.replace(pieces);
    this.received = lengthOf(pieces);
  }

  /** Replaces a complete body by an edited one. Returns false if there is no memory for what is longer. */
  edit(pieces: readonly Buffer[]): boolean {
    if (!this.reserve(Math.max(0, lengthOf(pieces) - this.received))) return false;
    this.replace(pieces);
    this.isEdited = true;
    return true;
  }

  /** Returns false if the rest of the body must be read first, or the request has failed. `whyNot`: for a form. */
  give(parameters: Parameters<ApplyPreset>[1], whyNot: string, applyPreset: ApplyPreset): boolean {
    if (this.#scan.isForm) this.#fail('request.invalid', whyNot, 'model');
    else if (!this.whole) this.whenWhole(() => this.#events.onRoutable());
    else {
      if (this.isEdited) this.#kept.end(this.received <= JOIN_BYTES);
      const lacksKeys = parameters.cap !== undefined && !this.isEdited && this.#scan.lacksLimit === true;
      const pieces = applyPreset(this.chunks, parameters, { hasModel: this.model !== undefined, lacksKeys });
      if (typeof parameters.force['model'] === 'string') this.named = parameters.force['model'];
      if (pieces === undefined) this.#fail('request.invalid', this.#scan.unfinished);
      else if (this.edit(pieces)) return true;
      else this.#fail('server.overloaded', BODIES_FILL_MEMORY);
    }
    return false;
  }

  resumeFlow(): void {
    this.#kept.resumeFlow();
    if (this.#released || this.#writer === undefined) return;
    this.#writer.freeWritten();
    this.#request.req.resume();
  }

  /** Releases a body that will not be sent again. `isWritten`: nothing of it waits in the connection. */
  releaseIfSent(isWritten: boolean): void {
    if (!this.whole || !this.#kept.isSent) return;
    this.release();
    if (isWritten) this.#memory.free();
  }

  release(): void {
    this.#released = true;
    this.onRelease?.();
    this.#kept.release();
  }

  #onData(chunk: Buffer): void {
    if (this.#released) return;
    this.received += chunk.length;
    const { limit } = this.#request;
    if (this.received > limit.wholeBytes) return this.#fail(...bodyTooLarge(limit));
    const { readsAll } = this.#scan;
    if (this.#writer !== undefined) {
      // Scanned first: an upstream never gets the end of a body that is not valid.
      if (readsAll && !(this.#feed(chunk) && (!this.#isAll() || this.#checkEnd()))) return;
      this.#memory.add(chunk);
      if (!this.#passOn(this.#writer, chunk)) this.#request.req.pause();
      return this.#writer.freeWritten();
    }
    if (!this.#kept.add(chunk)) return;
    this.#events.onProgress();
    if ((readsAll || !this.#ready) && this.#feed(chunk)) this.#decide();
  }

  #isAll(): boolean {
    return this.received === this.#request.head.contentLength;
  }

  /** Returns false, after the request has failed, if the body is not valid. */
  #feed(chunk: Buffer): boolean {
    this.#scan.feed(chunk);
    if (this.#scan.status !== 'invalid') return true;
    this.#invalid();
    return false;
  }

  /** Decides whether enough has been read, and where a large body goes. */
  #decide(): void {
    if (this.#isAll()) {
      if (!this.#ready) this.#complete();
      return;
    }
    if (this.received <= KEPT_BODY_BYTES || this.#kept.isOnDisk || this.#scan.keepsAll === true) return;
    if (!this.#ready && this.#scan.modelSeen) {
      if (this.#scan.problem !== undefined) return this.#invalid();
      this.#request.req.pause();
      this.#ready = true;
      this.#events.onRoutable();
    } else if (this.#scan.isForm) this.#kept.moveToDisk();
  }

  #onEnd(): void {
    if (this.#released) return;
    if (this.#scan.readsAll && !this.#checkEnd()) return;
    if (this.#writer !== undefined) this.#writer.end();
    else if (!this.#ready) this.#complete();
    else if (!this.whole) {
      this.#setWhole();
      this.#onWhole?.();
    }
  }

  #complete(): void {
    if (!this.#checkEnd()) return;
    this.#setWhole();
    this.#ready = true;
    if (this.#scan.delaysRouting?.(this, this.#events) !== true) this.#events.onRoutable();
  }

  #setWhole(): void {
    this.whole = true;
    this.#kept.end(this.received <= JOIN_BYTES);
  }

  #checkEnd(): boolean {
    if (this.#scan.status === 'done') return true;
    this.#fail('request.invalid', this.#scan.unfinished);
    return false;
  }

  #passOn(writer: BodyWriter, bytes: Buffer): boolean {
    this.#events.onProgress();
    return writer.write(bytes);
  }

  #invalid(): void {
    const { message, param } = this.#scan.problem ?? { message: 'The body is not a JSON object', param: null };
    this.#fail('request.invalid', message, param);
  }

  #fail(code: ErrorCode, message: string, param: string | null = null): void {
    this.release();
    this.#events.fail(code, message, param);
  }
}

const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((bytes, { length }) => bytes + length, 0);
