/**
 * Starts processes, and knows which are alive and how others ended: own children by their exit event, others by the
 * process table.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { ObservedWorkload } from '../../reconciler/ports.ts';
import type { WorkloadId } from '../../schema/words/names.ts';
import { checkPortFree, countOomKills, isKilledByKernel } from '../host-probe.ts';
import { isOfOneStart, observedProcess, processId, LAUNCHER, LEADER } from './decide/process-facts.ts';
import { createRecordFiles, type ProcessExit, type ProcessRecord, type ProcessRecords } from './process-records.ts';
import { createProcessMemoryReader, type ProcessMemoryReader } from '../process-memory.ts';
import { createProcessLogs } from './process-logs.ts';
import { createProcessTable, type findMarked } from './process-table.ts';
import { sleep } from '../../platform/clock.ts';
import { codeOf } from '../../platform/error-text.ts';
import { inTurns } from '../../platform/semaphore.ts';

export type ProcessMonitor = ReturnType<typeof createProcessMonitor>;

const POLL_MS = 20;
/** Delay until the end of another controller's process is noticed; own children are noticed immediately. */
const WATCH_MS = 1000;
/** Logs are looked at, and unchanged records read again, once in so many rounds. */
const ROUNDS = 5;
/** Only a process stuck in the kernel survives SIGKILL longer. */
export const KILL_WAIT_MS = 10_000;

/** `search` finds the running processes of this state directory. */
export function createProcessMonitor(
  system: ProcessSystem,
  records: ProcessRecords,
  memory: ProcessMemoryReader,
  search: () => ReturnType<typeof findMarked>,
) {
  const { table } = system;
  /** Exits of own children; undefined while they run. */
  const children = new Map<WorkloadId, ProcessExit | undefined>();
  let boot: string | undefined;
  /** Kills by the kernel before the last exit. */
  let oomKills: number | undefined;

  /** Whether the kernel has killed a process for want of memory since the last call. */
  const isOutOfMemory = async (): Promise<boolean> => {
    const before = oomKills;
    oomKills = (await system.oomKills()) ?? before;
    return before !== undefined && oomKills !== undefined && oomKills > before;
  };

  /** Processes end with the machine, so this is no crash. An empty id is unknown. */
  const isOfEarlierBoot = async ({ bootId }: ProcessRecord): Promise<boolean> => {
    boot ??= await table.bootId();
    return bootId !== '' && boot !== '' && bootId !== boot;
  };

  /** Rejects if that cannot be told. */
  const isAlive = async (record: ProcessRecord): Promise<boolean> => {
    if (record.exit !== undefined) return false;
    const id = processId(record);
    if (children.has(id)) return children.get(id) === undefined;
    if (await isOfEarlierBoot(record)) return false;
    const identity = await table.read(record.pid);
    return identity !== undefined && identity.start === record.start && !identity.zombie;
  };

  /**
   * Kills what a dead server left behind; it would keep memory and port. Returns whether it is gone. Process groups are
   * reused, so the environment proves whose a process is. A group exists until its last process has ended.
   */
  const endDescendants = async (record: ProcessRecord): Promise<boolean> => {
    const deadline = system.now() + KILL_WAIT_MS;
    for (;;) {
      const marked = await search();
      if (marked === undefined && children.has(processId(record))) system.signal(-record.pid, 'SIGKILL');
      const left = (marked ?? []).filter((each) => isOfOneStart(each.record, record));
      if (left.length === 0) return true;
      if (system.now() >= deadline) return false;
      for (const each of left) system.signal(each.group === record.pid ? -record.pid : each.record.pid, 'SIGKILL');
      await system.sleep(POLL_MS);
    }
  };

  return {
    isAlive,
    isOfEarlierBoot,
    endDescendants,
    /** Whether the process ended in time and before the signal aborted. */
    async waitForExit(record: ProcessRecord, withinMs: number, signal: AbortSignal): Promise<boolean> {
      const deadline = system.now() + withinMs;
      while (await isAlive(record)) {
        if (system.now() >= deadline || signal.aborted) return false;
        await system.sleep(POLL_MS, signal);
      }
      return true;
    },
    work: async (record: ProcessRecord | undefined) =>
      record !== undefined && (await isAlive(record)) ? await memory.work(record.pid) : undefined,
    async observe(record: ProcessRecord): Promise<ObservedWorkload> {
      if (await isAlive(record)) {
        const [argv, env, memoryBytes] = await Promise.all([table.argv(record.pid), table.env(record.pid), memory.read(record.pid)]);
        return { ...observedProcess(record, { phase: 'running', argv, env }), ...(memoryBytes === undefined ? {} : { memoryBytes }) };
      }
      const unknown = { at: system.wallNow(), message: 'It ended while its controller was not running' };
      const exit = record.exit ?? children.get(processId(record)) ?? unknown;
      if (record.exit === undefined) {
        void records.writeExit(record, exit).catch(() => undefined);
        void endDescendants(record).catch(() => undefined);
      }
      return observedProcess({ ...record, exit }, { phase: 'exited' });
    },
    /** Monitors an own child. Calls `onExit` after its exit was recorded. */
    adopt({ child }: Pick<Launched, 'child'>, record: ProcessRecord, onExit: () => void): void {
      const id = processId(record);
      children.set(id, undefined);
      if (oomKills === undefined) void isOutOfMemory();
      const ended = async (code: number | null, signal: NodeJS.Signals | null): Promise<void> => {
        const at = system.wallNow();
        const outOfMemory =
          signal === 'SIGKILL' && ((await isOutOfMemory()) || (await system.isKilledByKernel(record.pid, record.startedAt)));
        const message = signal === null || outOfMemory ? {} : { message: `Terminated by ${signal}` };
        // As in shells. Node passes one of the two.
        const number = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
        const exit: ProcessExit = { at, code: number, ...message, ...(outOfMemory ? { outOfMemory } : {}) };
        children.set(id, exit);
        void endDescendants(record).catch(() => undefined);
        await records.writeExit(record, exit);
      };
      child.once('exit', (code, signal) => void ended(code, signal).then(onExit, onExit));
    },
    /** Wakes when the set of live processes changes, and rotates logs. `onLost`: a record is missing. */
    async watch(on: { wake(): void; onLost(): void; rotate(name: string): Promise<void> }, signal: AbortSignal): Promise<void> {
      let before: string | undefined;
      let last: { readonly stamp: string | undefined; readonly records: readonly ProcessRecord[] } | undefined;
      for (let round = 0; !signal.aborted; await system.sleep(WATCH_MS, signal)) {
        round += 1;
        const stamp = await records.stamp().catch(() => undefined);
        const isKnown = stamp !== undefined && stamp === last?.stamp && round % ROUNDS > 0;
        const found = isKnown && last ? { ...last, lost: false } : await records.readAll().catch(() => undefined);
        if (found === undefined) continue;
        last = { stamp, records: found.records };
        const stateOf = async (record: ProcessRecord) => `${processId(record)} ${await isAlive(record).catch(() => 'unknown')}`;
        const present = (await inTurns(found.records, stateOf)).join('\n');
        if (found.lost) on.onLost();
        if (found.lost || (before !== undefined && before !== present)) on.wake();
        before = present;
        if (round % ROUNDS === 0) await inTurns(found.records, async ({ name }) => await on.rotate(name).catch(() => undefined));
      }
    },
    forget: (id: WorkloadId) => void children.delete(id),
  };
}

