/**
 * Takes in a client's body up to the point where it is known where the request goes. A body of ordinary size is held whole, so that it can be sent
 * again when a workload dies. Of a larger one reading stops once `model` is known (back-pressure reaches the client), and the rest flows through later.
 */
import type { IncomingMessage } from 'node:http';
import type { ErrorCode } from '../schema/error-codes.ts';
import type { BufferBudget } from './buffer-budget.ts';
import type { RequestHead } from './decide/request-head.ts';
import { scanBody, type BodyScan } from './scan-body.ts';
import type { UpstreamConnection } from './upstream-connection.ts';

export interface RequestBodyOwner {
  /** Enough is known to route. Called once. */
  onBodyReady(): void;
  onBodyProblem(code: ErrorCode, message: string, param: string | null): void;
  onBodyProgress(): void;
}

/** Bodies up to here are held whole: long conversations fit, and 64 parked ones of them stay small beside a model. */
const HOLD_WHOLE_BYTES = 1024 * 1024;
/** Above this, pieces that TCP made are not worth joining. */
const JOIN_BYTES = 16 * 1024;

export interface IntakeLimits {
  readonly SVC_BODY_LIMIT: number;
}

export class RequestBody {
  /** The whole body lies here, or what came before reading stopped. */
  chunks: Buffer[] = [];
  received = 0;
  whole = false;
  readonly #scan: BodyScan = scanBody();
  readonly #req: IncomingMessage;
  readonly #head: RequestHead;
  readonly #limits: IntakeLimits;
  readonly #budget: BufferBudget;
  readonly #owner: RequestBodyOwner;
  #held = 0;
  #ready = false;
  #over = false;
  #connection: UpstreamConnection | undefined;

  constructor(req: IncomingMessage, head: RequestHead, limits: IntakeLimits, budget: BufferBudget, owner: RequestBodyOwner) {
    this.#req = req;
    this.#head = head;
    this.#limits = limits;
    this.#budget = budget;
    this.#owner = owner;
  }

  get model(): string | undefined {
    return this.#scan.model;
  }

  get wantsStream(): boolean {
    return this.#scan.stream === true;
  }

  /** Whether the request can be sent from its first byte on (again). */
  get resendable(): boolean {
    return this.#connection === undefined && !this.#over;
  }

  start(): void {
    const { contentLength, chunked } = this.#head;
    if (contentLength !== undefined && contentLength > this.#limits.SVC_BODY_LIMIT) {
      this.#tooLarge();
      return;
    }
    if (!chunked && (contentLength === undefined || contentLength === 0)) {
      this.#fail('request.invalid', 'Send a JSON object as the body', null);
      return;
    }
    this.#req.on('data', (chunk: Buffer) => this.#data(chunk));
    this.#req.on('end', () => this.#end());
  }

  /** Head of the upstream request that says how long its body is. */
  lengthHeader(): string {
    const length = this.whole ? this.received : this.#head.contentLength;
    return length === undefined ? 'transfer-encoding: chunked\r\n\r\n' : `content-length: ${length}\r\n\r\n`;
  }

  /** Lets the rest of the body flow to the connection; from here on the request cannot be sent again. */
  flowTo(connection: UpstreamConnection): void {
    this.#connection = connection;
    for (const chunk of this.chunks) this.#pass(connection, chunk);
    this.chunks = [];
    this.#req.resume();
  }

  onDrain(): void {
    if (!this.#over && this.#connection !== undefined) this.#req.resume();
  }

  /** The body is not needed any more. May be called twice. */
  release(): void {
    this.#over = true;
    this.chunks = [];
    this.#budget.give(this.#held);
    this.#held = 0;
  }

  #data(chunk: Buffer): void {
    if (this.#over) return;
    this.received += chunk.length;
    if (this.received > this.#limits.SVC_BODY_LIMIT) {
      this.#tooLarge();
      return;
    }
    if (this.#connection !== undefined) {
      this.#owner.onBodyProgress();
      if (!this.#pass(this.#connection, chunk)) this.#req.pause();
      return;
    }
    if (!this.#budget.take(chunk.length)) {
      this.#fail('server.overloaded', 'Try again later: request bodies in memory are at "SVC_BUFFER_LIMIT"', null);
      return;
    }
    this.#held += chunk.length;
    this.#owner.onBodyProgress();
    this.chunks.push(chunk);
    this.#look(chunk);
  }

  #look(chunk: Buffer): void {
    if (this.#ready) return;
    const scan = this.#scan;
    scan.feed(chunk);
    if (scan.status === 'invalid') this.#invalid();
    else if (this.received === this.#head.contentLength) this.#complete();
    else if (this.received > HOLD_WHOLE_BYTES && scan.modelSeen) {
      if (scan.problem !== undefined) {
        this.#invalid();
        return;
      }
      this.#req.pause();
      this.#ready = true;
      this.#owner.onBodyReady();
    }
  }

  #end(): void {
    if (this.#over) return;
    if (this.#connection !== undefined) {
      if (this.#head.contentLength === undefined) this.#connection.write('0\r\n\r\n');
      this.#connection.endRequest();
    } else if (!this.#ready) this.#complete();
    else this.whole = true;
  }

  #complete(): void {
    if (this.#scan.status !== 'done') {
      this.#fail('request.invalid', 'Close the JSON object of the body: the text ends too early', null);
      return;
    }
    this.whole = true;
    this.#ready = true;
    if (this.chunks.length > 1 && this.received <= JOIN_BYTES) this.chunks = [Buffer.concat(this.chunks)];
    this.#owner.onBodyReady();
  }

  #pass(connection: UpstreamConnection, chunk: Buffer): boolean {
    if (this.#head.contentLength !== undefined) return connection.write(chunk);
    connection.write(`${chunk.length.toString(16)}\r\n`);
    connection.write(chunk);
    return connection.write('\r\n');
  }

  #invalid(): void {
    const { message, param } = this.#scan.problem ?? { message: 'Send a JSON object as the body', param: null };
    this.#fail('request.invalid', message, param);
  }

  #tooLarge(): void {
    const limit = this.#limits.SVC_BODY_LIMIT;
    this.#fail('request.too_large', `Send a smaller body: the limit is ${limit} bytes ("SVC_BODY_LIMIT")`, null);
  }

  #fail(code: ErrorCode, message: string, param: string | null): void {
    this.release();
    this.#owner.onBodyProblem(code, message, param);
  }
}
