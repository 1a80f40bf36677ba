/**
 * Runs workloads as plain processes, the default without podman. They survive the controller; the next one finds them
 * by their records.
 */
import { join } from 'node:path';
import type { Runtime, RuntimeFacts, Wake, Workload } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { WorkloadId } from '../../schema/words/names.ts';
import type { Reason } from '../../schema/status/reasons.ts';
import { isOfOneStart, nameOfProcessId, observedProcess, processId } from './decide/process-facts.ts';
import { messageOf } from '../../platform/error-text.ts';
import { createKeyedLock, inTurns } from '../../platform/semaphore.ts';
import { addWake } from '../../platform/clock.ts';
import type { ReadDeviceMemory } from '../hardware/device-memory.ts';
import { aborted, createLauncher, isOf, type LauncherDeps } from './process-launcher.ts';
import { findMarked } from './process-table.ts';
import { createProcessMonitor, createProcessSystem, KILL_WAIT_MS, type ProcessMonitor, type ProcessSystem } from './process-monitor.ts';
import { createProcessRecords, isSafeName, type ProcessRecord, type ProcessRecords } from './process-records.ts';

export interface ProcessRuntimeOptions {
  /** Absolute; contains `run/` and `logs/`. */
  readonly stateDir: string;
  readonly resolveProgram: LauncherDeps['resolveProgram'];
  /** Default: device memory is unknown. */
  readonly deviceMemory?: ReadDeviceMemory;
  /** Children inherit `PATH`, `HOME`, `LANG` and `TMPDIR` of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Default: this machine. */
  readonly system?: ProcessSystem;
}

export function createProcessRuntime(options: ProcessRuntimeOptions): Runtime {
  const { stateDir, resolveProgram, deviceMemory, env, system = createProcessSystem() } = options;
  const search = async () => await findMarked(stateDir, system.table);
  const records = createProcessRecords(join(stateDir, 'run'), system.files);
  const logs = system.logs(join(stateDir, 'logs'));
  const monitor = createProcessMonitor(system, records, system.memory({ devices: deviceMemory }), search);
  const lock = createKeyedLock();
  const stopping = new Set<WorkloadId>();
  const wakes = new Set<Wake>();
  const wakeAll = (): void => wakes.forEach((wake) => wake());
  /** Servers found running without a record, or with that of another process. */
  const strays = new Map<WorkloadId, ProcessRecord>();
  let searched = false;
  const launcher = createLauncher({ stateDir, resolveProgram, env, system, records, logs, monitor, onExit: wakeAll });

  /** Records running servers whose records were lost, and kills what servers without a record left behind. */
  const adoptLost = async (): Promise<void> => {
    const marked = (await search()) ?? [];
    for (const { record, role } of marked) {
      if (role !== 'server' || !isSafeName(record.name) || !(await monitor.isAlive(record))) continue;
      const present = await records.read(record.name);
      if (isOf(processId(record), present)) continue;
      strays.set(processId(record), record);
      if (present === undefined) await records.write(record).catch(() => undefined);
    }
    searched = !(await killOrphans(marked, records, system));
  };
  const apply = async (workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    const { name } = workload;
    if (signal.aborted) return aborted(name);
    let present = await records.read(name);
    if (present !== undefined) await launcher.removeUnused(present);
    if (present === undefined || launcher.isUnused(present) || !(await monitor.isAlive(present))) {
      // Nothing starts beside a server that lost its record.
      await adoptLost();
      present = await records.read(name);
    }
    const others = [...strays].flatMap(([id, stray]) => (stray.name === name && !isOf(id, present) ? stray : []));
    for (const each of [...(present === undefined ? [] : [present]), ...others]) {
      const isWanted = each.revision === workload.revision && each.slot === workload.slot;
      if (isWanted && (await monitor.isAlive(each))) return ok(processId(each));
      if (!isWanted || each !== present) return fail('retry', 'NameTaken', `The process "${name}" runs another revision; stop it first`);
      if (!(await monitor.endDescendants(each))) return fail('retry', 'NameTaken', `Processes of "${name}" do not exit; retrying`);
      monitor.forget(processId(each));
    }
    return launcher.start(workload, signal);
  };

  const recordOf = async (id: WorkloadId): Promise<ProcessRecord | undefined> => {
    const record = await records.read(nameOfProcessId(id));
    return isOf(id, record) ? record : strays.get(id);
  };

  const stop = async (id: WorkloadId, graceMs: number, signal: AbortSignal): Promise<Result<void>> => {
    let record = await recordOf(id);
    if (record === undefined) {
      await adoptLost();
      record = await recordOf(id);
    }
    if (record === undefined) return ok(undefined);
    const ended = await endProcess(record, { monitor, system }, graceMs, signal);
    if (!ended.ok) return ended;
    if (isOf(id, await records.read(record.name))) {
      await logs.remove(record.name);
      await records.remove(record.name);
    }
    strays.delete(id);
    monitor.forget(id);
    return ok(undefined);
  };

  const observe = async (): Promise<Result<RuntimeFacts>> => {
    const { records: found, lost } = await records.readAll();
    const searches = lost || !searched;
    searched &&= !lost;
    if (searches) await adoptLost();
    const recorded = searches ? (await records.readAll()).records : found;
    for (const record of recorded) strays.delete(processId(record));
    const workloads = await inTurns([...recorded, ...strays.values()], async (record) => {
      if (launcher.isUnused(record)) {
        void lock(record.name, async () => await launcher.removeUnused(record)).catch(() => undefined);
        return [];
      }
      if (stopping.has(processId(record))) return [observedProcess(record, { phase: 'stopping' })];
      if (record.exit !== undefined || !(await monitor.isOfEarlierBoot(record))) return [await monitor.observe(record)];
      await records.remove(record.name).catch(() => undefined);
      return [];
    });
    return ok({ workloads: workloads.flat(), images: [] });
  };

  return {
    traits: { kind: 'process', images: false, network: 'shared', modelsTarget: undefined },
    async observe(_images, signal) {
      if (signal.aborted) return fail('retry', 'Aborted', 'The observation was cancelled');
      return await attempt('RuntimeUnreachable', observe);
    },
    pull: () => Promise.resolve(ok(undefined)),
    async apply(workload, signal) {
      const { name } = workload;
      if (!isSafeName(name)) return fail('stalled', 'StartFailed', `"${name}" is not a valid process name`);
      return attempt('StartFailed', () => lock(name, () => apply(workload, signal)));
    },
    async stop(id, { graceMs }, signal) {
      stopping.add(id);
      const stopped = await attempt('StopFailed', () => lock(nameOfProcessId(id), () => stop(id, graceMs, signal)));
      stopping.delete(id);
      wakeAll();
      return stopped;
    },
    async *logs(id, options, signal) {
      const record = await recordOf(id);
      if (record !== undefined) yield* logs.read(record.name, options, () => monitor.isAlive(record).catch(() => true), signal);
    },
    work: async (id) => await monitor.work(await recordOf(id)),
    changes(wake, signal) {
      addWake(wakes, wake, signal);
      const onLost = (): void => void (searched = false);
      void monitor.watch({ wake, onLost, rotate: logs.rotate }, signal);
    },
  };
}

