/** The names of one job at the server, all from what the gateway chose at random for the request, so that nobody can guess them. Pure. */
import { createHash } from 'node:crypto';

export interface JobNames {
  /** ComfyUI takes ids of clients if they are UUIDs. */
  readonly id: string;
  /** Of the files that it writes. */
  readonly filenamePrefix: string;
  /** For a request that names none: 53 bits, so that every program can repeat it. */
  readonly seed: bigint;
}

export function jobNames(random: string): JobNames {
  const digits = createHash('sha256').update(random).digest('hex');
  const id = [digits.slice(0, 8), digits.slice(8, 12), `4${digits.slice(13, 16)}`, `8${digits.slice(17, 20)}`, digits.slice(20, 32)].join(
    '-',
  );
  return { id, filenamePrefix: `svc/${id}`, seed: BigInt(`0x${digits.slice(32, 45)}`) };
}
