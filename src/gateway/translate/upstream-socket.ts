/**
 * A WebSocket of a translation to the server of its slot, which only reads:
 *
 *   opened() ─► next() … { kind: 'closed' }
 *
 * It never fails: whatever goes wrong closes it, and a translation that hears nothing has to ask. What has arrived and
 * is not asked for yet pauses the connection.
 */
import { WebSocket } from 'ws';
import type { SocketMessage } from '../../providers/translation.ts';
import { authorityOf } from '../route/decide/route.ts';
import { checkedPath } from './decide/translation-heads.ts';
import type { UpstreamCallDeps } from './upstream-call.ts';

/** A server is local or in the same cluster, and the translation waits for the WebSocket before its request. */
const OPEN_MS = 1000;
/** Limit for one message: a preview of 512 × 512 pixels without compression has 1 MiB. */
const MOST_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Limits for what waits for `next` before the connection is paused. */
const WAITING = { messages: 32, bytes: 1024 * 1024 } as const;

type Arrived = Extract<SocketMessage, { kind: 'text' | 'binary' }> & { readonly size: number };

const NONE: SocketMessage = { kind: 'none' };
const CLOSED: SocketMessage = { kind: 'closed' };

export class UpstreamSocket {
  readonly #socket: WebSocket;
  readonly #arrived: Arrived[] = [];
  #arrivedBytes = 0;
  #isClosed = false;
  #wake: (() => void) | undefined;

  /** Throws if the path is malformed. */
  constructor(path: string, { endpoint, requestId, onProgress }: Pick<UpstreamCallDeps, 'endpoint' | 'requestId' | 'onProgress'>) {
    this.#socket = new WebSocket(`ws://${authorityOf(endpoint)}${checkedPath(path)}`, {
      handshakeTimeout: OPEN_MS,
      maxPayload: MOST_MESSAGE_BYTES,
      perMessageDeflate: false,
      headers: { 'x-request-id': requestId },
    });
    this.#socket.on('open', () => this.#changed());
    this.#socket.on('message', (data, isBinary) => {
      onProgress('heard');
      // Always a `Buffer`, since messages do not arrive in fragments.
      if (Buffer.isBuffer(data)) this.#add(data, isBinary);
    });
    this.#socket.on('close', () => this.#close());
    this.#socket.on('error', () => undefined);
  }

  /** Resolves when it is open, or never will be. */
  async opened(): Promise<void> {
    while (this.#socket.readyState === WebSocket.CONNECTING && !this.#isClosed) await this.#change();
  }

  /** Resolves with the next message, or with `none` after this time. */
  async next(withinMs: number): Promise<SocketMessage> {
    if (this.#arrived.length === 0 && !this.#isClosed) await this.#change(withinMs);
    const message = this.#arrived.shift();
    if (message === undefined) return this.#isClosed ? CLOSED : NONE;
    this.#arrivedBytes -= message.size;
    if (!this.#isFull()) this.#socket.resume();
    return message;
  }

  destroy(): void {
    this.#arrived.length = 0;
    this.#arrivedBytes = 0;
    this.#close();
    this.#socket.terminate();
  }

  #add(bytes: Buffer, isBinary: boolean): void {
    if (this.#isClosed) return;
    const size = bytes.length;
    this.#arrived.push(isBinary ? { kind: 'binary', bytes, size } : { kind: 'text', text: bytes.toString('utf8'), size });
    this.#arrivedBytes += size;
    if (this.#isFull()) this.#socket.pause();
    this.#changed();
  }

  #isFull(): boolean {
    return this.#arrived.length >= WAITING.messages || this.#arrivedBytes >= WAITING.bytes;
  }

  #close(): void {
    this.#isClosed = true;
    this.#changed();
  }

  #changed(): void {
    this.#wake?.();
  }

  async #change(withinMs?: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (withinMs !== undefined) timer = setTimeout(resolve, Math.max(1, withinMs));
    });
    clearTimeout(timer);
  }
}
