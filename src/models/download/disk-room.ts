/** Checks that a disk has room for a download, beside what other downloads of this process still need there. */
import { stat, statfs, access, constants } from 'node:fs/promises';
import path from 'node:path';
import { fail, ok, type Result, type Failure } from '../../schema/words/failure.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';

export interface DiskRoom {
  /** Reserves room in the directory until the returned function is called. `missing` returns the bytes that are still to be written. */
  reserve(directory: string, missing: () => number): Promise<Result<() => void>>;
}

/** Left free on the disk, so that other programs can still write to it. */
const MARGIN_BYTES = 256 * 2 ** 20;

interface Reservation {
  readonly device: number;
  readonly missing: () => number;
}

export function createDiskRoom(): DiskRoom {
  const reservations = new Set<Reservation>();
  return {
    async reserve(directory, missing) {
      const { dev: device } = await stat(directory);
      const disk = await statfs(directory);
      const freeBytes = disk.bavail * disk.bsize;
      // Between here and the end of the function nothing waits, so two downloads cannot be given the same room.
      const others = [...reservations].filter((other) => other.device === device);
      const othersBytes = others.reduce((sum, other) => sum + other.missing(), 0);
      const neededBytes = missing() + MARGIN_BYTES;
      if (freeBytes - othersBytes < neededBytes)
        return fail('stalled', 'DiskFull', explain({ directory, freeBytes, othersBytes, neededBytes }));
      const own: Reservation = { device, missing };
      reservations.add(own);
      return ok(() => void reservations.delete(own));
    },
  };
}

interface Shortage {
  readonly directory: string;
  readonly freeBytes: number;
  readonly othersBytes: number;
  readonly neededBytes: number;
}

function explain({ directory, freeBytes, othersBytes, neededBytes }: Shortage): string {
  const others = othersBytes === 0 ? '' : `, of which other downloads need ${othersBytes}`;
  return `Free disk space in "${directory}", or move the model store with "SVC_MODELS_DIR": ${freeBytes} bytes are free${others}, but ${neededBytes} are needed`;
}

/** Fails where a store cannot be written to, before anything is made in it. */

/** Throws unless the directory, or the closest existing one above it, is writable. `mkdir` on a read-only volume fails with a misleading ENOENT. */
export async function failUnlessWritable(directory: string): Promise<void> {
  try {
    await access(directory, constants.W_OK);
  } catch (error) {
    const above = path.dirname(directory);
    if (codeOf(error) !== 'ENOENT' || above === directory) throw error;
    await failUnlessWritable(above);
  }
}

/** Explains why a model cannot be written below a directory. Pure. */

export function storageFailure(directory: string, error: unknown): Failure {
  const code = codeOf(error);
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') {
    const user = process.getuid?.() ?? 'of this process';
    const message = `Make "${directory}" writable for user ${user}, or put the model there: it is missing or damaged and cannot be fetched (${code})`;
    return { kind: 'stalled', reason: 'ModelStoreReadOnly', message };
  }
  const why = messageOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return { kind: 'stalled', reason: 'DiskFull', message: `Free disk space in "${directory}" for the model: ${why}` };
  }
  return { kind: 'retry', reason: 'ModelPullFailed', message: `The model cannot be written to "${directory}": ${why}` };
}
