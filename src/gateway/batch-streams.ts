/** Writes bodies of answers. Joins small writes and reads of many streams, so that fewer system calls are needed. */
import type { ClientResponse } from './client-exchange.ts';

interface BatchedWriter {
  /** Writes what has been collected. Called once for each `add`. */
  writeBatch(): void;
}

/** Pieces that follow each other within this time are joined. */
const BATCH_MS = 1;

export type WriteBatcher = ReturnType<typeof createWriteBatcher>;

/**
 * Joins writes that follow each other within a millisecond. The first piece after a pause is written at once; pieces
 * that follow it closely are collected and go out together, because with many fast streams one system call per piece is
 * most of what the gateway costs.
 */
export function createWriteBatcher() {
  let queued: BatchedWriter[] = [];
  let timer: NodeJS.Timeout | undefined;

  function writeAll(): void {
    timer = undefined;
    const due = queued;
    queued = [];
    for (const writer of due) writer.writeBatch();
  }

  return {
    /** Calls `writeBatch` of the writer after about a millisecond. */
    add(writer: BatchedWriter) {
      queued.push(writer);
      timer ??= setTimeout(writeAll, BATCH_MS);
    },
  };
}

/** A complete body up to this size is sent in one write with its head, as a string of one character per byte. */
const JOINED_BODY_BYTES = 64 * 1024;
/** Larger pieces are written directly, and a batch that exceeds this is written early. */
const BATCH_BYTES = 16 * 1024;

/** Writes the body of one answer, once its head is known. */
export class AnswerWriter implements BatchedWriter {
  /** This class writes the chunk framing instead of Node. */
  framed = false;
  readonly #res: ClientResponse;
  readonly #batcher: WriteBatcher;
  #batch = '';
  #wroteAt = 0;

  constructor(res: ClientResponse, batcher: WriteBatcher) {
    this.#res = res;
    this.#batcher = batcher;
  }

  /** Returns false if the caller should wait until the response has drained. */
  write(bytes: Buffer): boolean {
    const res = this.#res;
    if (!this.framed) return res.write(bytes);
    if (bytes.length <= BATCH_BYTES) return this.#writeFrame(frameOf(bytes));
    this.writeBatch();
    res.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
    res.write(bytes);
    return res.write('\r\n', 'latin1');
  }

  /** Does not wait for more. */
  writeNow(text: string): void {
    this.#res.write(frameOf(Buffer.from(text)), 'latin1');
  }

  writeBatch(): void {
    if (this.#batch === '') return;
    const batch = this.#batch;
    this.#batch = '';
    if (!this.#res.destroyed) this.#res.write(batch, 'latin1');
  }

  end(bytes: Buffer): void {
    const res = this.#res;
    if (this.framed) {
      const large = bytes.length > BATCH_BYTES;
      if (large) this.write(bytes);
      const last = large ? '' : frameOf(bytes);
      res.end(`${this.#batch}${last}0\r\n\r\n`, 'latin1');
      this.#batch = '';
    } else if (bytes.length === 0) res.end();
    else if (bytes.length <= JOINED_BODY_BYTES) res.end(bytes.toString('latin1'), 'latin1');
    else res.end(bytes);
  }

  #writeFrame(frame: string): boolean {
    const now = performance.now();
    const soon = now - this.#wroteAt < BATCH_MS;
    this.#wroteAt = now;
    if (!soon && this.#batch === '') return this.#res.write(frame, 'latin1');
    if (this.#batch === '') this.#batcher.add(this);
    this.#batch += frame;
    if (this.#batch.length > BATCH_BYTES) this.writeBatch();
    return !this.#res.writableNeedDrain;
  }
}

/** An HTTP/1.1 chunk, one character per byte; empty for no bytes, since an empty chunk would end the body. */
const frameOf = (bytes: Buffer): string => (bytes.length === 0 ? '' : `${bytes.length.toString(16)}\r\n${bytes.toString('latin1')}\r\n`);

/** What reads a stream. */
interface Reads {
  hold(): void;
  release(): void;
}

/** Turns of the event loop that are shorter delay nobody noticeably. */
const LONG_TURN_MS = 8;
/** A stream is held for as many turns of that length, and no longer than this. */
const HELD_TURNS = 2;
const LONGEST_MS = 40;
const RELEASE_EVERY_MS = 4;

export type CoalesceReads = ReturnType<typeof createReadCoalescer>;

const SYSTEM = {
  now: (): number => performance.now(),
  /** Number of the event loop's present turn. */
  turn: (): number => performance.nodeTiming.uvMetricsInfo.loopCount,
  after: (ms: number, callback: () => void): unknown => setTimeout(callback, ms),
};

/**
 * Reads streams that have begun less often while the event loop is busy with them: each read then gets several events,
 * and the first events of new streams come sooner (docs/speed.md). Call the result for each piece of such a stream.
 */
export function createReadCoalescer({ now, turn, after } = SYSTEM): (reads: Reads) => void {
  let current = -1;
  let beganAt = 0;
  let lastAt = 0;
  let lastTurnMs = 0;
  let isTimed = false;
  const held: { readonly reads: Reads; readonly until: number }[] = [];

  function release(): void {
    const at = now();
    const first = held.findIndex(({ until }) => until > at);
    for (const { reads } of held.splice(0, first === -1 ? held.length : first)) reads.release();
    isTimed = held.length > 0;
    if (isTimed) after(RELEASE_EVERY_MS, release);
  }

  return (reads) => {
    const at = now();
    const present = turn();
    if (present !== current) {
      // Waiting for something to read is no part of it.
      lastTurnMs = lastAt - beganAt;
      [current, beganAt] = [present, at];
    }
    lastAt = at;
    const turnMs = Math.max(lastTurnMs, at - beganAt);
    if (turnMs < LONG_TURN_MS) return;
    reads.hold();
    held.push({ reads, until: at + Math.min(HELD_TURNS * turnMs, LONGEST_MS) });
    if (!isTimed) after(RELEASE_EVERY_MS, release);
    isTimed = true;
  };
}
