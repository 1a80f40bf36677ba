/** The first phase of a simulation: a minute with edits, crashes, outages, requests and changes of the leader. */
import type { WorkloadId } from '../../../src/schema/words/names.ts';
import { crashInAction, happenInAction } from './simulate-crash.ts';
import { BAD_MODEL, MODELS, type Scene } from './simulate-scene.ts';
import type { Referee } from './world-referee.ts';
import { IMAGE, slotName, type World } from './world.ts';

const CHAOS_MS = 60_000;

export async function chaos(scene: Scene): Promise<void> {
  const { world, random, referee, names } = scene;
  const { clock } = world;
  const end = clock.now() + CHAOS_MS;
  for (let events = random.int(5, 14); events > 0; events -= 1) {
    await watch(world, referee, clock.now() + random.int(0, 2 * Math.floor(CHAOS_MS / 14)));
    const name = random.pick([names[0] ?? 'primary', ...names]);
    if (scene.pods && random.chance(0.5)) await happenInCluster(scene, name);
    else if (world.host !== undefined && random.chance(0.6)) happenOnHost(scene, name);
    else await happen(scene, name);
  }
  await watch(world, referee, Math.max(clock.now() + 1000, Math.min(end, clock.now() + 5000)));
}

function victimOf({ world, random }: Scene, name: string): WorkloadId | undefined {
  const workloads = world.runtime.list().filter(({ slot, phase }) => slot === name && phase === 'running');
  return workloads[random.int(0, Math.max(0, workloads.length - 1))]?.id;
}

async function happen(scene: Scene, name: string): Promise<void> {
  const { world, random, faults, referee } = scene;
  const victim = victimOf(scene, name);
  const known = world.desired.has(slotName(name));
  switch (random.int(0, 13)) {
    case 0:
    case 1:
    case 2:
      return world.edit(name, scene.documentOf());
    case 3:
      if (known && random.chance(0.5)) return world.spoil(name, 'This is not TOML');
      world.remove(name);
      // Another slot of this name, which no pass may confuse with the first one.
      return random.chance(0.4) ? world.edit(name, scene.documentOf()) : undefined;
    case 4:
      if (victim === undefined) return;
      referee.killed(victim);
      return world.runtime.exit(victim, { code: 139 });
    case 5:
      if (victim === undefined) return;
      referee.killed(victim);
      return world.runtime.vanish(victim);
    case 6:
      return victim === undefined ? undefined : alter(scene, name, victim);
    case 7:
      return world.setModel(random.pick(MODELS), random.pick(['present', 'pullable', 'missing']), random.int(1, 2) * 1000);
    case 8:
      return random.chance(0.5)
        ? world.runtime.removeImage(IMAGE.reference)
        : void world.runtime.foreignPorts.add(random.int(18_080, 18_084));
    case 9:
      faults.down = random.chance(0.5) ? 'Connection refused' : undefined;
      return;
    case 10:
      if (random.chance(0.5)) faults.failingEndpoints = random.chance(0.5);
      else if (victim !== undefined && !scene.pods) world.freeze(victim);
      // A silent server is stopped without a drain.
      for (const { id } of world.runtime.list()) if (id === victim || faults.failingEndpoints) referee.killed(id);
      return;
    case 11:
      return await restart(scene);
    default:
      for (let count = random.int(1, 5); count > 0; count -= 1) ask(scene, name);
  }
}

/** Some who alter a workload do it again as soon as it is repaired. */
function alter({ world, faults }: Scene, name: string, victim: WorkloadId): void {
  const { clock, runtime } = world;
  runtime.alter(victim, ALTERED);
  for (const ms of clock.now() % 2 === 0 ? [400, 1000, 2500] : []) {
    clock.at(clock.now() + ms, () => {
      const running = runtime.list().filter(({ slot, phase }) => slot === name && phase === 'running');
      if (faults.chaos) for (const { id } of running) runtime.alter(id, ALTERED);
    });
  }
}

