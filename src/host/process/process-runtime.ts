/**
 * The runtime that runs workloads as plain processes of this machine, the default where there is no podman. They live on when
 * the controller ends, and the next one finds them by their records.
 */
import { join } from 'node:path';
import { sleep } from '../../platform/pause.ts';
import type { ObservedWorkload, Runtime, Wake, Workload } from '../../reconciler/ports.ts';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import type { WorkloadId } from '../../schema/names.ts';
import type { Reason } from '../../schema/reasons.ts';
import { nameOfProcessId, observedProcess, processId } from './decide/process-facts.ts';
import { messageOf } from '../../platform/error-text.ts';
import { createKeyedLock } from '../../platform/keyed-lock.ts';
import { checkPortFree } from '../port-check.ts';
import { createProcessTable } from './process-identity.ts';
import { childEnv, exitCode, launch, signalGroup } from './process-launch.ts';
import type { Launched } from './process-launch.ts';
import { createProcessLogs } from './process-logs.ts';
import { createProcessRecords, isSafeName } from './process-records.ts';
import type { ProcessExit, ProcessRecord } from './process-records.ts';

export interface ProcessRuntimeOptions {
  /** Absolute; holds `run/` and `logs/`. */
  readonly stateDir: string;
  /** What a workload's program name stands for: a path and leading arguments. May take its time to install it. */
  readonly resolveProgram: (name: string, signal: AbortSignal) => Promise<Result<readonly string[]>>;
  /** The controller's environment, of which children get `PATH`, `HOME`, `LANG`, `TMPDIR`. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** How long the death of a process may go unnoticed that this controller did not start itself; of its own children it is told. */
const WATCH_MS = 1000;
const DEATH_POLL_MS = 20;
/** After SIGKILL only a process stuck in the kernel is still there. */
const KILL_WAIT_MS = 10_000;

export function createProcessRuntime({ stateDir, resolveProgram, env }: ProcessRuntimeOptions): Runtime {
  const table = createProcessTable();
  const records = createProcessRecords(join(stateDir, 'run'));
  const logs = createProcessLogs(join(stateDir, 'logs'));
  const lock = createKeyedLock();
  /** Our own children: undefined while they run. */
  const children = new Map<WorkloadId, ProcessExit | undefined>();
  const stopping = new Set<WorkloadId>();
  const wakes = new Set<Wake>();
  const wakeAll = (): void => wakes.forEach((wake) => wake());

  const isAlive = async (record: ProcessRecord): Promise<boolean> => {
    if (record.exit !== undefined) return false;
    const id = processId(record);
    if (children.has(id)) return children.get(id) === undefined;
    if (record.bootId !== (await table.bootId())) return false;
    const identity = await table.read(record.pid);
    return identity !== undefined && identity.start === record.start && !identity.zombie;
  };

  const see = async (record: ProcessRecord): Promise<ObservedWorkload> => {
    const id = processId(record);
    if (stopping.has(id)) return observedProcess(record, { phase: 'stopping', argv: undefined, env: undefined });
    if (await isAlive(record)) {
      const [argv, environment] = await Promise.all([table.argv(record.pid), table.env(record.pid)]);
      return observedProcess(record, { phase: 'running', argv, env: environment });
    }
    const exit = record.exit ?? children.get(id) ?? (await lostExit(record));
    if (record.exit === undefined) void records.writeExit(record, exit).catch(() => undefined);
    return observedProcess({ ...record, exit }, { phase: 'exited', argv: undefined, env: undefined });
  };

  const lostExit = async (record: ProcessRecord): Promise<ProcessExit> => {
    const rebooted = record.bootId !== (await table.bootId());
    return { at: Date.now(), message: rebooted ? 'The machine was restarted' : 'It ended while no controller ran that had started it' };
  };

  const adoptChild = ({ child, pid }: Launched, record: ProcessRecord): void => {
    const id = processId(record);
    children.set(id, undefined);
    child.once('exit', (code, signal) => {
      const number = exitCode(code, signal);
      const exit: ProcessExit = {
        at: Date.now(),
        ...(number === undefined ? {} : { code: number }),
        ...(signal === null ? {} : { message: `Ended by ${signal}` }),
      };
      children.set(id, exit);
      // What it started itself must not live on and hold its port.
      signalGroup(pid, 'SIGKILL');
      void records.writeExit(record, exit).then(wakeAll, wakeAll);
    });
  };

  const start = async (workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    const [name, ...args] = workload.argv;
    const program = await resolveProgram(name, signal);
    if (!program.ok) return program;
    const free = await checkPortFree(workload.port.host);
    if (!free.ok) return free;
    if (signal.aborted) return aborted(workload.name);
    const command = [...program.value, ...args];
    const launched = await logs.withFile(workload.name, (log) => launch(command, childEnv(env, workload.env), log));
    if ('error' in launched)
      return fail('retry', 'StartFailed', `The process of "${workload.name}" could not be started: ${launched.error}`);
    const identity = await table.read(launched.pid);
    if (identity === undefined) {
      launched.drop();
      return fail('retry', 'StartFailed', `The process of "${workload.name}" ended before it was written down`);
    }
    const record: ProcessRecord = {
      name: workload.name,
      slot: workload.slot,
      revision: workload.revision,
      generation: workload.generation,
      pid: launched.pid,
      start: identity.start,
      bootId: await table.bootId(),
      startedAt: Date.now(),
      argv: [...workload.argv],
      program: [...program.value],
      env: { ...workload.env },
      port: workload.port,
    };
    adoptChild(launched, record);
    try {
      await records.write(record);
    } catch (error) {
      launched.drop();
      throw error;
    }
    launched.go();
    return ok(processId(record));
  };

  const applyLocked = async (workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    if (signal.aborted) return aborted(workload.name);
    const present = await records.read(workload.name);
    if (present !== undefined) {
      if (present.revision !== workload.revision || present.slot !== workload.slot) {
        return fail('retry', 'NameTaken', `Stop the process "${workload.name}" first: it runs another revision`);
      }
      if (await isAlive(present)) return ok(processId(present));
      children.delete(processId(present));
    }
    return start(workload, signal);
  };

  const stopLocked = async (id: WorkloadId, graceMs: number, signal: AbortSignal): Promise<Result<void>> => {
    const record = await records.read(nameOfProcessId(id));
    if (record === undefined || processId(record) !== id) return ok(undefined);
    const dead = async (withinMs: number): Promise<boolean> => {
      const until = performance.now() + withinMs;
      while (await isAlive(record)) {
        if (performance.now() >= until || signal.aborted) return false;
        await sleep(DEATH_POLL_MS, signal);
      }
      return true;
    };
    if (await isAlive(record)) {
      signalGroup(record.pid, 'SIGTERM');
      if (!(await dead(graceMs))) {
        if (signal.aborted) return aborted(record.name);
        if (await isAlive(record)) signalGroup(record.pid, 'SIGKILL');
        if (!(await dead(KILL_WAIT_MS)))
          return fail('retry', 'StopFailed', `The process of "${record.name}" (${record.pid}) does not end, it is tried again`);
      }
      signalGroup(record.pid, 'SIGKILL');
    }
    await records.remove(record.name);
    await logs.remove(record.name);
    children.delete(id);
    return ok(undefined);
  };

  /** Woken when the set of live processes is another than last time, and once a second the logs are kept in bounds. */
  const watch = async (signal: AbortSignal): Promise<void> => {
    let before: string | undefined;
    while (!signal.aborted) {
      const found = await records.readAll();
      const alive = await Promise.all(found.map(async (record) => `${processId(record)} ${await isAlive(record)}`));
      if (before !== undefined && before !== alive.join('\n')) wakeAll();
      before = alive.join('\n');
      await Promise.all(found.map((record) => logs.bound(record.name).catch(() => undefined)));
      await sleep(WATCH_MS, signal);
    }
  };

  return {
    traits: { kind: 'process', images: false, network: 'shared', modelsTarget: undefined },
    async observe(_images, signal) {
      if (signal.aborted) return fail('retry', 'Aborted', 'The observation was given up');
      return ok({ workloads: await Promise.all((await records.readAll()).map(see)), images: [] });
    },
    pull: () => Promise.resolve(ok(undefined)),
    async apply(workload, signal) {
      if (!isSafeName(workload.name)) return fail('stalled', 'StartFailed', `"${workload.name}" cannot be the name of a process`);
      return attempt('StartFailed', () => lock(workload.name, () => applyLocked(workload, signal)));
    },
    async stop(id, { graceMs }, signal) {
      stopping.add(id);
      const stopped = await attempt('StopFailed', () => lock(nameOfProcessId(id), () => stopLocked(id, graceMs, signal)));
      stopping.delete(id);
      wakeAll();
      return stopped;
    },
    async *logs(id, options, signal) {
      const record = await records.read(nameOfProcessId(id));
      if (record === undefined || processId(record) !== id) return;
      yield* logs.read(record.name, options, () => isAlive(record), signal);
    },
    changes(wake, signal) {
      if (signal.aborted) return;
      wakes.add(wake);
      signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
      void watch(signal);
    },
  };
}

const aborted = (name: string): Result<never> => fail('retry', 'Aborted', `The action on "${name}" was given up`);

/** A full disk or a directory without permission is an expected failure. */
async function attempt<T>(reason: Reason, work: () => Promise<Result<T>>): Promise<Result<T>> {
  try {
    return await work();
  } catch (error) {
    return fail('retry', reason, `Look after the state directory: ${messageOf(error)}`);
  }
}
