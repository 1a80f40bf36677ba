/**
 * Finds `model` and the offsets of all parts in a multipart body (RFC 7578) that arrives in chunks, without keeping it.
 * It is strict where parsers differ, because the request could be routed to another model than the one that answers: no
 * text before the first boundary or after the last, no folded headers, one `model`.
 */
import { parsePartHead, type PartHead } from './decide/multipart-head.ts';
import type { BodyPart, BodyProblem, BodyScan } from './body-scan.ts';

/** Longer than the disposition of any file name that a file system allows. */
const HEAD_LIMIT = 4096;
/** A form has a few dozen fields; each part costs a little memory. */
const PART_LIMIT = 1000;
const MODEL_LIMIT = 4096;
const EMPTY = Buffer.alloc(0);
const CR = 0x0d;
const LF = 0x0a;

type Place = 'start' | 'after-boundary' | 'head' | 'content' | 'end';

export class MultipartScanner implements BodyScan {
  status: BodyScan['status'] = 'more';
  modelSeen = false;
  model: string | undefined = undefined;
  problem: BodyProblem | undefined = undefined;
  readonly isForm = true;
  readonly readsAll = true;
  readonly unfinished = 'The multipart body ends without its last boundary';
  readonly parts: BodyPart[] = [];
  /** CR LF, two dashes and the boundary. The first one in a body has no CR LF. */
  readonly #delimiter: Buffer;
  #place: Place = 'start';
  /** Bytes at the end of the last piece that may belong to what follows. Never longer than a delimiter or a head. */
  #pending: Buffer = EMPTY;
  /** Offset of the first pending byte in the body. */
  #offset = 0;
  #head: PartHead | undefined;
  #contentFrom = 0;
  #captured = '';

  /** `boundary` undefined: the body is invalid. */
  constructor(boundary: string | undefined) {
    this.#delimiter = Buffer.from(`\r\n--${boundary ?? ''}`, 'latin1');
    if (boundary === undefined)
      this.#fail('The header "Content-Type" does not name one boundary for the multipart body', 0, 'Content-Type');
  }

  feed(chunk: Buffer): void {
    if (this.status === 'invalid' || chunk.length === 0) return;
    let rest = chunk;
    const pending = this.#pending;
    if (pending.length > 0) {
      // A few bytes of the piece decide on those that are pending, so the piece itself is not copied.
      const joined = Math.min(chunk.length, this.#place === 'head' ? HEAD_LIMIT : this.#delimiter.length);
      const bytes = Buffer.concat([pending, chunk.subarray(0, joined)]);
      const used = this.#run(bytes);
      if (joined === chunk.length) return this.#keep(bytes, used);
      this.#offset += used;
      this.#pending = EMPTY;
      rest = chunk.subarray(used - pending.length);
    }
    this.#keep(rest, this.#run(rest));
  }

  #keep(bytes: Buffer, used: number): void {
    // A copy, since the piece that arrived is large.
    this.#pending = used === bytes.length ? EMPTY : Buffer.from(bytes.subarray(used));
    this.#offset += used;
  }

