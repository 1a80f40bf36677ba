/** A small world for the real loop: slots to edit, an in-memory runtime and model store, gateways with requests, and a clock that tests move. */
import type { BoardSlot } from '../../../src/reconciler/board.ts';
import type { DesiredSlot, SlotSource, Wake } from '../../../src/reconciler/ports.ts';
import { createInMemoryCluster, type InMemoryCluster } from '../in-memory/in-memory-cluster.ts';
import { createInMemoryRuntime, type InMemoryRuntime } from '../in-memory/in-memory-runtime.ts';
import { judgeText, settleRollout } from '../../../src/evaluation/decide/rollout-state.ts';
import { defined } from '../../../src/schema/pod/kube-fields.ts';
import { ok } from '../../../src/schema/words/failure.ts';
import type { RequestHistory } from '../../../src/schema/status/request-history.ts';
import type { SlotStatus } from '../../../src/schema/status/slot-status.ts';
import { SlotName, type WorkloadId } from '../../../src/schema/words/names.ts';
import { parseSlot, type SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import { parseSettings, type Settings } from '../../../src/schema/settings/settings.ts';
import { createHostWorld, type HostWorld } from './machine/host-world.ts';
import { createWorldClock, type WorldClock } from './world-clock.ts';
import { createDeeds, witnessCluster, witnessRuntime, type Deeds } from './deeds.ts';
import { beginLife, type Life } from './world-life.ts';
import { createWorldModels, listen } from './world-models.ts';
import { createElection } from './world-election.ts';
import { IMAGE, GPU_IMAGE, type WorldOptions } from './world-options.ts';
import type { WorldTraffic } from './world-traffic.ts';

export interface World {
  readonly clock: WorldClock;
  readonly runtime: InMemoryRuntime;
  /** The same, in a world with pods. */
  readonly cluster: InMemoryCluster | undefined;
  /** The machine, in a world with the real adapters of a host. */
  readonly host: HostWorld | undefined;
  /** The present controller; with several, the leader, or the first one while there is no leader. */
  life(): Life;
  lives(): readonly Life[];
  /** Undefined: no controller leads. */
  lead(index: number | undefined): void;
  leader(): number | undefined;
  restart(index?: number): Promise<Life>;
  /** Stops the process of a workload, as SIGSTOP does: it keeps its connections and answers nothing. */
  freeze(workload: WorkloadId): void;
  thaw(workload: WorkloadId): void;
  /** As `restart`, but the controller gets no time to end. */
  crash(index?: number): Life;
  readonly deeds: Deeds;
  /** Whether a server sleeps in truth, whatever controllers know. */
  isAsleep(id: WorkloadId, bornAt: number): boolean;
  /** Whether the runtime answers, apart from single calls that fail. */
  isReachable(): boolean;
  readonly memoryBudgetBytes: number | undefined;
  edit(name: string, document: SlotDocument): void;
  /** As an autoscaler does: edits nothing but the number of replicas. Not for a slot that is not declared, or that does not parse. */
  scale(name: string, replicas: number): void;
  /** Saves a text that does not parse: the last good one stays in force. */
  spoil(name: string, message: string): void;
  remove(name: string): void;
  setModel(id: string, presence: 'present' | 'pullable' | 'missing', sizeBytes?: number, version?: string): void;
  slot(name: string): BoardSlot;
  /** Lets time pass until the slot is in this state; throws when it does not reach it in time. */
  reach(name: string, state: string, withinMs?: number): Promise<void>;
  /** Every action except probes that the leader has planned so far, as text. */
  changes(): readonly string[];
  readonly desired: ReadonlyMap<SlotName, DesiredSlot>;
  /** What the last status of each slot was made of. */
  statusesOf(): ReadonlyMap<SlotName, DesiredSlot>;
}

export const slotName = (text: string): SlotName => SlotName.parse(text);

export function createWorld(options: WorldOptions = {}): World {
  const clock = createWorldClock();
  const lives: Life[] = [];
  const inUse = (id: WorkloadId): boolean => lives.some(({ traffic }) => (traffic.read().workloads.get(id)?.inFlight ?? 0) > 0);
  const deeds = createDeeds();
  const host = createHost(options, clock, deeds);
  const { cluster, runtime } =
    host === undefined
      ? createRuntime(options, clock, inUse, deeds)
      : { cluster: undefined, runtime: witnessRuntime(host.runtime, deeds, clock) };
  for (const image of [IMAGE, GPU_IMAGE]) runtime.addImage(image);
  const desired = new Map<SlotName, DesiredSlot>();
  const wakes = new Set<Wake>();
  const wakeAll = (): void => {
    if (options.losesWake?.() !== true) for (const wake of wakes) wake();
  };
  const source: SlotSource = {
    read: async () => ok({ slots: new Map(desired), refused: new Map() }),
    changes: (wake, signal) => listen(wakes, wake, signal),
    // As on a disk, what is settled outlives the controller.
    settle(name, settlement) {
      const slot = desired.get(name);
      if (slot === undefined || settlement.generation !== slot.generation) return;
      const { inForce, rollout } = settleRollout({ inForce: { spec: slot.spec, document: {} }, rollout: slot.rollout }, settlement);
      desired.set(name, { ...slot, spec: inForce.spec, rollout });
      options.rollouts?.settled(settlement);
    },
  };
  const models = createWorldModels({
    clock,
    modelPullMs: options.modelPullMs,
    modelPullFailure: options.modelPullFailure,
    losesWake: options.losesWake,
  });
  const settings = settingsOf({ SVC_RESYNC: '15s', ...options.env });

  const changes: string[] = [];
  const frozen = new Set<WorkloadId>();
  const statuses = new Map<SlotName, SlotStatus>();
  const statusesOf = new Map<SlotName, DesiredSlot>();
  const timeline = { lastSeq: 0 };
  const histories = new Map<SlotName, RequestHistory>(options.histories);
  const isFrozen = (id: WorkloadId): boolean => frozen.has(id);
  const election = createElection(options.replicas === undefined ? undefined : 0);
  const demandWakes = new Set<Wake>();
  const begin = (index: number): void => {
    const others = (): readonly WorldTraffic[] => lives.filter((_, other) => other !== index).map(({ traffic }) => traffic);
    const parts = {
      options,
      clock: options.clockOf?.(clock) ?? clock,
      runtime,
      source,
      models,
      settings,
      changes,
      others,
      demandWakes,
      deeds,
      isFrozen,
      statuses,
      statusesOf,
      timeline,
      histories,
      host,
    };
    lives[index] = beginLife({ ...parts, leadership: options.replicas === undefined ? undefined : election.leadershipOf(index) });
  };
  for (let index = 0; index < (options.replicas ?? 1); index += 1) begin(index);
  const lifeAt = (index: number): Life => {
    const life = lives[index];
    if (life === undefined) throw new Error(`There is no controller ${index}`);
    return life;
  };

  const beginAgain = (index: number): Life => {
    if (election.leader() === index && options.replicas !== undefined) election.elect(undefined);
    begin(index);
    return lifeAt(index);
  };

  let declared = 0;
  const put = (name: SlotName, part: Pick<DesiredSlot, 'spec' | 'problems'>): void => {
    const before = desired.get(name);
    if (before === undefined) declared += 1;
    // As in a cluster; a file on a host has no identity beside its name.
    const uid = options.replicas === undefined ? undefined : (before?.uid ?? `uid-${declared}`);
    const texts = { inForce: before && { spec: before.spec, document: {} }, rollout: before?.rollout };
    const { inForce, rollout } = judgeText(texts, { spec: part.spec, document: {} }, options.rollouts?.checks());
    desired.set(name, { name, uid, generation: (before?.generation ?? 0) + 1, ...part, spec: inForce.spec, ...defined({ rollout }) });
    wakeAll();
  };
  const world: World = {
    clock,
    runtime,
    cluster,
    host,
    desired,
    changes: () => changes,
    statusesOf: () => host?.statusesOf() ?? statusesOf,
    life: () => lifeAt(election.leader() ?? 0),
    lives: () => lives,
    lead: election.elect,
    leader: election.leader,
    async restart(index = 0) {
      const life = lifeAt(index);
      await life.end();
      // The lock of its state directory keeps the next controller of a host out until it has ended.
      if (host !== undefined && !(await clock.until(life.hasEnded, LONGEST_END_MS))) throw new Error('A controller does not end');
      if (host !== undefined) life.crash();
      return beginAgain(index);
    },
    freeze: (id) => void frozen.add(id),
    thaw: (id) => void frozen.delete(id),
    crash(index = 0) {
      lifeAt(index).crash();
      return beginAgain(index);
    },
    deeds,
    isAsleep: (id, bornAt) => options.isAsleep?.(id, bornAt) === true,
    isReachable: () => options.behaviour?.unreachable?.() === undefined,
    memoryBudgetBytes: settings.SVC_MEMORY_BUDGET,
    edit(text, document) {
      const name = slotName(text);
      const parsed = parseSlot(name, document);
      if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
      put(name, { spec: parsed.spec, problems: [] });
      host?.edit(name, document, parsed.spec);
    },
    scale(text, replicas) {
      const name = slotName(text);
      const present = desired.get(name);
      if (present === undefined || present.problems.length > 0 || present.spec.cluster.replicas === replicas) return;
      put(name, { spec: { ...present.spec, cluster: { ...present.spec.cluster, replicas } }, problems: [] });
    },
    spoil(text, message) {
      const slot = desired.get(slotName(text));
      if (slot === undefined) throw new Error(`There is no slot "${text}"`);
      desired.set(slot.name, { ...slot, problems: [{ path: ['model'], message, file: '/slots/x.toml', line: 3, column: 7 }] });
      host?.spoil(slot.name);
      wakeAll();
    },
    remove(text) {
      desired.delete(slotName(text));
      host?.remove(slotName(text));
      wakeAll();
    },
    setModel: (text, presence, sizeBytes = 1000, version) => models.set(text, presence, sizeBytes, version),
    slot(text) {
      const slot = world.life().board.current().slots.get(slotName(text));
      if (slot === undefined) throw new Error(`Slot "${text}" is not on the board`);
      return slot;
    },
    async reach(text, state, withinMs = 60_000) {
      const seen = (): BoardSlot | undefined => world.life().board.current().slots.get(slotName(text));
      if (await clock.until(() => seen()?.status.state === state, withinMs)) return;
      throw new Error(`Slot "${text}" did not become ${state}:\n${seen()?.explain(clock.now()) ?? 'not there'}`);
    },
  };
  return world;
}

/** Thousands of worlds have a dozen different settings, which nothing changes. */
const settingsByEnv = new Map<string, Settings>();

function settingsOf(env: Readonly<Record<string, string>>): Settings {
  const key = JSON.stringify(env);
  const known = settingsByEnv.get(key);
  if (known !== undefined) return known;
  const made = parseSettings(env);
  if (!made.ok) throw new Error(made.problems.join());
  settingsByEnv.set(key, made.settings);
  return made.settings;
}

/** A stop, and what it may have to wait for. */
const LONGEST_END_MS = 120_000;

function createHost({ machine }: WorldOptions, clock: WorldClock, deeds: Deeds): HostWorld | undefined {
  if (machine === undefined) return undefined;
  const host: HostWorld = createHostWorld({
    ...machine,
    clock,
    onEnded(server) {
      const id = host.idOf(server);
      deeds.exits.set(id, [...(deeds.exits.get(id) ?? []), clock.now()]);
      machine.onKilled(id);
    },
  });
  return host;
}

function createRuntime(
  options: WorldOptions,
  clock: WorldClock,
  inUse: (id: WorkloadId) => boolean,
  deeds: Deeds,
): { readonly cluster: InMemoryCluster | undefined; readonly runtime: InMemoryRuntime } {
  const { brokenStop } = options.behaviour ?? {};
  const parts = {
    clock,
    behaviour: {
      work: (id: WorkloadId) => ({ cpuMs: inUse(id) && options.hangs?.() !== true ? clock.now() : 0, deviceMs: undefined }),
      ...(options.losesWake === undefined ? {} : { losesWake: options.losesWake }),
      inUse,
      ...options.behaviour,
      brokenStop(id: WorkloadId) {
        const broken = brokenStop?.(id);
        if (broken !== undefined) deeds.signalled.add(id);
        return broken;
      },
    },
    ...(options.traits === undefined ? {} : { traits: options.traits }),
  };
  const cluster = options.replicas === undefined ? undefined : witnessCluster(createInMemoryCluster(parts), deeds, clock);
  return { cluster, runtime: cluster ?? witnessRuntime(createInMemoryRuntime(parts), deeds, clock) };
}

export { FAKE_PROVIDER } from './world-models.ts';
export { IMAGE, type WorldOptions } from './world-options.ts';
