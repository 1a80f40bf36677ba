/** The real adapters of a host on a machine in memory, as one controller opens them, and what their answers are held to. */
import { createStatusFiles, createStatusRecords } from '../../../../src/files/status-files.ts';
import { readTextFile } from '../../../../src/files/read-text-file.ts';
import { createProcessRuntime } from '../../../../src/host/process/process-runtime.ts';
import { createTomlDirectory } from '../../../../src/host/slots/toml-directory.ts';
import type { Clock, ObservedWorkload, Report, Runtime, SlotSource, Wake } from '../../../../src/reconciler/ports.ts';
import { ok } from '../../../../src/schema/words/failure.ts';
import type { FailureRecords } from '../../../../src/schema/status/slot-status.ts';
import type { EarlierStatuses, HostWorld } from './host-world.ts';
import type { Reach } from './memory-disk.ts';
import { STATE, type MachineProcess } from './world-machine.ts';

export interface HostPorts {
  readonly runtime: Runtime;
  readonly source: SlotSource;
  readonly records: FailureRecords;
  readonly earlier: EarlierStatuses;
  readonly lastSeq: number;
  write(report: Report): void;
  flush(): Promise<void>;
  /** The controller is gone. */
  left(): void;
}

interface Controller {
  readonly clock: Clock;
  readonly isCut: () => boolean;
}

const RETRY_MS = 10_000;
const log = { info: () => undefined, warn: () => undefined };

export function openHost(world: HostWorld, { clock, isCut }: Controller): HostPorts {
  const { machine } = world;
  const reach: Reach = machine.reachOf(new Promise<never>(() => undefined), isCut);
  const disk = machine.disk.openFor(reach);
  const system = machine.systemOf(reach, isCut, clock);
  const runtime = createProcessRuntime({
    stateDir: STATE,
    env: {},
    resolveProgram: async (name) => ok([`/bin/${name}`]),
    system,
  });
  const records = createStatusRecords(`${STATE}/status`, log, disk);
  const source = createTomlDirectory({
    directory: world.slots,
    lastGoodDirectory: `${STATE}/slots`,
    records,
    quietPeriodMs: 10,
    log,
    disk,
    clock,
    reading: {
      readFile: async (path) => await readTextFile(path, disk),
      describeFile: async (path) => await disk.stat(path, { bigint: true }).catch(() => undefined),
      wallNow: clock.wallNow,
      now: clock.now,
    },
    parsing: { breather: () => async () => undefined },
  });
  const files = createStatusFiles({
    statusDirectory: `${STATE}/status`,
    timelineDirectory: `${STATE}/timelines`,
    log,
    disk,
    defer: (work, ms) => void clock.at(clock.now() + ms, work),
  });
  const retryLater = (): void => void clock.at(clock.now() + RETRY_MS, () => void (files.retry(), retryLater()));
  retryLater();
  world.begin();
  return {
    runtime: { ...runtime, observe: async (...call) => await observeJudged(world, async () => await runtime.observe(...call)) },
    source: {
      async read(signal) {
        const read = await source.read(signal);
        if (read.ok) world.told(read.value);
        return read;
      },
      changes: (wake: Wake, signal) => world.listen(wake, signal),
    },
    records: {
      async read(signal) {
        const before = world.recorded();
        const read = await records.read(signal);
        const after = world.recorded();
        for (const [name, { failures }] of before) {
          if (after.get(name)?.failures?.length !== failures?.length) continue;
          if ((failures?.length ?? 0) !== (read.get(name)?.failures?.length ?? 0))
            machine.broke(`Recorded failures of "${name}" are not read`);
        }
        return read;
      },
    },
    earlier: world.recorded(),
    lastSeq: world.lastSeq(),
    write: (report) => files.write(report),
    flush: async () => await files.flush(),
    left: () => machine.left(reach),
  };
}

/** A server that lives is observed and has not ended, and what is said to run is such a server. */
async function observeJudged(world: HostWorld, observe: () => ReturnType<Runtime['observe']>): ReturnType<Runtime['observe']> {
  const { machine } = world;
  const before = machine.servers();
  const seen = await observe();
  if (!seen.ok) return seen;
  const find = (server: MachineProcess): ObservedWorkload | undefined => seen.value.workloads.find(({ id }) => id === world.idOf(server));
  for (const server of before.filter((each) => machine.servers().includes(each))) {
    const phase = find(server)?.phase;
    if (phase === undefined) machine.broke(`The server "${world.idOf(server)}" lives, and is not observed`);
    if (phase === 'exited') machine.broke(`The server "${world.idOf(server)}" lives, and is declared gone`);
  }
  const real = new Set([...before, ...machine.servers()].map((each) => world.idOf(each)));
  for (const { id, phase } of seen.value.workloads)
    if (phase === 'running' && !real.has(id)) machine.broke(`"${id}" is taken for a server`);
  return seen;
}
