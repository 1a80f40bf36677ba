/** The response of the fast path. Like Node's `ServerResponse`, and sends the same bytes. */
import { EventEmitter } from 'node:events';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ClientResponse } from '../../gateway/client-exchange.ts';
import type { HeaderText } from '../../gateway/upstream/decide/response-head.ts';
import { headOf, mayHaveBody, responseHead } from './decide/write-head.ts';

export interface FastResponseDeps {
  readonly socket: Pick<Duplex, 'cork' | 'destroy' | 'uncork' | 'writable' | 'writableNeedDrain' | 'write'>;
  readonly date: () => string;
  readonly keepAliveSeconds: number;
  /** Called once, when the last byte has been handed to the kernel. `last`: the connection is to be closed. */
  readonly onSent: (last: boolean) => void;
}

export class FastResponse extends EventEmitter<{ close: []; drain: []; finish: [] }> implements ClientResponse {
  shouldKeepAlive = true;
  /** The fast path never frames a body itself. */
  chunkedEncoding = false;
  headersSent = false;
  destroyed = false;
  readonly #deps: FastResponseDeps;
  readonly #own: string[] = [];
  #head = '';
  #isLast = false;
  #hasBody = true;
  #ended = false;

  constructor(deps: FastResponseDeps) {
    super();
    this.#deps = deps;
  }

  get writableNeedDrain(): boolean {
    return !this.destroyed && !this.#ended && this.#deps.socket.writableNeedDrain;
  }

  setHeader(name: string, value: string): void {
    this.#own.push(name, value);
  }

  writeHead(status: number, headers: string[] | Record<string, string | number>): void {
    if (this.headersSent) throw new TypeError('Send the head of an answer once');
    const { date, keepAliveSeconds } = this.#deps;
    const { text, isLast, hasBody } = responseHead(
      { status, reason: STATUS_CODES[status] ?? 'unknown', own: this.#own, headers },
      { date: date(), keepAliveSeconds, keepAlive: this.shouldKeepAlive },
    );
    this.headersSent = true;
    this.#head = text;
    this.#isLast = isLast;
    this.#hasBody = hasBody;
  }

  /** An answer of an upstream, whose body is always delimited here: its length is known, or it is sent in chunks. */
  writeText(status: number, { lines, hasDate }: HeaderText): boolean {
    if (this.#own.length > 0 || this.headersSent) return false;
    const { date, keepAliveSeconds } = this.#deps;
    const reason = STATUS_CODES[status] ?? 'unknown';
    this.headersSent = true;
    this.#isLast = !this.shouldKeepAlive;
    this.#hasBody = mayHaveBody(status);
    const parts = { status, reason, lines, isDated: hasDate, hasConnection: false, isLast: this.#isLast };
    this.#head = headOf(parts, { date: date(), keepAliveSeconds });
    return true;
  }

  writeContinue(): void {
    this.#deps.socket.write('HTTP/1.1 100 Continue\r\n\r\n', 'latin1');
  }

  write(data: Buffer | string, encoding: BufferEncoding = 'utf8'): boolean {
    if (this.#ended || !this.#deps.socket.writable) return false;
    return this.#send(data, encoding);
  }

  end(data: Buffer | string = '', encoding: BufferEncoding = 'utf8'): void {
    if (this.#ended || !this.#deps.socket.writable) return;
    this.#send(data, encoding, () => this.#onSent());
    this.#ended = true;
  }

  destroy(): void {
    this.#deps.socket.destroy();
  }

  onDrain(): void {
    if (!this.#ended) this.emit('drain');
  }

  onClose(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit('close');
  }

  #onSent(): void {
    if (this.destroyed) return;
    this.emit('finish');
    this.#deps.onSent(this.#isLast);
    this.onClose();
  }

  #send(data: Buffer | string, encoding: BufferEncoding, sent?: () => void): boolean {
    // Node would send a head of its own.
    if (!this.headersSent) throw new TypeError('Send the head of an answer before its body');
    const { socket } = this.#deps;
    const head = this.#head;
    const body = this.#hasBody ? data : '';
    this.#head = '';
    if (typeof body === 'string') return socket.write(head + body, encoding, sent);
    if (head === '') return socket.write(body, sent);
    socket.cork();
    socket.write(head, 'latin1');
    const isRoom = socket.write(body, sent);
    socket.uncork();
    return isRoom;
  }
}
