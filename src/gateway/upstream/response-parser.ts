/** Parses the HTTP/1 responses of one connection from chunks of any size, without a copy of bodies where possible. */
import type { UpstreamEvents } from '../request-events.ts';
import { isKept } from './decide/request-head.ts';
import { keepResponse, parseResponseHead, repeatResponse } from './decide/response-head.ts';
import type { BodyFraming, KeptHead, ResponseHead } from './decide/response-head.ts';

export type ResponseEvents = Pick<UpstreamEvents, 'onHead' | 'onBody'>;

/** llama.cpp's heads have about 300 bytes; the limit protects memory from a broken upstream. */
const HEAD_LIMIT = 64 * 1024;
/** A chunk-size line holds a few hexadecimal digits; extensions are allowed and ignored. */
const CHUNK_LINE_LIMIT = 1024;
const EMPTY = Buffer.alloc(0);
const END_OF_HEAD = Buffer.from('\r\n\r\n');

type ChunkPlace = 'size' | 'data' | 'data-end' | 'trailer';

export class ResponseParser {
  /** `idle`: no byte of a response has arrived. `done`: it is complete, and `reset` prepares for the next one. */
  state: 'idle' | 'head' | 'body' | 'done' | 'broken' = 'idle';
  /** Set with `broken`. */
  problem: string | undefined = undefined;
  /** The connection may carry another request; valid with `done`. */
  keepAlive = false;
  keepAliveSeconds: number | undefined = undefined;
  #pending: Buffer = EMPTY;
  #framing: BodyFraming['kind'] = 'none';
  #left = 0;
  #chunkPlace: ChunkPlace = 'size';
  #line = '';
  #pieces: Buffer[] = [];
  /** The head of a former response, which most repeat. Where they do not, it is replaced ever more rarely. */
  #kept: KeptHead | undefined;
  #parsed = 0;

  reset(): void {
    this.state = 'idle';
  }

  feed(chunk: Buffer, events: ResponseEvents): void {
    let rest = chunk;
    while (this.state === 'idle' || this.state === 'head') {
      const after = this.#parseHead(rest, events);
      if (after === undefined) return;
      rest = after;
    }
    if (this.state === 'body') this.#parseBody(rest, events);
    // Bytes after the end of the response.
    else if (rest.length > 0) this.keepAlive = false;
  }

