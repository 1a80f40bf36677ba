/**
 * Starts servers. A launcher waits until its record is written, and ends with the controller until then, so that
 * nothing runs without a record.
 */
import { join } from 'node:path';
import type { Workload } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { WorkloadId } from '../../schema/words/names.ts';
import { processId } from './decide/process-facts.ts';
import type { createProcessLogs } from './process-logs.ts';
import { childEnv, type ProcessMonitor, type ProcessSystem } from './process-monitor.ts';
import type { ProcessRecord, ProcessRecords } from './process-records.ts';
import { markOf } from './process-table.ts';

export interface LauncherDeps {
  readonly stateDir: string;
  /** Resolves to the path and leading arguments of a program, which may be installed first. */
  /** `engine`: the declared engine whose program it is. */
  readonly resolveProgram: (name: string, signal: AbortSignal, engine?: string) => Promise<Result<readonly string[]>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly system: ProcessSystem;
  readonly records: ProcessRecords;
  readonly logs: Pick<ReturnType<typeof createProcessLogs>, 'withFile'>;
  readonly monitor: ProcessMonitor;
  /** Called after the exit of a server was recorded. */
  readonly onExit: () => void;
}

/** Engines in TypeScript start without Node's parser from the second time on, which takes 17 MB of memory and 70 ms. */
const COMPILED = 'compiled';

/** Only one call at a time for each name, except of `isUnused`. */
export function createLauncher({ stateDir, resolveProgram, env, system, records, logs, monitor, onExit }: LauncherDeps) {
  /** The last launcher of each name that has not become a server. */
  const unused = new Map<string, WorkloadId>();
  const isUnused = (record: ProcessRecord): boolean => isOf(unused.get(record.name), record);
  const start = async (workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    const { name, slot, revision, generation, port } = workload;
    const [programName, ...args] = workload.argv;
    // A missing state directory must not be created again, and nothing may run without a record.
    if ((await system.files.identity(stateDir)) === undefined) throw new Error(`"${stateDir}" does not exist`);
    const program = await resolveProgram(programName, signal, workload.engineName);
    if (!program.ok) return program;
    const free = await system.checkPortFree(port.host);
    if (!free.ok) return free;
    if (signal.aborted) return aborted(name);
    const command = [...program.value, ...args];
    const about = {
      name,
      slot,
      revision,
      generation,
      port,
      startedAt: system.wallNow(),
      argv: [programName, ...args] satisfies ProcessRecord['argv'],
      program: [...program.value],
      env: { ...workload.env },
    };
    const bootId = await system.table.bootId();
    const compiled = program.value[0] === process.execPath ? { NODE_COMPILE_CACHE: join(stateDir, COMPILED) } : {};
    const environment = childEnv(env, { ...compiled, ...workload.env, ...markOf(stateDir, about) });
    const launched = await logs.withFile(name, (log) => system.launch(command, environment, log));
    if ('error' in launched) return fail('retry', 'StartFailed', `The process of "${name}" could not be started: ${launched.error}`);
    const { pid } = launched;
    try {
      const identity = await system.table.read(pid);
      if (identity === undefined) throw new Error('it ended before it was recorded');
      const record: ProcessRecord = { ...about, pid, start: identity.start, bootId };
      unused.set(name, processId(record));
      monitor.adopt(launched, record, onExit);
      await records.write(record);
      if (signal.aborted) throw new Error('it was cancelled');
      launched.go();
      unused.delete(name);
      return ok(processId(record));
    } catch (error) {
      launched.drop();
      await records.remove(name).catch(() => undefined);
      if (signal.aborted) return aborted(name);
      throw error;
    }
  };

  return {
    start,
    /** It waits, or its start failed: nothing of it has run, so its end is no crash. */
    isUnused,
    /** Removes the record of a launcher whose start failed. Rejects if that fails. */
    async removeUnused(record: ProcessRecord): Promise<void> {
      if (!isUnused(record)) return;
      if (isOf(processId(record), await records.read(record.name))) await records.remove(record.name);
      monitor.forget(processId(record));
    },
  };
}

export const isOf = (id: WorkloadId | undefined, record: ProcessRecord | undefined): boolean =>
  record !== undefined && processId(record) === id;

export const aborted = (name: string): Result<never> => fail('retry', 'Aborted', `The action on "${name}" was cancelled`);
