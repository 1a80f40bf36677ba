/** Knows which recorded processes are alive and how the others ended: our own children by their exit event, the others by the process table. */
import type { ObservedWorkload } from '../../reconciler/ports.ts';
import type { WorkloadId } from '../../schema/words/names.ts';
import { observedProcess, processId } from './decide/process-facts.ts';
import { exitCode, signalGroup, type Launched } from './process-launch.ts';
import type { ProcessExit, ProcessRecord, ProcessRecords } from './process-records.ts';
import type { ProcessMemoryReader } from '../process-memory.ts';
import type { ProcessTable } from './process-table.ts';
import { sleep } from '../../platform/pause.ts';

export type ProcessMonitor = ReturnType<typeof createProcessMonitor>;

const POLL_MS = 20;

export function createProcessMonitor(table: ProcessTable, records: ProcessRecords, memory: ProcessMemoryReader) {
  /** Our own children; undefined while they run. */
  const children = new Map<WorkloadId, ProcessExit | undefined>();

  const isAlive = async (record: ProcessRecord): Promise<boolean> => {
    if (record.exit !== undefined) return false;
    const id = processId(record);
    if (children.has(id)) return children.get(id) === undefined;
    if (record.bootId !== (await table.bootId())) return false;
    const identity = await table.read(record.pid);
    return identity !== undefined && identity.start === record.start && !identity.zombie;
  };

  /** The process of an earlier controller has ended. */
  const unknownExit = async (record: ProcessRecord): Promise<ProcessExit> => {
    const rebooted = record.bootId !== (await table.bootId());
    return { at: Date.now(), message: rebooted ? 'The machine was restarted' : 'It ended while its controller was not running' };
  };

  return {
    isAlive,
    /** Returns whether the process ended within this time and before the signal aborted. */
    async waitForExit(record: ProcessRecord, withinMs: number, signal: AbortSignal): Promise<boolean> {
      const deadline = performance.now() + withinMs;
      while (await isAlive(record)) {
        if (performance.now() >= deadline || signal.aborted) return false;
        await sleep(POLL_MS, signal);
      }
      return true;
    },
    async observe(record: ProcessRecord): Promise<ObservedWorkload> {
      if (await isAlive(record)) {
        const [argv, env, memoryBytes] = await Promise.all([table.argv(record.pid), table.env(record.pid), memory.read(record.pid)]);
        return { ...observedProcess(record, { phase: 'running', argv, env }), ...(memoryBytes === undefined ? {} : { memoryBytes }) };
      }
      const exit = record.exit ?? children.get(processId(record)) ?? (await unknownExit(record));
      if (record.exit === undefined) void records.writeExit(record, exit).catch(() => undefined);
      return observedProcess({ ...record, exit }, { phase: 'exited' });
    },
    /** Monitors a child of this controller. Calls `onExit` after its exit was recorded. */
    adopt({ child, pid }: Launched, record: ProcessRecord, onExit: () => void): void {
      const id = processId(record);
      children.set(id, undefined);
      child.once('exit', (code, signal) => {
        const message = signal === null ? {} : { message: `Terminated by ${signal}` };
        const exit: ProcessExit = { at: Date.now(), code: exitCode(code, signal), ...message };
        children.set(id, exit);
        // Its own children must not survive it and occupy its port.
        signalGroup(pid, 'SIGKILL');
        void records.writeExit(record, exit).then(onExit, onExit);
      });
    },
    forget: (id: WorkloadId) => void children.delete(id),
  };
}