  /** Call when the connection has ended. Returns true if that completes the response, after a last `onBody`. */
  end(events: ResponseEvents): boolean {
    if (this.state !== 'body' || this.#framing !== 'close') return false;
    this.state = 'done';
    this.keepAlive = false;
    events.onBody(EMPTY, true);
    return true;
  }

  /** Returns the bytes after the head. Undefined if the head is incomplete or broken. */
  #parseHead(chunk: Buffer, events: ResponseEvents): Buffer | undefined {
    if (chunk.length === 0) return undefined;
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const repeated = this.#kept && repeatResponse(bytes, this.#kept);
    if (repeated !== undefined) return this.#begin(repeated.head, events, bytes.subarray(repeated.headBytes));
    this.state = 'head';
    const end = bytes.indexOf(END_OF_HEAD, Math.max(0, this.#pending.length - 3));
    if (end === -1) {
      this.#pending = bytes;
      return bytes.length > HEAD_LIMIT ? this.#break('its head is too large') : undefined;
    }
    this.#pending = EMPTY;
    const head = end > HEAD_LIMIT ? 'its head is too large' : parseResponseHead(bytes.toString('latin1', 0, end));
    if (typeof head === 'string') return this.#break(head);
    const rest = bytes.subarray(end + END_OF_HEAD.length);
    if (head.status < 200) {
      if (head.status === 101) this.#break('it switches protocols without a request');
      return this.state === 'head' ? rest : undefined;
    }
    this.#parsed += 1;
    if (isKept(this.#parsed)) this.#kept = keepResponse(bytes.subarray(0, end + END_OF_HEAD.length), head) ?? this.#kept;
    return this.#begin(head, events, rest);
  }

  /** Returns `rest`. */
  #begin(head: ResponseHead, events: ResponseEvents, rest: Buffer): Buffer {
    this.#pending = EMPTY;
    this.state = 'body';
    this.keepAlive = head.keepAlive;
    this.keepAliveSeconds = head.keepAliveSeconds;
    this.#framing = head.framing.kind;
    this.#left = head.framing.kind === 'length' ? head.framing.bytes : 0;
    this.#chunkPlace = 'size';
    this.#line = '';
    events.onHead(head);
    if (this.#framing === 'none' || (this.#framing === 'length' && this.#left === 0)) {
      this.state = 'done';
      events.onBody(EMPTY, true);
    }
    return rest;
  }

  #parseBody(chunk: Buffer, events: ResponseEvents): void {
    if (chunk.length === 0) return;
    if (this.#framing === 'length') this.#passCounted(chunk, events);
    else if (this.#framing === 'chunked') this.#parseChunks(chunk, events);
    else events.onBody(chunk, false);
  }

  #passCounted(chunk: Buffer, events: ResponseEvents): void {
    if (chunk.length < this.#left) {
      this.#left -= chunk.length;
      return events.onBody(chunk, false);
    }
    const hasExtra = chunk.length > this.#left;
    this.state = 'done';
    if (hasExtra) this.keepAlive = false;
    events.onBody(hasExtra ? chunk.subarray(0, this.#left) : chunk, true);
  }

  #parseChunks(chunk: Buffer, events: ResponseEvents): void {
    let at = 0;
    const pieces = this.#pieces;
    while (at < chunk.length && this.state === 'body') {
      if (this.#chunkPlace !== 'data') {
        at = this.#parseChunkLine(chunk, at);
        continue;
      }
      const count = Math.min(this.#left, chunk.length - at);
      pieces.push(chunk.subarray(at, at + count));
      this.#left -= count;
      at += count;
      if (this.#left === 0) this.#chunkPlace = 'data-end';
    }
    if (at < chunk.length) this.keepAlive = false;
    const last = this.state === 'done';
    // Bytes before a fault in the same piece are not passed on, so that an answer that is broken from the start can
    // still become an error.
    if (this.state === 'broken') pieces.length = 0;
    if (pieces.length === 0 && !last) return;
    const bytes = pieces.length === 1 ? (pieces[0] ?? EMPTY) : Buffer.concat(pieces);
    pieces.length = 0;
    events.onBody(bytes, last);
  }

  /** Parses a size line, the line end after data, or a trailer line. Returns the index of the next byte. */
  #parseChunkLine(chunk: Buffer, at: number): number {
    const end = chunk.indexOf(0x0a, at);
    const stop = end === -1 ? chunk.length : end;
    if (this.#line.length + (stop - at) > CHUNK_LINE_LIMIT) {
      this.#break('a line of its chunked body is too long');
      return chunk.length;
    }
    this.#line += chunk.toString('latin1', at, stop);
    if (end === -1) return chunk.length;
    const line = this.#line;
    this.#line = '';
    if (!line.endsWith('\r')) this.#break('a line of its chunked body does not end with CR LF');
    else this.#onChunkLine(line.slice(0, -1));
    return end + 1;
  }

  #onChunkLine(line: string): void {
    if (this.#chunkPlace === 'trailer') {
      if (line === '') this.state = 'done';
      return;
    }
    if (this.#chunkPlace === 'data-end') {
      if (line === '') this.#chunkPlace = 'size';
      else this.#break('a chunk is longer than its size line');
      return;
    }
    const size = /^([0-9a-fA-F]{1,12})[\t ]*(?:;.*)?$/.exec(line);
    if (size === null) return this.#break('a chunk has no size');
    this.#left = Number.parseInt(size[1] ?? '', 16);
    this.#chunkPlace = this.#left === 0 ? 'trailer' : 'data';
  }

  #break(problem: string): undefined {
    this.state = 'broken';
    this.keepAlive = false;
    this.problem = problem;
    this.#pending = EMPTY;
  }
}
