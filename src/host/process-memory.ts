/** Reads what a process and everything that it started use of the memory: often while it is young, and later once in a while. */
import { readFile } from 'node:fs/promises';
import type { ObservedWorkload } from '../reconciler/ports.ts';
import { measuredForMs, memoryOfProcess, sumOfProcesses, type ProcessMemory } from './decide/process-memory.ts';

type Used = ObservedWorkload['memoryBytes'];

/** What was not asked for since is forgotten. */
const KEPT_MS = 60_000;
/** A server has few processes. */
const MOST_PROCESSES = 64;

export interface ProcessMemoryReader {
  /** Undefined if there is no such process, or if the system does not say. */
  read(pid: number): Promise<Used>;
}

export function createProcessMemoryReader(procDir = '/proc'): ProcessMemoryReader {
  const known = new Map<number, { readonly since: number; readonly at: number; readonly used: Promise<Used> }>();
  const text = (path: string): Promise<string> => readFile(`${procDir}/${path}`, 'utf8').catch(() => '');

  async function readTree(pid: number): Promise<Used> {
    const parts: ProcessMemory[] = [];
    const left = [pid];
    for (let next = left.pop(); next !== undefined && parts.length < MOST_PROCESSES; next = left.pop()) {
      const [status, children] = await Promise.all([text(`${next}/status`), text(`${next}/task/${next}/children`)]);
      const memory = memoryOfProcess(status);
      if (memory !== undefined) parts.push(memory);
      left.push(
        ...children
          .split(' ')
          .map(Number)
          .filter((child) => child > 0),
      );
    }
    return sumOfProcesses(parts);
  }

  return {
    read(pid) {
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
