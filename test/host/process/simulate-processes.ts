/** One random world of the process runtime: a machine in memory, and a driver that acts on observations as the loop does. */
import { EventEmitter } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { LAUNCHER, LEADER } from '../../../src/host/process/decide/process-facts.ts';
import { createProcessSystem, type ProcessSystem } from '../../../src/host/process/process-monitor.ts';
import { createProcessRuntime } from '../../../src/host/process/process-runtime.ts';
import { portTaken } from '../../../src/host/host-probe.ts';
import type { ObservedWorkload, Runtime, Workload } from '../../../src/reconciler/ports.ts';
import { ok } from '../../../src/schema/words/failure.ts';
import { Revision, SlotName } from '../../../src/schema/words/names.ts';
import { createRandom, type Random } from '../../support/simulation/seeded-random.ts';

const SLOTS = ['one', 'two', 'three'].map((name) => SlotName.parse(name));
const STEPS = 40;
/** Beyond the largest pid of Linux, so that nothing real is measured. */
const FIRST_PID = 5_000_000;

interface FakeProcess {
  readonly pid: number;
  readonly uid: 'own' | 'other';
  group: number;
  start: string;
  env: readonly string[];
  argv: readonly string[];
  /** Server of this slot; undefined for launchers, children and strangers. */
  slot: string | undefined;
  readonly events: EventEmitter;
}

