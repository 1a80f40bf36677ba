/** Checks that a disk has room for a download, beside what other downloads of this process still need there. */
import { stat, statfs } from 'node:fs/promises';
import { fail, ok, type Result } from '../../schema/words/failure.ts';

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