/** Kills processes whose server is neither running nor recorded. Returns whether there were any. */
async function killOrphans(
  marked: NonNullable<Awaited<ReturnType<typeof findMarked>>>,
  records: ProcessRecords,
  { signal }: ProcessSystem,
) {
  const servers = marked.filter(({ role }) => role === 'server');
  const lone = marked.filter(({ record, role }) => role === 'descendant' && !servers.some((each) => isOfOneStart(record, each.record)));
  const orphans = await inTurns(lone, async ({ record }) => (isOfOneStart(record, await records.read(record.name)) ? [] : record.pid));
  for (const pid of orphans.flat()) signal(pid, 'SIGKILL');
  return orphans.flat().length > 0;
}

/** Ends a process group with SIGTERM, and after `graceMs` with SIGKILL, and everything that it started. */
async function endProcess(
  record: ProcessRecord,
  { monitor, system }: { readonly monitor: ProcessMonitor; readonly system: ProcessSystem },
  graceMs: number,
  signal: AbortSignal,
): Promise<Result<void>> {
  const { name, pid } = record;
  const stuck = (): Result<never> => fail('retry', 'StopFailed', `The process of "${name}" (${pid}) does not exit; retrying`);
  if (await monitor.isAlive(record)) {
    system.signal(-pid, 'SIGTERM');
    if (!(await monitor.waitForExit(record, graceMs, signal))) {
      if (signal.aborted) return aborted(name);
      if (await monitor.isAlive(record)) system.signal(-pid, 'SIGKILL');
      if (!(await monitor.waitForExit(record, KILL_WAIT_MS, signal))) return stuck();
    }
  }
  return (await monitor.endDescendants(record)) ? ok(undefined) : stuck();
}

/** Errors such as a full disk or missing descriptors are expected failures. */
async function attempt<T>(reason: Reason, work: () => Promise<Result<T>>): Promise<Result<T>> {
  try {
    return await work();
  } catch (error) {
    return fail('retry', reason, `Processes or their records in the state directory cannot be used: ${messageOf(error)}`);
  }
}
