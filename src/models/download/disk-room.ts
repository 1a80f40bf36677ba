/** Disk space of the store: reserves it for downloads, and explains failures to write. */
import { access, constants, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { explainWriteError, writeFileAtomically } from '../../files/write-file.ts';
import { fail, ok, type Failure, type Result } from '../../schema/words/failure.ts';
import { codeOf } from '../../platform/error-text.ts';

/** Carries a failure through code that returns something else. */
export class Failed extends Error {
  override readonly name = 'Failed';
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

export type DiskRoom = ReturnType<typeof createDiskRoom>;

/**
 * Stays free for logs and other programs: a full disk stops more than one download. A share of disks below 5 GiB, so
 * that a small volume can hold a model at all.
 */
const RESERVE = { mostBytes: 256 * 2 ** 20, share: 0.05 } as const;

type Reservation = Readonly<{ device: number; missing: () => number }>;

export function createDiskRoom() {
  const reservations = new Set<Reservation>();
  return {
    /** Reserves space until the result is disposed of. `missing` returns the bytes still to be written. */
    async reserve(directory: string, missing: () => number): Promise<Result<Disposable>> {
      const { dev: device } = await stat(directory);
      const disk = await statfs(directory);
      const freeBytes = disk.bavail * disk.bsize;
      // No await from here on: two downloads must not get the same space.
      const others = [...reservations].filter((other) => other.device === device);
      const othersBytes = others.reduce((sum, other) => sum + other.missing(), 0);
      const reserveBytes = Math.floor(Math.min(RESERVE.mostBytes, RESERVE.share * disk.blocks * disk.bsize));
      const missingBytes = missing();
      if (freeBytes - othersBytes < missingBytes + reserveBytes) {
        const taken = othersBytes === 0 ? '' : `, of which other downloads need ${othersBytes}`;
        const needed = `${missingBytes} are needed for the download, and ${reserveBytes} stay free for other programs`;
        const problem = `The disk of "${directory}" has ${freeBytes} free bytes${taken}, but ${needed}`;
        return fail('stalled', 'DiskFull', `${problem}; free disk space, or move the model store with "SVC_MODELS_DIR"`);
      }
      const own: Reservation = { device, missing };
      reservations.add(own);
      return ok({ [Symbol.dispose]: () => void reservations.delete(own) });
    },
  };
}

/** Looks at the closest existing parent, since `mkdir` fails with ENOENT on a read-only volume. */
export async function failUnlessWritable(directory: string): Promise<void> {
  try {
    await access(directory, constants.W_OK);
  } catch (error) {
    const above = path.dirname(directory);
    if (codeOf(error) !== 'ENOENT' || above === directory) throw error;
    await failUnlessWritable(above);
  }
}

export async function writeStoreFile(file: string, value: unknown): Promise<void> {
  await failUnlessWritable(path.dirname(file));
  await writeFileAtomically(file, `${JSON.stringify(value, undefined, 2)}\n`, { mode: 0o644, sync: true });
}

export function storageFailure(directory: string, error: unknown): Failure {
  const code = codeOf(error);
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') {
    const user = process.getuid?.() ?? 'of this process';
    const problem = `The model is missing or damaged and cannot be fetched, because "${directory}" is not writable (${code})`;
    const message = `${problem}; make it writable for user ${user}, or put the model there`;
    return { kind: 'stalled', reason: 'ModelStoreReadOnly', message };
  }
  const why = explainWriteError(directory, error);
  if (code === 'ENOSPC' || code === 'EDQUOT') return { kind: 'stalled', reason: 'DiskFull', message: why.replace(/^the/, 'The') };
  return { kind: 'retry', reason: 'ModelPullFailed', message: `The model cannot be written to "${directory}": ${why}` };
}