/** Returns the invariant that broke. */
export async function simulateProcesses(seed: number): Promise<string | undefined> {
  const stateDir = await mkdtemp(join(tmpdir(), 'svc-world-'));
  try {
    return await runWorld(createRandom(seed), stateDir);
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
}

async function runWorld(random: Random, stateDir: string): Promise<string | undefined> {
  const machine = createMachine(random, stateDir);
  const open = (): Runtime =>
    createProcessRuntime({ stateDir, env: {}, resolveProgram: () => Promise.resolve(ok(['/bin/server'])), system: machine.system() });
  let runtime = open();
  const never = new AbortController().signal;
  const check = (workloads: readonly ObservedWorkload[]): void => {
    for (const server of machine.servers()) {
      const seen = workloads.find(isOf(server));
      if (seen === undefined) machine.broke(`the server of "${server.slot}" (${server.pid}) is not observed`);
      else if (seen.phase === 'exited')
        machine.broke(`the server of "${server.slot}" (${server.pid}) is declared gone: ${seen.exit?.message}`);
    }
  };
  const checkReal = (workloads: readonly ObservedWorkload[]): void => {
    const isReal = (workload: ObservedWorkload): boolean => machine.servers().some((server) => isOf(server)(workload));
    for (const workload of workloads)
      if (workload.phase === 'running' && !isReal(workload)) machine.broke(`"${workload.id}" is taken for a server`);
  };
  const observe = async (): Promise<readonly ObservedWorkload[] | undefined> => {
    const facts = await runtime.observe([], never);
    if (facts.ok) check(facts.value.workloads);
    if (facts.ok) checkReal(facts.value.workloads);
    return facts.ok ? facts.value.workloads : undefined;
  };
  const reconcile = async (): Promise<void> => {
    const seen = await observe();
    if (seen === undefined) return;
    for (const slot of SLOTS) {
      const own = seen.filter((workload) => workload.slot === slot);
      for (const { id, phase } of own) if (phase === 'exited') await runtime.stop(id, { graceMs: 0 }, never);
      if (own.length > 0) continue;
      const cancel = new AbortController();
      const starting = runtime.apply(workloadOf(slot), cancel.signal);
      if (random.chance(0.1)) cancel.abort();
      await starting;
    }
  };
  for (let step = 0; step < STEPS && machine.broken() === undefined; step += 1) {
    machine.setFaults(random.pick(['none', 'none', 'few', 'few', 'exhausted', 'full']));
    await reconcile();
    const server = machine.servers()[random.int(0, SLOTS.length)];
    const deed = random.int(0, 9);
    if (deed === 0) runtime = open();
    if (deed === 1) machine.reboot();
    if (deed === 1) runtime = open();
    if (deed === 2 && server !== undefined) machine.end(server.pid);
    if (deed === 3 && server !== undefined) machine.fork(server.pid);
    if (deed === 4) machine.loseRecord();
    if (deed === 5 && server !== undefined) {
      const found = (await observe())?.find(isOf(server));
      if (random.chance(0.3)) machine.loseRecord();
      const stopped = found && (await runtime.stop(found.id, { graceMs: 0 }, never));
      if (stopped?.ok === true && machine.servers().includes(server)) machine.broke(`"${found?.id}" was stopped and runs`);
    }
  }
  machine.setFaults('none');
  for (let round = 0; round < 3; round += 1)
    for (const { id } of (await observe()) ?? []) {
      const stopped = await runtime.stop(id, { graceMs: 0 }, never);
      if (!stopped.ok) machine.broke(`"${id}" cannot be stopped: ${stopped.failure.message}`);
    }
  const left = machine.marked();
  if (left.length > 0) machine.broke(`processes are left after everything was stopped: ${left.map(({ pid }) => pid).join(', ')}`);
  return machine.broken();
}

type Faults = 'none' | 'few' | 'exhausted' | 'full';

function createMachine(random: Random, stateDir: string) {
  const files = new Map<string, string>();
  const processes = new Map<number, FakeProcess>();
  let nextPid = FIRST_PID;
  let ticks = 0;
  let boot = 1;
  let faults: Faults = 'none';
  let broken: string | undefined;
  const broke = (what: string): void => void (broken ??= what);
  const servers = (): readonly FakeProcess[] => [...processes.values()].filter(({ slot }) => slot !== undefined);
  const failure = (code: string): never => {
    throw Object.assign(new Error(`${code}: injected`), { code });
  };
  /** Every operation that opens a file. */
  const opens = async (): Promise<void> => {
    await Promise.resolve();
    if (faults === 'exhausted') failure('EMFILE');
    if (faults === 'few' && random.chance(0.05)) failure(random.pick(['EMFILE', 'EIO', 'ENFILE']));
  };
  const end = (pid: number, code: number | null = null): void => {
    const process = processes.get(pid);
    processes.delete(pid);
    process?.events.emit('exit', code, code === null ? 'SIGKILL' : null);
  };
  const isRunning = (path: string): boolean => {
    const text = files.get(path.replace(/exit$/, 'json')) ?? '';
    return servers().some(({ pid, start }) => text.includes(`"pid":${pid},"start":"${start}"`));
  };
  const create = (part: Pick<FakeProcess, 'env' | 'argv'> & Partial<FakeProcess>): FakeProcess => {
    // Numbers are reused, as on a machine that runs for long.
    const free = [...Array(8).keys()].map((offset) => FIRST_PID + ((nextPid + offset) % 12)).find((pid) => !isUsed(pid));
    const pid = free ?? FIRST_PID + nextPid;
    nextPid += 1;
    ticks += 1;
    const process: FakeProcess = {
      uid: 'own',
      group: pid,
      start: String(ticks),
      slot: undefined,
      events: new EventEmitter(),
      ...part,
      pid,
    };
    processes.set(pid, process);
    return process;
  };
  const isUsed = (pid: number): boolean => processes.has(pid) || [...processes.values()].some(({ group }) => group === pid);

  const system = (): ProcessSystem => ({
    ...createProcessSystem(),
    files: {
      async read(path) {
        await opens();
        return files.get(path);
      },
      async list(directory) {
        await opens();
        return [...files.keys()].filter((path) => dirname(path) === directory).map((path) => path.slice(directory.length + 1));
      },
      async write(path, content) {
        await opens();
        if (faults === 'full') failure('ENOSPC');
        if (path.endsWith('.exit') && isRunning(path)) broke(`an exit is recorded of a running server: ${path}`);
        const text = JSON.stringify(content);
        if (faults === 'few' && random.chance(0.05)) return;
        files.set(path, faults === 'few' && random.chance(0.05) ? text.slice(0, random.int(0, text.length - 1)) : text);
      },
      async remove(path) {
        await opens();
        if (path.endsWith('.json') && isRunning(path)) broke(`the record of a running server is deleted: ${path}`);
        files.delete(path);
      },
      identity: () => Promise.resolve('directory'),
      stamp: () => Promise.resolve(undefined),
    },
    table: {
      async read(pid) {
        await opens();
        const process = processes.get(pid);
        return process === undefined ? undefined : { start: process.start, group: process.group, zombie: false };
      },
      async bootId() {
        await opens();
        return `boot ${boot}`;
      },
      async argv(pid) {
        await opens();
        return processes.get(pid)?.argv;
      },
      async env(pid) {
        await opens();
        return processes.get(pid)?.env;
      },
      async list() {
        await opens();
        return [...processes.values()].filter(({ uid }) => uid === 'own').map(({ pid }) => pid);
      },
    },
    async launch(command, env) {
      await Promise.resolve();
      if (faults === 'exhausted') return { error: 'spawn EMFILE' };
      const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
      const launcher = create({ env: variables, argv: ['/bin/sh', LAUNCHER, ...command] });
      return {
        child: launcher.events,
        pid: launcher.pid,
        go() {
          if (processes.get(launcher.pid) !== launcher) return;
          launcher.env = [...launcher.env, `${LEADER}=${launcher.pid}`];
          launcher.argv = command;
          launcher.slot = command.at(-1);
          if (servers().filter(({ slot }) => slot === launcher.slot).length > 1) broke(`a second server of "${launcher.slot}" is started`);
        },
        drop: () => end(launcher.pid, 1),
      };
    },
    signal(target) {
      const targets = [...processes.values()].filter(({ pid, group }) => target === pid || target === -group);
      for (const { pid } of targets) endBy(target, pid);
    },
    // A pause gives way, and takes no time.
    sleep: async () => await new Promise((resolve) => void setImmediate(resolve)),
    oomKills: () => Promise.resolve(undefined),
    isKilledByKernel: () => Promise.resolve(false),
    checkPortFree: async (port) => (servers().some(({ slot }) => portOf(slot ?? '') === port) ? portTaken(port) : ok(undefined)),
  });
  const endBy = (target: number, pid: number): void => {
    const ours = processes.get(pid);
    if (ours?.uid !== 'own' || !ours.env.some((line) => line.includes(stateDir)))
      broke(`process ${pid} of somebody else is signalled (${target})`);
    end(pid);
  };
  return {
    system,
    servers,
    broke,
    broken: () => broken,
    marked: () => [...processes.values()].filter(({ env, uid }) => uid === 'own' && env.some((line) => line.includes(stateDir))),
    setFaults: (next: Faults) => void (faults = next),
    end,
    /** A child with the environment of a server, in its group or in its own, a stranger, and copies of another installation and of another user. */
    fork(pid: number) {
      const parent = processes.get(pid);
      if (parent === undefined) return;
      const child = create({ env: parent.env, argv: ['child'] });
      if (random.chance(0.5)) child.group = parent.group;
      create({ env: [], argv: ['stranger'] });
      const elsewhere = parent.env.map((line) => line.replaceAll(stateDir, '/elsewhere'));
      const other = create({ env: [], argv: parent.argv });
      other.env = elsewhere.map((line) => (line.startsWith(`${LEADER}=`) ? `${LEADER}=${other.pid}` : line));
      const copy = create({ env: [], argv: parent.argv, uid: 'other' });
      copy.env = parent.env.map((line) => (line.startsWith(`${LEADER}=`) ? `${LEADER}=${copy.pid}` : line));
    },
    loseRecord() {
      const records = [...files.keys()].filter((path) => path.endsWith('.json'));
      const path = records[random.int(0, records.length)];
      if (path !== undefined) files.delete(path);
    },
    reboot() {
      boot += 1;
      processes.clear();
    },
  };
}

/** Numbers of processes are used again; with its start, one means one process. */
const isOf =
  ({ pid, start }: FakeProcess) =>
  ({ id }: ObservedWorkload): boolean =>
    id.endsWith(`:${pid}:${start}`);

const portOf = (slot: string): number => 20_000 + SLOTS.findIndex((each) => each === slot);

function workloadOf(slot: SlotName): Workload {
  return {
    name: `svc-slot-${slot}`,
    slot,
    revision: Revision.parse('0123456789ab'),
    generation: 1,
    image: undefined,
    argv: ['server', slot],
    env: { SLOT: slot },
    mounts: [],
    devices: [],
    port: { host: portOf(slot), container: portOf(slot) },
    memoryLimitBytes: undefined,
  };
}
