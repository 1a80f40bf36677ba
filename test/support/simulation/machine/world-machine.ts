/** A machine in memory: processes, a process table that may fail, and a disk. It says when a controller does what it never may. */
import { EventEmitter } from 'node:events';
import { LAUNCHER, LEADER, MARK } from '../../../../src/host/process/decide/process-facts.ts';
import { createRecordFiles } from '../../../../src/host/process/process-records.ts';
import type { ProcessSystem } from '../../../../src/host/process/process-monitor.ts';
import { portTaken } from '../../../../src/host/host-probe.ts';
import { pause } from '../../../../src/platform/clock.ts';
import { ok } from '../../../../src/schema/words/failure.ts';
import type { Clock } from '../../../../src/reconciler/ports.ts';
import type { Random } from '../seeded-random.ts';
import { createMemoryDisk, type Reach } from './memory-disk.ts';

export const STATE = '/state';
/** Beyond the largest pid of Linux. */
const FIRST_PID = 5_000_000;
/** Numbers are reused, as on a machine that runs for long. */
const PIDS = 24;
/** Longer than the disk takes for a call, shorter than any limit. */
const LONGEST_CALL_MS = 30;

export interface MachineProcess {
  readonly pid: number;
  readonly start: string;
  readonly group: number;
  readonly isOwn: boolean;
  /** Monotonic time of the start. */
  readonly begunAt: number;
  readonly events: EventEmitter;
  /** What it says of itself. */
  readonly mark: Mark | undefined;
  env: readonly string[];
  argv: readonly string[];
  isServer: boolean;
  /** Who sent SIGTERM. */
  stoppedBy: Reach | undefined;
}

/** `some`: few calls fail, and some are slow. `exhausted`: nothing can be opened. `full`: nothing can be written. */
type MachineFaults = 'none' | 'some' | 'exhausted' | 'full';

export interface MachineOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Milliseconds from SIGTERM to the end. */
  readonly stopMs: () => number;
  /** Whether nothing can be opened. */
  readonly isDown: () => boolean;
  /** A server ended, and no living controller had asked for that. */
  readonly onEnded: (server: MachineProcess) => void;
}

