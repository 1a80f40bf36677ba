/** The second phase of a simulation: without faults, everything that is desired and possible must come true, after which nothing is left to do. */
import { isSameValue } from '../../../src/schema/words/same-value.ts';
import { watch, watchUntil } from './simulate-chaos.ts';
import { MODELS, type Scene } from './simulate-scene.ts';
import { violation } from './world-referee.ts';
import { slotName, type World } from './world.ts';

/** Longer than the longest chain of resyncs, pulls and drains; far shorter than a slot that is stuck. */
const CALM_MS = 240_000;

export async function calm(scene: Scene): Promise<void> {
  const { world, random, referee, names } = scene;
  const { clock } = world;
  for (const model of MODELS) world.setModel(model, random.chance(0.8) || scene.pods ? 'present' : 'pullable', 1000);
  for (const name of names) world.edit(name, scene.documentOf(true));
  if (scene.pods) calmCluster(scene);
  const noticed = (): boolean => names.every((name) => isNoticed(world, name));
  if (!(await watchUntil(world, referee, noticed, 30_000))) violation('An edit was not noticed');
  // By then the last faults are known: an earlier request may reach a server that has just died.
  await watch(world, referee, clock.now() + 16_000);
  const gates = scene.pods ? world.lives() : [world.life()];
  if (!(await watchUntil(world, referee, () => !scene.areFalling(), CALM_MS))) violation('A server does not fall asleep');
  const requests = names.flatMap((name) => gates.map(({ traffic }) => traffic.ask(slotName(name), 200)));
  const done = (): boolean => requests.every(({ answers }) => answers.length > 0) && names.every((name) => fulfilled(scene, name));
  if (!(await watchUntil(world, referee, done, CALM_MS)))
    violation(`What is desired and possible did not come true:\n${describe(world, names)}`);
  for (const request of requests) {
    const slot = world.desired.get(request.slot);
    const full = names.length * 2000 > scene.budget;
    if (slot?.spec.enabled === true && !full && request.answers[0] !== 'served')
      violation(`A request to "${request.slot}" was ${request.answers[0]}`);
  }
  await watch(world, referee, clock.now() + 35_000);
  referee.takeChanges();
  for (const { loop } of world.lives()) loop.wake();
  await watch(world, referee, clock.now() + 12_000);
  if (scene.pods) await changeLeader(scene);
  const [change] = referee.takeChanges();
  if (change !== undefined) violation(`Changes were planned after everything was done: ${change}`);
  if (world.host !== undefined) await removeSlots(scene);
  referee.close();
}

/** Nothing is left on a machine of slots that were removed, not even what their servers started. */
async function removeSlots({ world, referee, names }: Scene): Promise<void> {
  for (const name of names) world.remove(name);
  const left = (): readonly number[] => (world.host?.machine.marked() ?? []).map(({ pid }) => pid);
  if (!(await watchUntil(world, referee, () => left().length === 0, CALM_MS))) violation(`Processes are left: ${left().join(', ')}`);
}

/** Elects a leader and makes room for all desired pods; no more than that, unless a slot insists on a blue-green swap. */
function calmCluster({ world, random, faults, names }: Scene): void {
  if (world.leader() === undefined) world.lead(random.int(0, world.lives().length - 1));
  const specs = names.flatMap((name) => world.desired.get(slotName(name))?.spec ?? []);
  const wanted = specs.reduce((sum, { cluster }) => sum + cluster.replicas, 0);
  const insists = specs.some(({ lifecycle }) => lifecycle.swap === 'blue-green');
  faults.room = insists || random.chance(0.5) ? 50 : wanted;
  world.cluster?.place();
}

/** Elects another leader, which has nothing to do. */
async function changeLeader({ world, random, referee }: Scene): Promise<void> {
  world.lead(random.int(0, world.lives().length - 1));
  await watch(world, referee, world.clock.now() + 5000);
}

/** Whether what is desired of a slot is true, as far as it can be. */
function fulfilled(scene: Scene, name: string): boolean {
  const { world, budget } = scene;
  const slot = world.desired.get(slotName(name));
  const seen = world.life().board.current().slots.get(slotName(name));
  const workloads = world.runtime.list().filter((workload) => workload.slot === name);
  if (slot === undefined || seen === undefined || !isNoticed(world, name)) return false;
  if (!slot.spec.enabled) return workloads.length === 0;
  // A slow download may still keep the workload of an earlier edit in place, which serves the same model, or sleeps.
  const settled = seen.status.conditions.some(({ type, status }) => type === 'Reconciling' && status === 'False');
  if (workloads.length === 1 && seen.admission.kind === 'open')
    return settled && seen.status.model === slot.spec.model.default && (!scene.pods || isServedByAll(scene, name));
  // It may be unloaded because it is idle, or because others hold the memory.
  const full = workloads.length === 0 && heldBytes(world) + (seen.status.memoryBytes ?? 1000) > budget;
  // Or it loads on demand, and its requests were answered before it had to be loaded again. Schedules hold at all times by now.
  const isWarm = slot.spec.lifecycle.warm.length > 0;
  const mayRest = !isWarm && (slot.spec.load === 'on-demand' || slot.spec.lifecycle.idleTimeoutMs < Number.POSITIVE_INFINITY);
  const rests = seen.status.state === 'offline' && workloads.length === 0 && seen.admission.kind === 'park';
  const sleeps = seen.status.conditions.some(({ type, reason }) => type === 'Sleeping' && reason === 'Sleeping');
  return full || (mayRest && (rests || (sleeps && settled && seen.status.state === 'idle' && workloads.length === 1)));
}

/** Whether each gateway sends requests to each of its pods. */
function isServedByAll({ world }: Scene, name: string): boolean {
  const replicas = world.desired.get(slotName(name))?.spec.cluster.replicas;
  return world.lives().every(({ board }) => board.current().slots.get(slotName(name))?.targets.length === replicas);
}

/** Compares by value: a slot that was removed and declared again begins with the same generation. */
function isNoticed(world: World, name: string): boolean {
  const wanted = world.desired.get(slotName(name))?.spec;
  return world.lives().every(({ board }) => isSameValue(board.current().slots.get(slotName(name))?.spec, wanted));
}

function heldBytes(world: World): number {
  const up = new Set(world.runtime.list().map(({ slot }) => slot));
  return [...world.life().board.current().slots.values()].reduce(
    (sum, { name, status }) => sum + (up.has(name) ? (status.memoryBytes ?? 0) : 0),
    0,
  );
}

function describe(world: World, names: readonly string[]): string {
  const texts = world.lives().flatMap(({ board }, index) =>
    names.map((name) => {
      const text = board.current().slots.get(slotName(name))?.explain(world.clock.now()) ?? `Slot "${name}" is not there`;
      return world.lives().length === 1 ? text : `${index}${index === world.leader() ? ' (leads)' : ''}: ${text}`;
    }),
  );
  const workloads = world.cluster?.list().map(({ id, phase, replicas }) => `${id} ${phase} ${JSON.stringify(replicas)}`) ?? [];
  return [...texts, ...workloads].join('\n');
}