const ALTERED = { argv: ['fake-server', '--altered'] } as const;

async function happenInCluster(scene: Scene, name: string): Promise<void> {
  const { world, random, faults } = scene;
  const victim = victimOf(scene, name);
  const { cluster } = world;
  switch (random.int(0, 7)) {
    case 0:
      faults.room = random.int(0, 5);
      return cluster?.place();
    case 1:
      return victim === undefined ? undefined : cluster?.evict(victim);
    case 2:
      return victim === undefined ? undefined : cluster?.scale(victim, random.int(0, 3));
    case 3:
      return handOver(scene);
    case 4:
    case 5:
      return world.scale(name, random.int(0, 3));
    default:
      for (let count = random.int(1, 5); count > 0; count -= 1) ask(scene, name);
  }
}

function happenOnHost(scene: Scene, name: string): void {
  const { world, random, referee } = scene;
  const { host } = world;
  const servers = host?.machine.servers() ?? [];
  const server = servers[random.int(0, servers.length)];
  switch (random.int(0, 7)) {
    case 0:
      return server && host?.machine.fork(server);
    case 1:
      // Once its server has ended, nothing is known of it.
      return loseRecord(scene);
    case 2:
    case 3:
      return host?.machine.setFaults(random.pick(['none', 'some', 'some', 'exhausted', 'full']));
    case 4:
      for (const { id } of world.runtime.list()) referee.killed(id);
      host?.machine.losePower();
      return referee.follow(world.crash());
    default:
      for (let count = random.int(1, 5); count > 0; count -= 1) ask(scene, name);
  }
}

function loseRecord({ world, random }: Scene): void {
  const id = world.host?.loseRecord(random);
  if (id !== undefined) world.deeds.vanished.set(id, world.clock.now());
}

async function restart(scene: Scene): Promise<void> {
  const { world, random, referee } = scene;
  const index = random.int(0, world.lives().length - 1);
  if (random.chance(0.5)) return crashInAction(scene, index, () => elect(scene));
  const led = world.leader() === index;
  referee.follow(await world.restart(index));
  if (led) elect(scene);
}

/** The leader resigns, often in the middle of an action, and another one is elected. */
function handOver(scene: Scene): void {
  const { world, random } = scene;
  const leader = world.leader();
  const resign = (): void => {
    world.lead(undefined);
    elect(scene);
  };
  if (leader === undefined || random.chance(0.5)) return resign();
  happenInAction(scene, leader, () => {
    if (world.leader() === leader) resign();
  });
}

function elect({ world, random }: Scene): void {
  const next = random.int(0, world.lives().length - 1);
  const at = world.clock.now() + (random.chance(0.3) ? 0 : random.int(1, 15_000));
  world.clock.at(at, () => {
    if (world.leader() === undefined) world.lead(next);
  });
}

function ask({ world, random, pods }: Scene, name: string): void {
  const patience = random.chance(0.2) ? random.int(10, 5000) : undefined;
  const workMs = random.chance(0.25) ? 8000 : random.int(1, 1500);
  const life = pods ? world.lives()[random.int(0, world.lives().length - 1)] : world.life();
  life?.traffic.ask(slotName(name), workMs, patience);
}

export async function watch(world: World, referee: Referee, until: number): Promise<void> {
  await watchUntil(world, referee, () => false, until - world.clock.now());
  await world.clock.advanceTo(until);
}

export async function watchUntil(world: World, referee: Referee, condition: () => boolean, ms: number): Promise<boolean> {
  return await world.clock.until(() => {
    endBadServers(world, referee);
    referee.look();
    return condition();
  }, ms);
}

function endBadServers(world: World, referee: Referee): void {
  for (const { id, phase, container } of world.runtime.list()) {
    if (phase !== 'running' || container.argv?.[2]?.endsWith(BAD_MODEL) !== true || world.runtime.runningMs(id) < 20) continue;
    referee.killed(id);
    world.runtime.exit(id, { code: 1 });
  }
}
