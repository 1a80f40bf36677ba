/**
 * Runs workloads as plain processes, the default without podman. They survive the controller; the next one finds them
 * by their records.
 */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Runtime, Wake, Workload } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { WorkloadId } from '../../schema/words/names.ts';
import type { Reason } from '../../schema/status/reasons.ts';
import { nameOfProcessId, observedProcess, processId } from './decide/process-facts.ts';
import { messageOf } from '../../platform/error-text.ts';
import { createKeyedLock } from '../../platform/semaphore.ts';
import { sleep, addWake } from '../../platform/clock.ts';
import type { ReadDeviceMemory } from '../hardware/device-memory.ts';
import { checkPortFree } from '../host-probe.ts';
import { findMarked, markOf, createProcessTable } from './process-table.ts';
import { childEnv, launch, signalGroup, createProcessMonitor, type ProcessMonitor } from './process-monitor.ts';
import { createProcessLogs, type ProcessLogs } from './process-logs.ts';
import { createProcessRecords, isSafeName, type ProcessRecord, type ProcessRecords } from './process-records.ts';
import { createProcessMemoryReader } from '../process-memory.ts';

export interface ProcessRuntimeOptions {
  /** Absolute; contains `run/` and `logs/`. */
  readonly stateDir: string;
  /** Resolves to the path and leading arguments of a program, which may be installed first. */
  readonly resolveProgram: (name: string, signal: AbortSignal) => Promise<Result<readonly string[]>>;
  /** Default: device memory is unknown. */
  readonly deviceMemory?: ReadDeviceMemory;
  /** Children inherit `PATH`, `HOME`, `LANG` and `TMPDIR` of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Delay until the end of another controller's process is noticed; own children are noticed immediately. */
const WATCH_MS = 1000;
/** Only a process stuck in the kernel survives SIGKILL longer. */
const KILL_WAIT_MS = 10_000;

export function createProcessRuntime({ stateDir, resolveProgram, deviceMemory, env }: ProcessRuntimeOptions): Runtime {
  const table = createProcessTable();
  const records = createProcessRecords(join(stateDir, 'run'));
  const logs = createProcessLogs(join(stateDir, 'logs'));
  const monitor = createProcessMonitor(table, records, createProcessMemoryReader({ devices: deviceMemory }));
  const lock = createKeyedLock();
  const stopping = new Set<WorkloadId>();
  const wakes = new Set<Wake>();
  const wakeAll = (): void => wakes.forEach((wake) => wake());

  const start = async (workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    const { name, slot, revision, generation, port } = workload;
    const [programName, ...args] = workload.argv;
    // A missing state directory must not be created again, and nothing may run without a record.
    await access(stateDir);
    const program = await resolveProgram(programName, signal);
    if (!program.ok) return program;
    const free = await checkPortFree(port.host);
    if (!free.ok) return free;
    if (signal.aborted) return aborted(name);
    const command = [...program.value, ...args];
    const about = {
      name,
      slot,
      revision,
      generation,
      port,
      startedAt: Date.now(),
      argv: [programName, ...args] satisfies ProcessRecord['argv'],
      program: [...program.value],
      env: { ...workload.env },
    };
    const environment = childEnv(env, { ...workload.env, ...markOf(stateDir, about) });
    const launched = await logs.withFile(name, (log) => launch(command, environment, log));
    if ('error' in launched) return fail('retry', 'StartFailed', `The process of "${name}" could not be started: ${launched.error}`);
    const { pid } = launched;
    const identity = await table.read(pid);
    if (identity === undefined) {
      launched.drop();
      return fail('retry', 'StartFailed', `The process of "${name}" ended before it was recorded`);
    }
    const record: ProcessRecord = { ...about, pid, start: identity.start, bootId: await table.bootId() };
    monitor.adopt(launched, record, wakeAll);
    try {
      await records.write(record);
    } catch (error) {
      launched.drop();
      throw error;
    }
    launched.go();
    return ok(processId(record));
  };

  let searched: Promise<void> | undefined;
  /** Records running processes whose records were lost. */
  const adoptLost = async (): Promise<void> => {
    try {
      for (const record of await findMarked(stateDir, table)) {
        if (isSafeName(record.name) && (await records.read(record.name)) === undefined) await records.write(record);
      }
    } catch {
      // The directory is not writable; the next observation searches again.
      searched = undefined;
    }
  };

  const apply = async (workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    if (signal.aborted) return aborted(workload.name);
    const present = await records.read(workload.name);
    if (present !== undefined) {
      if (present.revision !== workload.revision || present.slot !== workload.slot) {
        return fail('retry', 'NameTaken', `The process "${workload.name}" runs another revision; stop it first`);
      }
      if (await monitor.isAlive(present)) return ok(processId(present));
      monitor.forget(processId(present));
    }
    return start(workload, signal);
  };

  const stop = async (id: WorkloadId, graceMs: number, signal: AbortSignal): Promise<Result<void>> => {
    const record = await records.read(nameOfProcessId(id));
    if (record === undefined || processId(record) !== id) return ok(undefined);
    const ended = await endProcess(record, monitor, graceMs, signal);
    if (!ended.ok) return ended;
    await records.remove(record.name);
    await logs.remove(record.name);
    monitor.forget(id);
    return ok(undefined);
  };

  return {
    traits: { kind: 'process', images: false, network: 'shared', modelsTarget: undefined },
    async observe(_images, signal) {
      if (signal.aborted) return fail('retry', 'Aborted', 'The observation was cancelled');
      await (searched ??= adoptLost());
      const observe = async (record: ProcessRecord) =>
        stopping.has(processId(record)) ? observedProcess(record, { phase: 'stopping' }) : monitor.observe(record);
      return ok({ workloads: await Promise.all((await records.readAll()).map(observe)), images: [] });
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
      const record = await records.read(nameOfProcessId(id));
      if (record === undefined || processId(record) !== id) return;
      yield* logs.read(record.name, options, () => monitor.isAlive(record), signal);
    },
    changes(wake, signal) {
      addWake(wakes, wake, signal);
      void watch({ records, logs, monitor }, wake, signal);
    },
  };
}

/** Ends a process group with SIGTERM, and after `graceMs` with SIGKILL. */
async function endProcess(record: ProcessRecord, monitor: ProcessMonitor, graceMs: number, signal: AbortSignal): Promise<Result<void>> {
  const { name, pid } = record;
  if (!(await monitor.isAlive(record))) return ok(undefined);
  signalGroup(pid, 'SIGTERM');
  if (!(await monitor.waitForExit(record, graceMs, signal))) {
    if (signal.aborted) return aborted(name);
    if (await monitor.isAlive(record)) signalGroup(pid, 'SIGKILL');
    if (!(await monitor.waitForExit(record, KILL_WAIT_MS, signal)))
      return fail('retry', 'StopFailed', `The process of "${name}" (${pid}) does not exit; retrying`);
  }
  signalGroup(pid, 'SIGKILL');
  return ok(undefined);
}

interface Parts {
  readonly records: ProcessRecords;
  readonly logs: ProcessLogs;
  readonly monitor: ProcessMonitor;
}

/** Wakes when the set of live processes changes, and rotates logs. */
async function watch({ records, logs, monitor }: Parts, wake: Wake, signal: AbortSignal): Promise<void> {
  let before: string | undefined;
  while (!signal.aborted) {
    const found = await records.readAll();
    const states = await Promise.all(found.map(async (record) => `${processId(record)} ${await monitor.isAlive(record)}`));
    const present = states.join('\n');
    if (before !== undefined && before !== present) wake();
    before = present;
    await Promise.all(found.map((record) => logs.rotate(record.name).catch(() => undefined)));
    await sleep(WATCH_MS, signal);
  }
}

const aborted = (name: string): Result<never> => fail('retry', 'Aborted', `The action on "${name}" was cancelled`);

/** Errors such as a full disk are expected failures. */
async function attempt<T>(reason: Reason, work: () => Promise<Result<T>>): Promise<Result<T>> {
  try {
    return await work();
  } catch (error) {
    return fail('retry', reason, `The state directory cannot be used: ${messageOf(error)}`);
  }
}
