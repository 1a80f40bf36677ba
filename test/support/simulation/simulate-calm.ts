/** Nothing bad happens any more: all that is wanted and possible comes true, and then there is nothing left to do. */
import { isSameValue } from '../../../src/schema/same-value.ts';
import { watch, watchUntil } from './simulate-chaos.ts';
import { documentOf, MODELS, type Scene } from './simulate-scene.ts';
import { foul } from './world-referee.ts';
import { slotName, type World } from './world.ts';

/** Longer than the longest chain of resyncs, pulls and drains; far shorter than a slot that is stuck. */
const CALM_MS = 240_000;

export async function calm(scene: Scene): Promise<void> {
  const { world, random, referee, names } = scene;
  const { clock } = world;
  for (const model of MODELS) world.setModel(model, random.chance(0.8) || scene.pods ? 'present' : 'pullable', 1000);
  for (const name of names) world.edit(name, documentOf(random, scene.pods, true));
  if (scene.pods) settleCluster(scene);
  const noticed = (): boolean => names.every((name) => isNoticed(world, name));
  if (!(await watchUntil(world, referee, noticed, 30_000))) foul('An edit was not noticed');
  // What chaos did last is known by then: a request that comes before may meet a server that has just died.
  await watch(world, referee, clock.now() + 16_000);
  const gates = scene.pods ? world.lives() : [world.life()];
  const requests = names.flatMap((name) => gates.map(({ traffic }) => traffic.ask(slotName(name), 200)));
  const done = (): boolean => requests.every(({ answers }) => answers.length > 0) && names.every((name) => fulfilled(scene, name));
  if (!(await watchUntil(world, referee, done, CALM_MS))) foul(`What is wanted and possible did not come true:\n${describe(world, names)}`);
  for (const request of requests) {
    const slot = world.desired.get(request.slot);
    const full = names.length * 2000 > scene.budget;
    if (slot?.spec.enabled === true && !full && request.answers[0] !== 'served')
      foul(`A request to "${request.slot}" was ${request.answers[0]}`);
  }
  await watch(world, referee, clock.now() + 30_000);
  referee.takeChanges();
  for (const { loop } of world.lives()) loop.wake();
  await watch(world, referee, clock.now() + 12_000);
  if (scene.pods) await changeHands(scene);
  const [change] = referee.takeChanges();
  if (change !== undefined) foul(`There was more to do after everything was done: ${change}`);
  referee.close();
}

/** Somebody leads, and there is room for all that is wanted; for no more than that, unless a slot insists on being swapped beside its old workload. */
function settleCluster({ world, random, weather, names }: Scene): void {
  if (world.leader() === undefined) world.lead(random.int(0, world.lives().length - 1));
  const specs = names.flatMap((name) => world.desired.get(slotName(name))?.spec ?? []);
  const wanted = specs.reduce((sum, { cluster }) => sum + cluster.replicas, 0);
  const insists = specs.some(({ lifecycle }) => lifecycle.swap === 'blue-green');
  weather.room = insists || random.chance(0.5) ? 50 : wanted;
  world.cluster?.place();
}

/** Another one leads: it has nothing to do. */
async function changeHands({ world, random, referee }: Scene): Promise<void> {
  world.lead(random.int(0, world.lives().length - 1));
  await watch(world, referee, world.clock.now() + 5000);
}

/** What is desired of a slot is true, as far as it can be. */
function fulfilled(scene: Scene, name: string): boolean {
  const { world, budget } = scene;
  const slot = world.desired.get(slotName(name));
  const seen = world.life().board.current().slots.get(slotName(name));
  const workloads = world.runtime.list().filter((workload) => workload.slot === name);
  if (slot === undefined || seen === undefined || !isNoticed(world, name)) return false;
  if (!slot.spec.enabled) return workloads.length === 0;
  if (workloads.length === 1 && seen.admission.kind === 'open') {
    return seen.status.model === slot.spec.model.default && (!scene.pods || isServedByAll(scene, name));
  }
  // It may be unloaded as it is idle, or out as others hold the memory.
  const full = workloads.length === 0 && heldBytes(world) + (seen.status.memoryBytes ?? 1000) > budget;
  const resting = slot.spec.lifecycle.idleTimeoutMs < Number.POSITIVE_INFINITY && seen.state === 'offline' && workloads.length === 0;
  return full || (resting && seen.admission.kind === 'park');
}

/** Each gateway sends requests to each of its pods. */
function isServedByAll({ world }: Scene, name: string): boolean {
  const replicas = world.desired.get(slotName(name))?.spec.cluster.replicas;
  return world.lives().every(({ board }) => board.current().slots.get(slotName(name))?.targets.length === replicas);
}

/** By value: a slot that was removed and made anew begins with the same generation. */
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
