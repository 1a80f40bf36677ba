/** The part of a request body that was read and can be sent again: in memory, or on disk after `moveToDisk`. */
import { codeOf } from '../../platform/error-text.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import type { ClientRequest } from '../client-exchange.ts';
import type { RequestEvents } from '../request-events.ts';
import type { BufferBudget } from '../traffic/traffic.ts';
import type { UpstreamConnection } from '../upstream/upstream-connection.ts';
import { BodyPieces, type ReadMemory } from './body-memory.ts';
import type { BodySpool, SpoolFlow, SpoolOptions } from './body-spool.ts';

/** Reading pauses while more than this waits for the disk. */
const DISK_QUEUE_BYTES = 1024 * 1024;

export const BODIES_FILL_MEMORY = 'Request bodies fill the memory reserved for them ("SVC_BUFFER_LIMIT"): try again later';

export interface KeptBodyDeps {
  readonly settings: Pick<Settings, 'SVC_STATE_DIR'>;
  readonly budget: BufferBudget;
  readonly spoolBudget: BufferBudget;
  readonly extensions: { openSpool(options: SpoolOptions): BodySpool };
}

export class KeptBody {
  readonly #pieces = new BodyPieces();
  readonly #deps: KeptBodyDeps;
  readonly #req: Pick<ClientRequest, 'pause' | 'resume'>;
  readonly #memory: ReadMemory;
  readonly #events: Pick<RequestEvents, 'fail'>;
  #reservedBytes = 0;
  #spool: BodySpool | undefined;
  #flow: SpoolFlow | undefined;
  #released = false;

  constructor(deps: KeptBodyDeps, req: Pick<ClientRequest, 'pause' | 'resume'>, memory: ReadMemory, events: Pick<RequestEvents, 'fail'>) {
    this.#deps = deps;
    this.#req = req;
    this.#memory = memory;
    this.#events = events;
  }

  get chunks(): readonly Buffer[] {
    return this.#pieces.chunks;
  }

  get isOnDisk(): boolean {
    return this.#spool !== undefined;
  }

  get isSent(): boolean {
    return this.#flow?.isDone() !== false;
  }

  /** Returns false, after `fail`, if the body cannot be kept. */
  add(chunk: Buffer): boolean {
    if (!this.reserve(chunk.length)) {
      this.#events.fail('server.overloaded', BODIES_FILL_MEMORY);
      return false;
    }
    if (this.#spool !== undefined) return this.#append(this.#spool, chunk);
    if (this.#pieces.add(chunk) === 'kept') this.#memory.add(chunk);
    return true;
  }

  moveToDisk(): void {
    this.#memory.leave();
    const spool = this.#deps.extensions.openSpool({
      directory: `${this.#deps.settings.SVC_STATE_DIR}/uploads`,
      budget: this.#deps.spoolBudget,
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

  /** Reads up to `bytes` bytes from an offset; fewer only at the end of a chunk or of the body. */
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
  flowTo(write: (bytes: Buffer) => boolean, end: () => void): void {
    this.stopFlow();
    this.#flow = this.#spool?.flowTo({ write, end, fail: (error) => this.#diskFailed(error) });
  }

  resumeFlow(): void {
    this.#flow?.resume();
  }

  stopFlow(): void {
    this.#flow?.stop();
    this.#flow = undefined;
  }

  /** Reserves memory until the body is released. Returns false if there is none left. */
  reserve(bytes: number): boolean {
    if (!this.#deps.budget.reserve(bytes)) return false;
    this.#reservedBytes += bytes;
    return true;
  }

  /** Replaces a body in memory, for which the caller has reserved memory. */
  replace(pieces: readonly Buffer[]): void {
    this.#memory.leave();
    this.#pieces.clear();
    this.#pieces.chunks = [...pieces];
  }

  clearMemory(): void {
    this.#pieces.clear();
  }

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
      this.#events.fail('server.overloaded', 'Uploads fill the disk space reserved for them ("SVC_SPOOL_LIMIT"): try again later');
      return false;
    }
    if (spool.waitingBytes > DISK_QUEUE_BYTES) this.#req.pause();
    return true;
  }

  #onWritten(spool: BodySpool, bytes: number): void {
    if (this.#released) return;
    this.#deps.budget.release(bytes);
    this.#reservedBytes -= bytes;
    if (spool.waitingBytes <= DISK_QUEUE_BYTES / 2) this.#req.resume();
  }

  #diskFailed(error: unknown): void {
    if (this.#released) return;
    this.#events.fail('server.overloaded', `The upload cannot be kept on disk (${codeOf(error) || 'the disk failed'}): try again later`);
  }
}

/** Writes the body of a request to a connection, in HTTP chunks if its length was not known when the request began. */
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

  get hasWrittenAll(): boolean {
    return this.#connection.hasWrittenAll;
  }

  /** Frees the memory of what was written and is not kept, unless some of it waits in the connection. */
  freeWritten(): void {
    if (this.hasWrittenAll) this.#memory.free();
  }

  end(): void {
    if (this.#chunked) this.#connection.write('0\r\n\r\n');
    this.#connection.endRequest();
  }
}