export function createMachine(options: MachineOptions) {
  const { clock, random, stopMs, isDown, onEnded } = options;
  const processes = new Map<number, MachineProcess>();
  const foreignPorts = new Set<number>();
  /** Launchers that wait for their controller. */
  const waiting = new Map<MachineProcess, Reach>();
  let made = 0;
  let boot = 1;
  let faults: MachineFaults = random.pick(['none', 'some']);
  let broken: string | undefined;
  const broke = (what: string): void => void (broken ??= what);

  const fail = (code: string): never => {
    throw Object.assign(new Error(`${code}: the simulation made it fail`), { code });
  };
  const check = ({ writes = false, opens = false }: { readonly writes?: boolean; readonly opens?: boolean }): void => {
    if (opens && (faults === 'exhausted' || isDown())) fail('EMFILE');
    if (writes && faults === 'full') fail('ENOSPC');
    if (faults === 'some' && random.chance(0.04)) fail(opens ? random.pick(['EMFILE', 'EIO', 'ENFILE']) : 'EIO');
  };
  const disk = createMemoryDisk({ random, wallNow: clock.wallNow, check });
  disk.put(`${STATE}/here`, '');

  const servers = (): readonly MachineProcess[] => [...processes.values()].filter(({ isServer }) => isServer);
  const end = (process: MachineProcess, code: number | null = null): void => {
    if (!processes.delete(process.pid)) return;
    waiting.delete(process);
    if (process.isServer && process.stoppedBy === undefined) onEnded(process);
    process.events.emit('exit', code, code === null ? 'SIGKILL' : null);
  };
  const isUsed = (pid: number): boolean => [...processes.values()].some((each) => each.pid === pid || each.group === pid);
  const create = ({ env = [], argv, group, isOwn = true }: Partial<MachineProcess>): MachineProcess => {
    made += 1;
    const free = Array.from({ length: PIDS }, (_, index) => FIRST_PID + ((made + index) % PIDS)).find((pid) => !isUsed(pid));
    const pid = free ?? FIRST_PID + PIDS + made;
    const process: MachineProcess = {
      pid,
      start: String(made),
      group: group ?? pid,
      isOwn,
      begunAt: clock.now(),
      events: new EventEmitter(),
      mark: markIn(env),
      env,
      argv: argv ?? [],
      isServer: false,
      stoppedBy: undefined,
    };
    processes.set(pid, process);
    return process;
  };
  const signal = (reach: Reach, target: number, name: NodeJS.Signals): void => {
    for (const process of processes.values().toArray()) {
      if (process.pid !== target && process.group !== -target) continue;
      const isOurs = process.isOwn && (process.mark?.stateDir === STATE || waiting.has(process));
      if (!isOurs) broke(`Process ${process.pid} of somebody else is signalled`);
      if (process.stoppedBy === undefined) process.stoppedBy = reach;
      // Some servers do not listen to SIGTERM.
      if (name === 'SIGKILL') end(process);
      else if (process.pid % 5 > 0) clock.at(clock.now() + stopMs(), () => void (processes.get(process.pid) === process && end(process)));
    }
  };

  /** What a controller asks of the machine. */
  const systemOf = (reach: Reach, isCut: () => boolean, own: Clock): ProcessSystem => {
    const see = async <T>(pid: number, look: (process: MachineProcess) => T): Promise<T | undefined> =>
      await reach(() => {
        check({ opens: true });
        const process = processes.get(pid);
        return process && look(process);
      });
    return {
      files: createRecordFiles(disk.openFor(reach)),
      logs: () => ({
        withFile: async (_name, work) => {
          await reach(() => check({ opens: true }));
          return await work(-1);
        },
        remove: async () => await reach(() => undefined),
        rotate: async () => undefined,
        async *read() {
          yield { stream: 'stdout', text: await reach(() => 'listening') };
        },
      }),
      memory: () => ({ read: async () => undefined, work: async () => undefined }),
      now: own.now,
      wallNow: own.wallNow,
      sleep: async (ms, ending) => await pause(own, ms, ending ?? new AbortController().signal),
      table: {
        read: async (pid) => await see(pid, ({ start, group }) => ({ start, group, zombie: false })),
        bootId: async () =>
          await reach(() => {
            check({ opens: true });
            return `boot ${boot}`;
          }),
        argv: async (pid) => await see(pid, ({ argv }) => argv),
        env: async (pid) => await see(pid, ({ env }) => env),
        list: async () =>
          await reach(() => {
            check({ opens: true });
            return [...processes.values()].flatMap(({ pid, isOwn }) => (isOwn ? [pid] : []));
          }),
      },
      async launch(command, env) {
        if (faults === 'exhausted' || isDown()) return { error: 'spawn EMFILE' };
        const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
        const launcher = await reach(() => {
          const created = create({ env: variables, argv: ['/bin/sh', LAUNCHER, ...command] });
          waiting.set(created, reach);
          // It reads from its controller, which has ended meanwhile.
          if (isCut()) end(created, 1);
          return created;
        });
        return {
          child: launcher.events,
          pid: launcher.pid,
          go() {
            if (isCut() || !waiting.delete(launcher)) return;
            launcher.env = [...launcher.env, `${LEADER}=${launcher.pid}`];
            launcher.argv = command;
            launcher.isServer = true;
            const { name } = launcher.mark?.record ?? {};
            const same = servers().filter((each) => each.mark?.record.name === name);
            if (same.length > 1) broke(`A second server "${name}" is started`);
          },
          drop: () => void (isCut() || end(launcher, 1)),
        };
      },
      signal: (target, name) => void (isCut() || signal(reach, target, name)),
      oomKills: async () => undefined,
      isKilledByKernel: async () => false,
      checkPortFree: async (port) =>
        await reach(() =>
          foreignPorts.has(port) || servers().some((each) => each.mark?.record.port.host === port) ? portTaken(port) : ok(undefined),
        ),
    };
  };

  return {
    disk,
    systemOf,
    servers,
    foreignPorts,
    broke,
    broken: () => broken,
    /** Whether nothing fails now. */
    isWhole: () => faults === 'none' && !isDown(),
    /** How a controller reaches the machine: in a disturbed world, some calls take time. */
    reachOf: (cut: Promise<never>, isCut: () => boolean): Reach => {
      const reach: Reach = async (work) => {
        if (isCut()) return await cut;
        if (faults === 'some' && random.chance(0.02)) {
          await new Promise<void>((resolve) => void clock.at(clock.now() + random.int(1, LONGEST_CALL_MS), resolve));
          // What it asked for may happen or not.
          if (isCut() && random.chance(0.5)) return await cut;
        }
        const result = await work();
        return isCut() ? await cut : result;
      };
      return reach;
    },
    /** Ends what does not outlive its controller. */
    left(reach: Reach): void {
      for (const [launcher, by] of waiting) if (by === reach) end(launcher, 1);
      for (const server of servers()) {
        if (server.stoppedBy !== reach) continue;
        server.stoppedBy = undefined;
        onEnded(server);
      }
    },
    setFaults: (next: MachineFaults) => void (faults = next),
    end,
    /** A child of a server, in its group or in its own, a stranger, and copies of another installation and of another user. */
    fork({ env, argv, group }: MachineProcess): void {
      create({ env, argv: ['child'], ...(random.chance(0.5) ? { group } : {}) });
      create({ argv: ['stranger'] });
      create({ argv, env: env.map((line) => line.replaceAll(`"${STATE}"`, '"/elsewhere"')) });
      create({ argv, env, isOwn: false });
    },
    /** Processes of this installation. */
    marked: () => [...processes.values()].filter((each) => each.isOwn && each.mark?.stateDir === STATE),
    losePower(): void {
      boot += 1;
      processes.clear();
      waiting.clear();
      disk.losePower();
    },
  };
}

interface Mark {
  readonly stateDir: string;
  readonly record: {
    readonly name: string;
    readonly slot: string;
    readonly revision: string;
    readonly generation: number;
    readonly startedAt: number;
    readonly argv: readonly [string, ...string[]];
    readonly program: [string, ...string[]];
    readonly port: { readonly host: number; readonly container: number };
  };
}

function markIn(env: readonly string[]): Mark | undefined {
  const text = env.find((line) => line.startsWith(`${MARK}=`))?.slice(MARK.length + 1);
  return text === undefined ? undefined : JSON.parse(text);
}