/** What the runtime asks of the operating system. */
export const createProcessSystem = () => ({
  table: createProcessTable(),
  files: createRecordFiles(),
  logs: createProcessLogs,
  memory: createProcessMemoryReader,
  now: () => performance.now(),
  wallNow: Date.now,
  sleep,
  launch,
  signal: sendSignal,
  checkPortFree,
  oomKills: async () => await countOomKills(),
  isKilledByKernel: async (pid: number, startedAt: number) => await isKilledByKernel(pid, startedAt),
});
export type ProcessSystem = ReturnType<typeof createProcessSystem>;

interface Launched {
  /** Emits `exit`. */
  readonly child: { once(event: 'exit', listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown };
  readonly pid: number;
  /** Runs the program. Until then the launcher ends with this controller, so no unrecorded process runs. */
  go(): void;
  /** Ends it before `go()`. */
  drop(): void;
}

/** Program and arguments are passed as arguments, never parsed by the shell. */
const WAIT_THEN_EXEC = `read -r go && export ${LEADER}=$$ && exec "$@" </dev/null`;

/** Starts a detached launcher that survives the controller. Resolves to an error message if that fails. */
function launch(
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

/** `target`: a process, or a negative group. Succeeds if it has exited. */
function sendSignal(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (error) {
    if (!['ESRCH', 'EPERM'].includes(codeOf(error))) throw error;
  }
}
