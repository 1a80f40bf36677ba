/** What has been read of a request body and can be read again: in memory, or on disk from the moment of `moveToDisk`. It knows the budgets of both. */
import { codeOf } from '../../platform/error-text.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import { BodySpool, startSpoolFlow, type SpoolFlow, type SpoolFlowSink } from './body-spool.ts';
import type { ExchangeDeps } from '../exchange-deps.ts';
import type { ReadMemory } from '../client-exchange.ts';
import type { UpstreamConnection } from '../upstream/upstream-connection.ts';

/** Reading pauses while more than this waits for the disk. */
const DISK_QUEUE_BYTES = 1024 * 1024;

interface KeptBodyOwner {
  /** The body cannot be kept. */
  fail(code: ErrorCode, message: string): void;
  /** The disk is slower than the client. */
  pauseReading(): void;
  resumeReading(): void;
}

export type KeptBodyDeps = Pick<ExchangeDeps, 'settings' | 'budget' | 'spoolBudget'>;

export class KeptBody {
  readonly #pieces = new BodyPieces();
  readonly #deps: KeptBodyDeps;
  readonly #owner: KeptBodyOwner;
  readonly #memory: ReadMemory;
  #reservedBytes = 0;
  #spool: BodySpool | undefined;
  #flow: SpoolFlow | undefined;
  #released = false;

  constructor(deps: KeptBodyDeps, memory: ReadMemory, owner: KeptBodyOwner) {
    this.#deps = deps;
    this.#memory = memory;
    this.#owner = owner;
  }

  /** Nothing if the body is on disk. */
  get chunks(): readonly Buffer[] {
    return this.#pieces.chunks;
  }

  get isOnDisk(): boolean {
    return this.#spool !== undefined;
  }

