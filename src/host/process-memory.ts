/** Measures memory and work of a process and its descendants: memory often while it is young, later less often. */
import { readFile } from 'node:fs/promises';
import type { ObservedWorkload, Work } from '../reconciler/ports.ts';
import { bytesOfKey } from './hardware/decide/hardware-of.ts';
import { readClients, type ReadDeviceMemory } from './hardware/device-memory.ts';

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

  async function listTree(pid: number): Promise<readonly number[]> {
    const pids = [pid];
    for (const each of pids) {
      const children = (await text(`${each}/task/${each}/children`)).split(' ').map(Number);
      pids.push(...children.filter((child) => child > 0).slice(0, MOST_PROCESSES - pids.length));
    }
    return pids;
  }

  async function readTree(pid: number): Promise<Used> {
    const pids = await listTree(pid);
    const parts = await Promise.all(pids.map(async (each) => memoryOfProcess(await text(`${each}/status`)) ?? []));
    return sumOfProcesses(parts.flat(), await devices?.(pids));
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
    /** Measured anew each time. Undefined as above. */
    async work(pid: number): Promise<Work | undefined> {
      const pids = await listTree(pid);
      const times = (await Promise.all(pids.map(async (each) => cpuMsOf(await text(`${each}/stat`)) ?? []))).flat();
      if (times.length === 0) return undefined;
      const clients = (await Promise.all(pids.map(async (each) => await readClients(`${procDir}/${each}`)))).flat();
      // Duplicated and inherited files count the same time.
      const counted = [...new Map(clients.map((client) => [`${client.pciAddress} ${client.id}`, client.busyMs ?? []])).values()].flat();
      return { cpuMs: sum(times), deviceMs: counted.length === 0 ? undefined : sum(counted) };
    },
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** `sysconf(_SC_CLK_TCK)` is 100 on every architecture that Node supports. */
const TICK_MS = 10;
/** A page that is read from a disk takes about as long, in which the process waits. */
const PAGE_READ_MS = 1;

/** Parses `/proc/<pid>/stat` (proc_pid_stat(5)). Undefined if there is no such process. */
export function cpuMsOf(stat: string): number | undefined {
  // The name of the program, in parentheses, may contain any character.
  const found = /^.*\)(?: \S+){9} (\d+) \d+ (\d+) (\d+) /s.exec(stat)?.slice(1).map(Number);
  const [pageReads = 0, userTicks = 0, systemTicks = 0] = found ?? [];
  return found && pageReads * PAGE_READ_MS + (userTicks + systemTicks) * TICK_MS;
}

interface ProcessMemory {
  /** Heap, caches and shared memory. */
  readonly ownBytes: number;
  /** Mapped files, such as model weights. */
  readonly mappedBytes: number;
}

/** Parses `/proc/<pid>/status`. Undefined if it has no memory fields. */
export function memoryOfProcess(status: string): ProcessMemory | undefined {
  const [anonymous, mapped, shared] = ['RssAnon', 'RssFile', 'RssShmem'].map((name) => bytesOfKey(status, name));
  if (anonymous === undefined || mapped === undefined) return undefined;
  return { ownBytes: anonymous + (shared ?? 0), mappedBytes: mapped };
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
