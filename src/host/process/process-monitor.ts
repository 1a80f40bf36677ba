/**
 * Starts processes, and knows which are alive and how others ended: own children by their exit event, others by the
 * process table.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { ObservedWorkload } from '../../reconciler/ports.ts';
import type { WorkloadId } from '../../schema/words/names.ts';
import { observedProcess, processId, LAUNCHER } from './decide/process-facts.ts';
import type { ProcessExit, ProcessRecord, ProcessRecords } from './process-records.ts';
import type { ProcessMemoryReader } from '../process-memory.ts';
import type { ProcessTable } from './process-table.ts';
import { sleep } from '../../platform/clock.ts';
import { codeOf } from '../../platform/error-text.ts';

export type ProcessMonitor = ReturnType<typeof createProcessMonitor>;

const POLL_MS = 20;

export function createProcessMonitor(table: ProcessTable, records: ProcessRecords, memory: ProcessMemoryReader) {
  /** Exits of own children; undefined while they run. */
  const children = new Map<WorkloadId, ProcessExit | undefined>();

  const isAlive = async (record: ProcessRecord): Promise<boolean> => {
    if (record.exit !== undefined) return false;
    const id = processId(record);
    if (children.has(id)) return children.get(id) === undefined;
    if (record.bootId !== (await table.bootId())) return false;
    const identity = await table.read(record.pid);
    return identity !== undefined && identity.start === record.start && !identity.zombie;
  };

  /** A process of an earlier controller. */
  const unknownExit = async (record: ProcessRecord): Promise<ProcessExit> => {
    const rebooted = record.bootId !== (await table.bootId());
    return { at: Date.now(), message: rebooted ? 'The machine was restarted' : 'It ended while its controller was not running' };
  };

  return {
    isAlive,
    /** Whether the process ended in time and before the signal aborted. */
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
    /** Monitors an own child. Calls `onExit` after its exit was recorded. */
    adopt({ child, pid }: Launched, record: ProcessRecord, onExit: () => void): void {
      const id = processId(record);
      children.set(id, undefined);
      child.once('exit', (code, signal) => {
        const message = signal === null ? {} : { message: `Terminated by ${signal}` };
        const exit: ProcessExit = { at: Date.now(), code: exitCode(code, signal), ...message };
        children.set(id, exit);
        // Its descendants must not survive and occupy its port.
        signalGroup(pid, 'SIGKILL');
        void records.writeExit(record, exit).then(onExit, onExit);
      });
    },
    forget: (id: WorkloadId) => void children.delete(id),
  };
}

interface Launched {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Runs the program. Until then the launcher ends with this controller, so no unrecorded process runs. */
  go(): void;
  /** Ends it before `go()`. */
  drop(): void;
}

/** Program and arguments are passed as arguments, never parsed by the shell. */
const WAIT_THEN_EXEC = 'read -r go && exec "$@" </dev/null';

/** Starts a detached launcher that survives the controller. Resolves to an error message if that fails. */
export function launch(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  logFile: number,
): Promise<Launched | { readonly error: string }> {
  return new Promise((resolve) => {
    const child = spawn('/bin/sh', ['-c', WAIT_THEN_EXEC, LAUNCHER, ...command], {
      cwd: '/',
      detached: true,
      env,
      stdio: ['pipe', logFile, logFile],
    });
    child.once('error', (error) => resolve({ error: error.message }));
    // The process may have exited before `go()`.
    child.stdin?.on('error', () => undefined);
    child.once('spawn', () => {
      const { pid } = child;
      if (pid === undefined) return resolve({ error: 'It has no process id' });
      child.unref();
      return resolve({ child, pid, go: () => void child.stdin?.end('go\n'), drop: () => void child.stdin?.destroy() });
    });
  });
}

/** Exit code as in shells: 128 plus the number of the signal. Node passes one of the two. */
function exitCode(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}

/** Excludes the controller's `SVC_*` settings, which contain secrets. */
export function childEnv(
  own: Readonly<Record<string, string | undefined>>,
  workload: Readonly<Record<string, string>>,
): Record<string, string> {
  const inherited = ['PATH', 'HOME', 'LANG', 'TMPDIR'].flatMap((name): [string, string][] => {
    const value = own[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(inherited), ...workload };
}

/** Signals a process group; succeeds if it has exited. The caller has just checked that the group is ours. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (!['ESRCH', 'EPERM'].includes(codeOf(error))) throw error;
  }
}
