/**
 * Reads one HTTP/1 response after another from the bytes of a connection, in whatever pieces they come. Bodies are handed on as they are,
 * without a copy where a piece of them lies in one piece of input. No I/O: the connection feeds it, a sink listens.
 */
import { type BodyFraming, parseResponseHead, type ResponseHead } from './response-head.ts';

export interface ResponseSink {
  onHead(head: ResponseHead): void;
  /** `last`: the response is complete; `bytes` may be empty then. */
  onBody(bytes: Buffer, last: boolean): void;
}

export type ReaderState =
  /** Nothing of a response has come. */
  | 'idle'
  | 'head'
  | 'body'
  /** Complete; `reset` makes it ready for the next one. */
  | 'done'
  | 'broken';

export interface ResponseReader {
  readonly state: ReaderState;
  /** With `broken`. */
  readonly problem: string | undefined;
  /** With `done`: whether the connection may carry another request. */
  readonly keepAlive: boolean;
  readonly keepAliveSeconds: number | undefined;
  feed(chunk: Buffer, sink: ResponseSink): void;
  /** The connection ended. True when that is the response's proper end; the sink is told. */
  end(sink: ResponseSink): boolean;
  reset(): void;
}

/** llama.cpp's heads have 300 bytes; a limit keeps a broken upstream out of memory. */
const HEAD_LIMIT = 64 * 1024;
/** A chunk-size line holds a few hexadecimal digits; extensions are allowed and ignored. */
const CHUNK_LINE_LIMIT = 1024;
const EMPTY = Buffer.alloc(0);
const NO_BODY: BodyFraming = { kind: 'none' };

type ChunkPlace = 'size' | 'data' | 'data-end' | 'trailer';

export function readResponses(): ResponseReader {
  return new Reader();
}

class Reader implements ResponseReader {
  state: ReaderState = 'idle';
  problem: string | undefined = undefined;
  keepAlive = false;
  keepAliveSeconds: number | undefined = undefined;
  #pending: Buffer = EMPTY;
  #framing: BodyFraming = NO_BODY;
  #left = 0;
  #chunkPlace: ChunkPlace = 'size';
  #line = '';
  #pieces: Buffer[] = [];

  reset(): void {
    this.state = 'idle';
  }

  feed(chunk: Buffer, sink: ResponseSink): void {
    let rest = chunk;
    while (this.state === 'idle' || this.state === 'head') {
      const after = this.#head(rest, sink);
      if (after === undefined) return;
      rest = after;
    }
    if (this.state === 'body') this.#body(rest, sink);
    else if (rest.length > 0) this.#unasked();
  }

  end(sink: ResponseSink): boolean {
    if (this.state !== 'body' || this.#framing.kind !== 'close') return false;
    this.state = 'done';
    this.keepAlive = false;
    sink.onBody(EMPTY, true);
    return true;
  }

  /** Answers what follows the head, or undefined when the head is not complete (or broken). */
  #head(chunk: Buffer, sink: ResponseSink): Buffer | undefined {
    if (chunk.length === 0) return undefined;
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    this.state = 'head';
    const end = bytes.indexOf('\r\n\r\n', Math.max(0, this.#pending.length - 3), 'latin1');
    if (end === -1) {
      this.#pending = bytes;
      if (bytes.length > HEAD_LIMIT) this.#break('its head is too large');
      return undefined;
    }
    this.#pending = EMPTY;
    const head = end > HEAD_LIMIT ? 'its head is too large' : parseResponseHead(bytes.toString('latin1', 0, end));
    if (typeof head === 'string') {
      this.#break(head);
      return undefined;
    }
    const rest = bytes.subarray(end + 4);
    if (head.status < 200) {
      if (head.status === 101) this.#break('it switches protocols unasked');
      return this.state === 'head' ? rest : undefined;
    }
    this.#begin(head, sink);
    return rest;
  }

  #begin(head: ResponseHead, sink: ResponseSink): void {
    this.state = 'body';
    this.keepAlive = head.keepAlive;
    this.keepAliveSeconds = head.keepAliveSeconds;
    this.#framing = head.framing;
    this.#left = head.framing.kind === 'length' ? head.framing.bytes : 0;
    this.#chunkPlace = 'size';
    this.#line = '';
    sink.onHead(head);
    if (this.#framing.kind === 'none' || (this.#framing.kind === 'length' && this.#left === 0)) {
      this.state = 'done';
      sink.onBody(EMPTY, true);
    }
  }

  #body(chunk: Buffer, sink: ResponseSink): void {
    if (chunk.length === 0) return;
    switch (this.#framing.kind) {
      case 'length':
        this.#counted(chunk, sink);
        return;
      case 'chunked':
        this.#chunked(chunk, sink);
        return;
      default:
        sink.onBody(chunk, false);
    }
  }

  #counted(chunk: Buffer, sink: ResponseSink): void {
    if (chunk.length < this.#left) {
      this.#left -= chunk.length;
      sink.onBody(chunk, false);
      return;
    }
    const unasked = chunk.length > this.#left;
    this.state = 'done';
    if (unasked) this.keepAlive = false;
    sink.onBody(unasked ? chunk.subarray(0, this.#left) : chunk, true);
  }

  #chunked(chunk: Buffer, sink: ResponseSink): void {
    let at = 0;
    const pieces = this.#pieces;
    while (at < chunk.length && this.state === 'body') {
      if (this.#chunkPlace !== 'data') {
        at = this.#chunkLine(chunk, at);
        continue;
      }
      const take = Math.min(this.#left, chunk.length - at);
      pieces.push(chunk.subarray(at, at + take));
      this.#left -= take;
      at += take;
      if (this.#left === 0) this.#chunkPlace = 'data-end';
    }
    if (at < chunk.length) this.keepAlive = false;
    const last = this.state === 'done';
    if (pieces.length === 0 && !last) return;
    const bytes = pieces.length === 1 ? (pieces[0] ?? EMPTY) : Buffer.concat(pieces);
    pieces.length = 0;
    sink.onBody(bytes, last);
  }

  /** Reads a size line, the line end after data, or a trailer line; answers where to go on. */
  #chunkLine(chunk: Buffer, at: number): number {
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
    if (!line.endsWith('\r')) this.#break('a line of its chunked body does not end properly');
    else this.#chunkLineRead(line.slice(0, -1));
    return end + 1;
  }

  #chunkLineRead(line: string): void {
    if (this.#chunkPlace === 'trailer') {
      if (line === '') this.state = 'done';
      return;
    }
    if (this.#chunkPlace === 'data-end') {
      if (line === '') this.#chunkPlace = 'size';
      else this.#break('a chunk is longer than it said');
      return;
    }
    const size = /^([0-9a-fA-F]{1,12})[\t ]*(?:;.*)?$/.exec(line);
    if (size === null) {
      this.#break('a chunk has no size');
      return;
    }
    this.#left = Number.parseInt(size[1] ?? '', 16);
    this.#chunkPlace = this.#left === 0 ? 'trailer' : 'data';
  }

  #unasked(): void {
    this.keepAlive = false;
  }

  #break(problem: string): void {
    this.state = 'broken';
    this.keepAlive = false;
    this.problem = problem;
    this.#pending = EMPTY;
  }
}