  /** Returns the number of bytes that have been decided on. */
  #run(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && !isInvalid(this)) {
      const next = this.#step(bytes, at);
      if (next === at) break;
      at = next;
    }
    return at;
  }

  #step(bytes: Buffer, at: number): number {
    switch (this.#place) {
      case 'start':
        return this.#start(bytes, at);
      case 'after-boundary':
        return this.#afterBoundary(bytes, at);
      case 'head':
        return this.#readHead(bytes, at);
      case 'content':
        return this.#readContent(bytes, at);
      case 'end':
        return this.#end(bytes, at);
      default:
        return this.#place satisfies never;
    }
  }

  #start(bytes: Buffer, at: number): number {
    const first = this.#delimiter.subarray(2);
    const seen = bytes.subarray(at, at + first.length);
    if (!first.subarray(0, seen.length).equals(seen))
      return this.#fail('The multipart body does not begin with the boundary of the header "Content-Type"', at);
    if (seen.length < first.length) return at;
    this.#place = 'after-boundary';
    return at + first.length;
  }

  #afterBoundary(bytes: Buffer, at: number): number {
    const pair = bytes.toString('latin1', at, at + 2);
    if (pair === '\r' || pair === '-') return at;
    if (pair === '\r\n') {
      if (this.parts.length >= PART_LIMIT) return this.#fail(`The multipart body has more than ${PART_LIMIT} parts: send fewer`, at);
      this.#place = 'head';
    } else if (pair === '--') {
      this.#place = 'end';
      this.status = 'done';
    } else return this.#fail('A boundary line of the multipart body does not end with CR LF', at);
    return at + 2;
  }

  #readHead(bytes: Buffer, at: number): number {
    const isEmpty = bytes[at] === CR && bytes[at + 1] === LF;
    const end = isEmpty ? at : bytes.indexOf('\r\n\r\n', at, 'latin1');
    const length = end === -1 ? bytes.length - at : end - at;
    if (length > HEAD_LIMIT) return this.#fail(`The headers of a part have more than ${HEAD_LIMIT} bytes`, at);
    if (end === -1) return at;
    const head = parsePartHead(bytes.toString('utf8', at, end));
    if (typeof head === 'string') return this.#fail(head, at);
    this.#head = head;
    this.#captured = '';
    if (head.name === 'model') {
      if (this.modelSeen) return this.#fail('The field "model" is repeated: send it once', at, 'model');
      if (head.fileName !== undefined) return this.#fail('"model" is a file: send it as a field', at, 'model');
    }
    this.#place = 'content';
    const after = end + (isEmpty ? 2 : 4);
    this.#contentFrom = this.#offset + after;
    return after;
  }

  #readContent(bytes: Buffer, at: number): number {
    const delimiter = this.#delimiter;
    const found = bytes.indexOf(delimiter, at);
    if (found !== -1) {
      this.#content(bytes.subarray(at, found));
      if (isInvalid(this)) return at;
      this.#endPart(this.#offset + found);
      this.#place = 'after-boundary';
      return found + delimiter.length;
    }
    // A delimiter may begin in the last bytes, at a CR.
    let cut = bytes.indexOf(CR, Math.max(at, bytes.length - delimiter.length + 1));
    while (cut !== -1 && !delimiter.subarray(0, bytes.length - cut).equals(bytes.subarray(cut))) cut = bytes.indexOf(CR, cut + 1);
    const decided = cut === -1 ? bytes.length : cut;
    this.#content(bytes.subarray(at, decided));
    return decided;
  }

  #content(bytes: Buffer): void {
    if (this.#head?.name !== 'model' || bytes.length === 0) return;
    if (this.#captured.length + bytes.length > MODEL_LIMIT) {
      this.#fail(`"model" has more than ${MODEL_LIMIT} bytes`, 0, 'model');
    } else this.#captured += bytes.toString('latin1');
  }

  #endPart(to: number): void {
    const head = this.#head;
    if (head === undefined) return;
    this.parts.push({ ...head, from: this.#contentFrom, bytes: to - this.#contentFrom });
    if (head.name === 'model') {
      this.modelSeen = true;
      this.model = Buffer.from(this.#captured, 'latin1').toString('utf8');
    }
  }

  /** Some clients end the body with a line end. */
  #end(bytes: Buffer, at: number): number {
    const byte = bytes[at];
    return byte === CR || byte === LF ? at + 1 : this.#fail('The multipart body continues after its last boundary', at);
  }

  #fail(message: string, at: number, param: string | null = null): number {
    this.status = 'invalid';
    this.problem = { message, param };
    return at;
  }
}

const isInvalid = ({ status }: BodyScan): boolean => status === 'invalid';
