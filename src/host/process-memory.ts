/** Measures the memory of a process and its descendants: often while it is young, later less often. */
import { readFile } from 'node:fs/promises';
import type { ObservedWorkload } from '../reconciler/ports.ts';
import type { ReadDeviceMemory } from './hardware/device-memory.ts';

type Used = ObservedWorkload['memoryBytes'];

/** Measurements are dropped after this time without reads. */
const KEPT_MS = 60_000;
/** A server has few processes. */
const MOST_PROCESSES = 64;

export type ProcessMemoryReader = ReturnType<typeof createProcessMemoryReader>;

interface ProcessMemoryOptions {
  /** Default: device memory is unknown. */
  readonly devices?: ReadDeviceMemory | undefined;
  /** For tests. */
  readonly procDir?: string;
}

export function createProcessMemoryReader({ devices, procDir = '/proc' }: ProcessMemoryOptions = {}) {
  const known = new Map<number, { readonly since: number; readonly at: number; readonly used: Promise<Used> }>();
  const text = (path: string): Promise<string> => readFile(`${procDir}/${path}`, 'utf8').catch(() => '');

  async function readTree(pid: number): Promise<Used> {
    const parts: ProcessMemory[] = [];
    const pids: number[] = [];
    const left = [pid];
    for (let next = left.pop(); next !== undefined && parts.length < MOST_PROCESSES; next = left.pop()) {
      const [status, children] = await Promise.all([text(`${next}/status`), text(`${next}/task/${next}/children`)]);
      const memory = memoryOfProcess(status);
      if (memory !== undefined) parts.push(memory);
      pids.push(next);
      left.push(
        ...children
          .split(' ')
          .map(Number)
          .filter((child) => child > 0),
      );
    }
    return sumOfProcesses(parts, await devices?.(pids));
  }

  return {
    /** Undefined if there is no such process, or the system does not report it. */
    read(pid: number): Promise<Used> {
      const now = performance.now();
      const last = known.get(pid);
      if (last !== undefined && now - last.at < measuredForMs(last.at - last.since)) return last.used;
      for (const [other, { at }] of known) if (now - at > KEPT_MS) known.delete(other);
      const used = readTree(pid);
      known.set(pid, { since: last?.since ?? now, at: now, used });
      return used;
    },
  };
}

interface ProcessMemory {
  /** Heap, caches and shared memory. */
  readonly ownBytes: number;
  /** Mapped files, such as model weights. */
  readonly mappedBytes: number;
}

/** Parses `/proc/<pid>/status`. Undefined if it has no memory fields. */
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
/** A stopped server was measured in the last part of its life, however short. */
const PART_OF_LIFE = 1 / 4;

/**
 * Returns how long a measurement is used that was made `ageMs` after the first one. A server allocates while it starts,
 * and one that shares memory may run for a second; later, frequent reads are not worth their cost.
 */
export const measuredForMs = (ageMs: number): number => Math.min(MEASURED_FOR.most, Math.max(MEASURED_FOR.least, ageMs * PART_OF_LIFE));

/** Rounded up, so that facts do not change with every page. */
const STEP = 64 * 2 ** 20;

/** `deviceBytes`: device memory of all; undefined if unknown. */
export function sumOfProcesses(parts: readonly ProcessMemory[], deviceBytes?: number): Used {
  if (parts.length === 0) return undefined;
  const round = (bytes: number): number => Math.ceil(bytes / STEP) * STEP;
  return {
    host: round(parts.reduce((sum, { ownBytes }) => sum + ownBytes, 0)),
    // Processes of one server map the same file.
    mapped: round(Math.max(...parts.map(({ mappedBytes }) => mappedBytes))),
    ...(deviceBytes === undefined ? {} : { device: round(deviceBytes) }),
  };
}
