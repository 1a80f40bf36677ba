/** A request body on disk, in a file that is unlinked at once, so that nothing outlives the process. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, unlink, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import type { BufferBudget } from '../traffic/traffic.ts';

export interface SpoolOptions {
  readonly directory: string;
  readonly budget: BufferBudget;
  /** This many appended bytes are on disk now. */
  readonly onWritten: (bytes: number) => void;
  /** Called once; the spool is useless afterwards. */
  readonly onFailed: (error: unknown) => void;
}

/** Bytes read at once: few calls, and small enough that many flows fit into memory. */
const PIECE_BYTES = 128 * 1024;

interface SpoolFlowSink {
  /** Returns false if the flow should wait for `resume`. */
  write(bytes: Buffer): boolean;
  end(): void;
  fail(error: unknown): void;
}

export type SpoolFlow = ReturnType<typeof startFlow>;

const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export class BodySpool {
  waitingBytes = 0;
  readonly #options: SpoolOptions;
  #handle: FileHandle | undefined;
  #queue: Buffer[] = [];
  #appended = 0;
  #written = 0;
  #writing = false;
  #ended = false;
  #closed = false;
  #waiters: (() => void)[] = [];

  constructor(options: SpoolOptions) {
    this.#options = options;
  }

  /** Returns false if the limit of the disk space is reached. */
  append(chunk: Buffer): boolean {
    if (!this.#options.budget.reserve(chunk.length)) return false;
    this.#queue.push(chunk);
    this.#appended += chunk.length;
    this.waitingBytes += chunk.length;
    if (!this.#writing) void this.#write();
    return true;
  }

  end(): void {
    this.#ended = true;
    this.#wakeReaders();
  }

  /** Waits for bytes to be written. None at the end, undefined after `close`. Rejects if the disk fails. */
  async read(from: number, bytes: number): Promise<Buffer | undefined> {
    while (this.#written <= from && !this.#isAtEnd() && !this.#closed) await new Promise<void>((resolve) => this.#waiters.push(resolve));
    if (this.#closed || this.#handle === undefined) return undefined;
    const wanted = Math.max(0, Math.min(bytes, this.#written - from));
    const { buffer, bytesRead } = await this.#handle.read(Buffer.allocUnsafe(wanted), 0, wanted, from);
    return this.#isClosed() ? undefined : buffer.subarray(0, bytesRead);
  }

  /** Sends the body to a sink, also while its end is still on its way. */
  flowTo(sink: SpoolFlowSink): SpoolFlow {
    return startFlow(this, sink);
  }

  /** Frees the disk space. Later calls do nothing. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue = [];
    this.#options.budget.release(this.#appended);
    this.#wakeReaders();
    if (!this.#writing) void this.#handle?.close().catch(() => undefined);
  }

  #isClosed(): boolean {
    return this.#closed;
  }

  #isAtEnd(): boolean {
    return this.#ended && this.waitingBytes === 0;
  }

  #wakeReaders(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }

  async #write(): Promise<void> {
    this.#writing = true;
    try {
      this.#handle ??= await openNameless(this.#options.directory);
      for (let chunk = this.#queue.shift(); chunk !== undefined; chunk = this.#queue.shift()) await this.#writeChunk(this.#handle, chunk);
    } catch (error) {
      if (!this.#closed) this.#options.onFailed(error);
    } finally {
      this.#writing = false;
      if (this.#closed) await this.#handle?.close().catch(() => undefined);
    }
  }

  async #writeChunk(handle: FileHandle, chunk: Buffer): Promise<void> {
    for (let done = 0; done < chunk.length && !this.#closed;) {
      const { bytesWritten } = await handle.write(chunk, done, chunk.length - done, this.#written);
      done += bytesWritten;
      this.#written += bytesWritten;
      this.waitingBytes -= bytesWritten;
    }
    if (this.#closed) return;
    this.#wakeReaders();
    this.#options.onWritten(chunk.length);
  }
}

async function openNameless(directory: string): Promise<FileHandle> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = path.join(directory, randomUUID());
  const handle = await open(file, FLAGS, 0o600);
  await unlink(file);
  return handle;
}

function startFlow(spool: Pick<BodySpool, 'read'>, sink: SpoolFlowSink) {
  let at = 0;
  let isDone = false;
  let isStopped = false;
  let resume: (() => void) | undefined;

  async function run(): Promise<void> {
    for (;;) {
      const bytes = await spool.read(at, PIECE_BYTES);
      if (isStopped || bytes === undefined) return;
      if (bytes.length === 0) {
        isDone = true;
        return sink.end();
      }
      at += bytes.length;
      if (!sink.write(bytes)) await new Promise<void>((resolve) => (resume = resolve));
    }
  }

  run().catch((error: unknown) => {
    if (!isStopped) sink.fail(error);
  });
  return {
    isDone: () => isDone,
    resume: () => resume?.(),
    stop() {
      isStopped = true;
      resume?.();
    },
  };
}
