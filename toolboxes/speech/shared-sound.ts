/**
 * How the samples of a piece get from the server to the process of its engine: through one file that both have open. Messages between processes would serialize them, write them to a socket
 * in many parts, join those and copy them out of the message, which takes longer than to transcribe a short recording. The file loses its name as soon as it is open, so that nothing is left
 * of it when the processes end, however they end. It is as large as the largest piece so far. The engine has one order at a time, so that one file is enough.
 */
import { openSync, readSync, unlinkSync, write } from 'node:fs';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';

/** The file descriptor in the process of the engine, after the three standard ones and the channel for messages. */
const SHARED_SOUND_FD = 4;

const writeAt = promisify(write);

export interface SharedSound {
  /** File descriptor, for `stdio` of the process that reads. */
  readonly fd: number;
  /** Replaces what was there. Rejects if the disk is full. A busy disk keeps nothing else waiting. */
  write(samples: Float32Array): Promise<void>;
}

/** `directory`: where there is disk space for the longest piece, up to some megabytes. */
export function createSharedSound(directory: string): SharedSound {
  const file = path.join(directory, `${randomUUID()}.samples`);
  const fd = openSync(file, 'wx+', 0o600);
  unlinkSync(file);
  return {
    fd,
    async write(samples) {
      let at = 0;
      while (at < samples.byteLength) at += (await writeAt(fd, samples, at, samples.byteLength - at, at)).bytesWritten;
    },
  };
}

export interface SharedSoundReader {
  /** The first `count` samples that the server has written; they are valid until the next call. Throws if there are fewer. */
  read(count: number): Float32Array;
}

export function openSharedSound(fd: number = SHARED_SOUND_FD): SharedSoundReader {
  // Kept, because memory that is used for the first time costs more than the copy.
  let kept = new Float32Array(0);
  return {
    read(count) {
      if (kept.length < count) kept = new Float32Array(count);
      const samples = kept.subarray(0, count);
      let at = 0;
      while (at < samples.byteLength) {
        const bytes = readSync(fd, samples, at, samples.byteLength - at, at);
        if (bytes === 0) throw new Error(`The server announced ${count} samples and wrote fewer`);
        at += bytes;
      }
      return samples;
    },
  };
}