  /** Returns false, after a call of the owner, if the body cannot be kept. */
  add(chunk: Buffer): boolean {
    if (!this.reserve(chunk.length)) {
      this.#owner.fail('server.overloaded', 'Try again later: request bodies fill the memory reserved for them ("SVC_BUFFER_LIMIT")');
      return false;
    }
    if (this.#spool !== undefined) return this.#append(this.#spool, chunk);
    if (this.#pieces.add(chunk) === 'kept') this.#memory.add(chunk);
    return true;
  }

  moveToDisk(): void {
    const { settings, spoolBudget } = this.#deps;
    this.#memory.leave();
    const spool = new BodySpool({
      directory: `${settings.SVC_STATE_DIR}/uploads`,
      budget: spoolBudget,
      onWritten: (bytes) => this.#onWritten(spool, bytes),
      onFailed: (error) => this.#diskFailed(error),
    });
    this.#spool = spool;
    for (const chunk of this.chunks) if (!this.#append(spool, chunk)) return;
    this.#pieces.clear();
  }

  /** The body is complete. `joined`: as one buffer. */
  end(joined: boolean): void {
    if (joined) this.#pieces.join();
    this.#spool?.end();
  }

  /** Reads up to `bytes` bytes from an offset; fewer only at the end of a piece or of the body. */
  async read(from: number, bytes: number): Promise<Uint8Array | undefined> {
    if (this.#spool !== undefined) return await this.#spool.read(from, bytes);
    let offset = from;
    for (const chunk of this.chunks) {
      if (offset < chunk.length) return chunk.subarray(offset, offset + bytes);
      offset -= chunk.length;
    }
    return Buffer.alloc(0);
  }

  /** Sends a body that is on disk, also while its end is on its way. Ends an earlier flow. */
  flowTo(sink: Omit<SpoolFlowSink, 'fail'>): void {
    this.stopFlow();
    if (this.#spool !== undefined) this.#flow = startSpoolFlow(this.#spool, { ...sink, fail: (error) => this.#diskFailed(error) });
  }

  resumeFlow(): void {
    this.#flow?.resume();
  }

  stopFlow(): void {
    this.#flow?.stop();
    this.#flow = undefined;
  }

  /** The connection has all of the body. */
  get isSent(): boolean {
    return this.#flow?.isDone() !== false;
  }

  /** Reserves memory besides that of the body, until it is released. Returns false if there is none left. */
  reserve(bytes: number): boolean {
    if (!this.#deps.budget.reserve(bytes)) return false;
    this.#reservedBytes += bytes;
    return true;
  }

  /** Replaces a body in memory, for which the caller has reserved memory. Returns its number of bytes. */
  replace(pieces: readonly Buffer[]): number {
    this.#memory.leave();
    this.#pieces.clear();
    this.#pieces.chunks = [...pieces];
    return pieces.reduce((bytes, piece) => bytes + piece.length, 0);
  }

  clearMemory(): void {
    this.#pieces.clear();
  }

  /** Frees memory and disk space. Later calls do nothing. */
  release(): void {
    this.#released = true;
    this.#pieces.clear();
    this.stopFlow();
    this.#spool?.close();
    this.#deps.budget.release(this.#reservedBytes);
    this.#reservedBytes = 0;
  }

  #append(spool: BodySpool, chunk: Buffer): boolean {
    if (!spool.append(chunk)) {
      this.#owner.fail('server.overloaded', 'Try again later: uploads fill the disk space reserved for them ("SVC_SPOOL_LIMIT")');
      return false;
    }
    if (spool.waitingBytes > DISK_QUEUE_BYTES) this.#owner.pauseReading();
    return true;
  }

  #onWritten(spool: BodySpool, bytes: number): void {
    if (this.#released) return;
    this.#deps.budget.release(bytes);
    this.#reservedBytes -= bytes;
    if (spool.waitingBytes <= DISK_QUEUE_BYTES / 2) this.#owner.resumeReading();
  }

  #diskFailed(error: unknown): void {
    if (this.#released) return;
    this.#owner.fail('server.overloaded', `Try again later: the upload cannot be kept on disk (${codeOf(error) || 'the disk failed'})`);
  }
}

/**
 * The pieces of a request body in memory. Pieces that arrive are allocated one by one by the system's allocator, which keeps the memory of hundreds of
 * megabytes of them long after they are free. So the pieces of a large body are copied into segments that are mapped from the system and unmapped when they are free.
 */

/** Bodies up to this size, which are nearly all, stay in the pieces in which they arrived, and so does the beginning of a body that flows. */
const COPIED_FROM_BYTES = 1024 * 1024 + 64 * 1024;
/** The last segment of a body is only partly used, and mapping one takes as long as copying a few kilobytes. */
const SEGMENT_BYTES = 1024 * 1024;

/** A class for speed, since there is one per request. */
class BodyPieces {
  chunks: Buffer[] = [];
  bytes = 0;
  #segment: Buffer | undefined;
  /** Bytes used in the last segment. */
  #used = 0;

  /** Says what became of the chunk. */
  add(chunk: Buffer): 'kept' | 'copied' {
    this.bytes += chunk.length;
    if (this.bytes <= COPIED_FROM_BYTES) {
      this.chunks.push(chunk);
      return 'kept';
    }
    let at = 0;
    while (at < chunk.length) {
      const segment = this.#segment ?? this.#newSegment();
      const count = chunk.copy(segment, this.#used, at);
      // The last piece is replaced by a longer view of the same segment.
      if (this.#used > 0) this.chunks.pop();
      this.#used += count;
      at += count;
      this.chunks.push(segment.subarray(0, this.#used));
      if (this.#used === SEGMENT_BYTES) this.#segment = undefined;
    }
    return 'copied';
  }

  /** Joins all pieces into one buffer. */
  join(): void {
    if (this.chunks.length > 1) this.chunks = [Buffer.concat(this.chunks)];
  }

  clear(): void {
    this.chunks = [];
    this.#segment = undefined;
  }

  #newSegment(): Buffer {
    // A buffer that may grow is mapped as a whole, whatever its size.
    const segment = Buffer.from(new ArrayBuffer(SEGMENT_BYTES, { maxByteLength: SEGMENT_BYTES }));
    this.#segment = segment;
    this.#used = 0;
    return segment;
  }
}

/** Writes the body of a request to a connection piece by piece, in chunks if its length was not known when the request began. */

export class BodyWriter {
  readonly #connection: UpstreamConnection;
  readonly #chunked: boolean;
  readonly #memory: ReadMemory;

  constructor(connection: UpstreamConnection, chunked: boolean, memory: ReadMemory) {
    this.#connection = connection;
    this.#chunked = chunked;
    this.#memory = memory;
  }

  /** Returns false if the caller should wait until the connection has drained. */
  write(bytes: Buffer): boolean {
    const connection = this.#connection;
    if (!this.#chunked) return connection.write(bytes);
    connection.write(`${bytes.length.toString(16)}\r\n`);
    connection.write(bytes);
    return connection.write('\r\n');
  }

  /** Frees the memory of what was written and is not kept, unless some of it waits in the connection. */
  freeWritten(): void {
    if (this.#connection.hasWrittenAll) this.#memory.free();
  }

  end(): void {
    if (this.#chunked) this.#connection.write('0\r\n\r\n');
    this.#connection.endRequest();
  }
}
