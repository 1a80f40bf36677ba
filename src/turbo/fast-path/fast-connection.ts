/**
 * One connection of the fast path. It reads ordinary requests one after the other, and leaves the connection to Node's
 * HTTP server, with all bytes read, at the first request that is not.
 *
 *   idle ── bytes ─► scan ─┬─► a request: read its body, wait for its answer ─► idle
 *                          └─► anything else, or an incomplete head: handed over for good
 */
import type { Socket } from 'node:net';
import type { ClientRequest, ClientResponse } from '../../gateway/client-exchange.ts';
import { isKept } from '../../gateway/upstream/decide/request-head.ts';
import { keepRequest, rescanRequest, scanRequest, type ScannedRequest, type ScanRules } from './decide/scan-request.ts';
import { FastRequest } from './fast-request.ts';
import { FastResponse, type FastResponseDeps } from './fast-response.ts';

export type ConnectionError = 'invalid' | 'timeout';

export interface FastConnectionDeps extends Pick<FastResponseDeps, 'date' | 'keepAliveSeconds'> {
  readonly rules: ScanRules;
  readonly listener: (req: ClientRequest, res: ClientResponse) => void;
  /** Leaves the connection to Node's HTTP server. What was read is at the front of the socket again. */
  readonly handOver: (socket: Socket) => void;
  readonly refuse: (socket: Socket, error: ConnectionError, isAnswered: boolean) => void;
  readonly onGone: (connection: FastConnection) => void;
}

export interface ConnectionLimits {
  readonly keepAliveMs: number;
  readonly silentMs: number;
  readonly requestMs: number;
  /** Longest time for the rest of a body after the answer. */
  readonly restMs: number;
}

/** Bytes after the body that may wait for the end of the answer; then the connection is paused. */
const REST_BYTES = 64 * 1024;

export class FastConnection {
  readonly #deps: FastConnectionDeps;
  readonly #socket: Socket;
  #request: FastRequest | undefined;
  #response: FastResponse | undefined;
  #rest: Buffer[] = [];
  #restBytes = 0;
  #scans = 0;
  /** A former request: most of a connection have the same head. Where they do not, it is replaced ever more rarely. */
  #kept: ScannedRequest | undefined;
  /** When `checkTimeouts` first saw the current request or its absence: at most a second late. */
  #since: number | undefined = performance.now();
  readonly #onData = (bytes: Buffer): void => this.#receive(bytes);
  readonly #onDrain = (): void => this.#response?.onDrain();
  readonly #onEnd = (): void => this.#clientEnded();
  readonly #onError = (): void => void this.#socket.destroy();
  readonly #onClose = (): void => this.#closed();

  constructor(socket: Socket, deps: FastConnectionDeps) {
    this.#socket = socket;
    this.#deps = deps;
    socket.on('data', this.#onData);
    socket.on('drain', this.#onDrain);
    socket.on('end', this.#onEnd);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
  }

  get isBusy(): boolean {
    return this.#request !== undefined;
  }

  checkTimeouts(now: number, limits: ConnectionLimits): void {
    this.#since ??= now;
    const ms = now - this.#since;
    if (this.#request !== undefined) {
      const mostMs = this.#response === undefined ? limits.restMs : limits.requestMs;
      if (!this.#request.complete && ms > mostMs) this.#refuse('timeout');
    } else if (this.#scans === 0 && ms > limits.silentMs) this.#handOver();
    else if (ms > limits.keepAliveMs) this.#socket.destroy();
  }

  #receive(bytes: Buffer): void {
    if (this.#request === undefined) this.#begin(bytes, false);
    else if (this.#request.complete) this.#keep(bytes);
    else this.#push(this.#request, bytes, false);
  }

  #begin(bytes: Buffer, isShared: boolean): void {
    const { listener, date, keepAliveSeconds } = this.#deps;
    const scanned = this.#scan(bytes);
    if (scanned === undefined) return this.#handOver(bytes);
    const socket = this.#socket;
    const request = new FastRequest(scanned, socket);
    const response = new FastResponse({ socket, date, keepAliveSeconds, onSent: (last) => this.#sent(last) });
    response.shouldKeepAlive = scanned.keepAlive;
    this.#since = undefined;
    this.#request = request;
    this.#response = response;
    if (bytes.length > scanned.headBytes) this.#push(request, bytes.subarray(scanned.headBytes), isShared);
    listener(request, response);
    request.dispatched();
  }

  #scan(bytes: Buffer): ScannedRequest | undefined {
    const { rules } = this.#deps;
    const repeated = this.#kept && rescanRequest(bytes, this.#kept, rules);
    if (repeated !== undefined) return repeated;
    const scanned = scanRequest(bytes, rules);
    if (scanned.kind !== 'request') return undefined;
    this.#scans += 1;
    if (!isKept(this.#scans)) return scanned;
    const kept = keepRequest(bytes, scanned);
    if (kept.known !== undefined) this.#kept = kept;
    return kept;
  }

  #push(request: FastRequest, bytes: Buffer, isShared: boolean): void {
    const rest = request.push(bytes, isShared);
    if (rest !== undefined) this.#keep(rest);
    // The answer was complete before the body.
    if (request.complete && this.#response === undefined) this.#next();
  }

  #keep(bytes: Buffer): void {
    this.#rest.push(bytes);
    this.#restBytes += bytes.length;
    if (this.#restBytes > REST_BYTES) this.#socket.pause();
  }

  #sent(last: boolean): void {
    this.#response = undefined;
    this.#since = undefined;
    if (last) this.#socket.destroySoon();
    else if (this.#request?.complete === true) this.#next();
    else this.#request?.discard();
  }

  #next(): void {
    this.#request = undefined;
    this.#since = undefined;
    if (this.#socket.isPaused()) this.#socket.resume();
    if (this.#rest.length === 0 || !this.#socket.writable) return;
    const rest = Buffer.concat(this.#rest);
    this.#rest = [];
    this.#restBytes = 0;
    // Short buffers have parts of one memory.
    this.#begin(rest, true);
  }

  #handOver(bytes?: Buffer): void {
    const socket = this.#socket;
    this.#leave();
    if (bytes !== undefined) socket.unshift(bytes);
    this.#deps.handOver(socket);
  }

  /** Node's HTTP server closes a connection as well when its client will send nothing more. */
  #clientEnded(): void {
    if (this.#request?.complete === false) this.#refuse('invalid');
    else this.#socket.end();
  }

  #refuse(error: ConnectionError): void {
    this.#deps.refuse(this.#socket, error, this.#response?.headersSent !== false);
  }

  #closed(): void {
    this.#leave();
    this.#request = undefined;
    this.#rest = [];
    this.#response?.onClose();
    this.#response = undefined;
  }

  #leave(): void {
    const socket = this.#socket;
    socket.off('data', this.#onData);
    socket.off('drain', this.#onDrain);
    socket.off('end', this.#onEnd);
    socket.off('error', this.#onError);
    socket.off('close', this.#onClose);
    this.#deps.onGone(this);
  }
}
