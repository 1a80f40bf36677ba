/** A file with sound that was sent: in memory while it is small, so that a short recording never waits for the disk, else on disk, so that its size takes no memory. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { RefusalError, type Refusal } from './decide/refusal.ts';
import { freeMemory } from './free-memory.ts';

export interface Recording {
  /** Bytes. */
  readonly size: number;
  /** The complete file, if it is in memory. */
  readonly bytes: Buffer | undefined;
  /** Its path; writes it to disk if it is in memory only. */
  toFile(): Promise<string>;
  /** Frees its memory and disk space. */
  remove(): Promise<void>;
}

/** Bytes that all requests share. */
export interface Budget {
  used: number;
  readonly most: number;
}

export interface RecordingOptions {
  readonly directory: string;
  /** Bytes of one recording at most. */
  readonly limit: number;
  readonly disk: Budget;
  readonly memory: Budget;
}

/** Half a minute, as the models want it. The gateway keeps bodies up to this size in memory as well. */
export const SMALL_BYTES = 2 ** 20;

const DISK_FULL: Refusal = {
  status: 429,
  code: 'engine.queue_full',
  message: 'Send the request again later: too much audio is waiting already',
  retryAfter: 5,
};

/** A recording in memory, which belongs to the caller. */
export function recordingOf(bytes: Buffer, directory: string): Recording {
  const file = path.join(directory, `${randomUUID()}.audio`);
  let isWritten = false;
  return {
    size: bytes.length,
    bytes,
    async toFile() {
      isWritten = true;
      await writeFile(file, bytes, { mode: 0o600 });
      return file;
    },
    remove: async () => (isWritten ? rm(file, { force: true }) : undefined),
  };
}

/** Keeps a recording while it arrives. Throws a `RefusalError` if it is too large, or if there is no space for it. */
export async function keepRecording(stream: Readable & { readonly truncated: boolean }, options: RecordingOptions): Promise<Recording> {
  const { limit, memory } = options;
  let small: Buffer[] = [];
  let smallBytes = 0;
  let file: OpenFile | undefined;
  const leaveMemory = (): void => {
    small = [];
    memory.used -= smallBytes;
    smallBytes = 0;
  };
  try {
    for await (const chunk of stream) {
      if (file === undefined && smallBytes + chunk.length <= Math.min(SMALL_BYTES, smallBytes + memory.most - memory.used)) {
        small.push(chunk);
        smallBytes += chunk.length;
        memory.used += chunk.length;
        continue;
      }
      file ??= createFile(options);
      for (const earlier of small) await file.write(earlier);
      leaveMemory();
      await file.write(chunk);
    }
    if (stream.truncated) {
      const message = `Send at most ${limit} bytes of audio, or compress it: the file is larger`;
      throw new RefusalError({ status: 413, code: 'request.too_large', message, param: 'file' });
    }
    if (file !== undefined) return await file.end();
    const bytes = joined(small, smallBytes);
    const recording = recordingOf(bytes, options.directory);
    small = [];
    return {
      ...recording,
      async remove() {
        leaveMemory();
        freeMemory(bytes);
        await recording.remove();
      },
    };
  } catch (error) {
    leaveMemory();
    await file?.remove();
    stream.resume();
    throw error;
  }
}

/** In memory of its own that starts at offset 0, so that samples of 16 bits can be read as such. */
function joined(chunks: readonly Buffer[], size: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(bytes, at);
  return bytes;
}

interface OpenFile {
  write(chunk: Buffer): Promise<void>;
  /** Resolves once everything is on disk. */
  end(): Promise<Recording>;
  remove(): Promise<void>;
}

function createFile({ directory, disk }: RecordingOptions): OpenFile {
  const file = path.join(directory, `${randomUUID()}.audio`);
  const out = createWriteStream(file, { flags: 'wx', mode: 0o600 });
  // A full disk is noticed below; an error after the end of the request concerns nobody.
  out.on('error', () => undefined);
  let size = 0;
  const remove = async (): Promise<void> => {
    disk.used -= size;
    size = 0;
    out.destroy();
    // The file may still be on its way to be opened.
    if (!out.closed) await new Promise<void>((resolve) => out.once('close', resolve));
    await rm(file, { force: true });
  };
  return {
    async write(chunk) {
      if (out.errored !== null) throw out.errored;
      size += chunk.length;
      disk.used += chunk.length;
      if (disk.used > disk.most) throw new RefusalError(DISK_FULL);
      if (!out.write(chunk)) await once(out, 'drain');
    },
    async end() {
      out.end();
      await finished(out);
      return { size, bytes: undefined, toFile: async () => file, remove };
    },
    remove,
  };
}
