/** What the kernel says of the memory of a process, in `/proc/<pid>/status`. Pure. */

export interface ProcessMemory {
  /** Memory that is not a file: the heap, caches, and what is shared. */
  readonly ownBytes: number;
  /** Pages of files that are mapped, such as the weights of a model. */
  readonly mappedBytes: number;
}

/** Undefined for a process that has no memory, or where the kernel does not say. */
export function memoryOfProcess(status: string): ProcessMemory | undefined {
  const [anonymous, mapped, shared] = ['RssAnon', 'RssFile', 'RssShmem'].map((name) => bytesOf(status, name));
  if (anonymous === undefined || mapped === undefined) return undefined;
  return { ownBytes: anonymous + (shared ?? 0), mappedBytes: mapped };
}

/** Kernels write `RssAnon:	    1234 kB`. */
function bytesOf(status: string, name: string): number | undefined {
  const found = new RegExp(`^${name}:\\s+(\\d{1,15}) kB$`, 'm').exec(status)?.[1];
  return found === undefined ? undefined : Number(found) * 1024;
}

const MEASURED_FOR = { least: 200, most: 10_000 } as const;
/** A server that is stopped was measured in the last part of its life, however short that was. */
const PART_OF_LIFE = 1 / 4;

/**
 * Returns for how many milliseconds a measurement counts that was made `ageMs` after the first one. A server takes its memory while it starts, and one that shares memory
 * with others may have a turn of a second; after that, reading more often would cost more than it is worth.
 */
export function measuredForMs(ageMs: number): number {
  return Math.min(MEASURED_FOR.most, Math.max(MEASURED_FOR.least, ageMs * PART_OF_LIFE));
}

/** Rounded up, so that facts do not change with every page. */
const STEP = 64 * 2 ** 20;

export function sumOfProcesses(parts: readonly ProcessMemory[]): { readonly host: number; readonly mapped: number } | undefined {
  if (parts.length === 0) return undefined;
  const round = (bytes: number): number => Math.ceil(bytes / STEP) * STEP;
  return {
    host: round(parts.reduce((sum, { ownBytes }) => sum + ownBytes, 0)),
    // Processes of one server map the same file.
    mapped: round(Math.max(...parts.map(({ mappedBytes }) => mappedBytes))),
  };
}
