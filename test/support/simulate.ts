/** One seeded life of a world: chaos, then calm, in which everything that is wanted and possible must come true. */
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { keyOfAction } from '../../src/reconciler/decide/actions.ts';
import type { Observed, Plan } from '../../src/reconciler/decide/facts.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import type { LoopDeps } from '../../src/reconciler/loop.ts';
import type { Failure } from '../../src/spec/failure.ts';
import { isSameValue } from '../../src/spec/same-value.ts';
import type { SlotDocument } from '../../src/spec/slot-spec.ts';
import { createRandom, type Random } from './seeded-random.ts';
import { createReferee, foul, type Referee } from './world-referee.ts';
import { WORLD_BEGIN } from './world-clock.ts';
import { createWorld, IMAGE, slotName, type World } from './world.ts';

type Decide = NonNullable<LoopDeps['decide']>;

const SLOTS = ['primary', 'embed', 'mine'] as const;
const MODELS = ['a.gguf', 'b.gguf', 'c.gguf'] as const;
/** Its server ends shortly after its start. */
const BAD_MODEL = 'bad.gguf';
const DRAIN_MS = 3000;
const CHAOS_MS = 60_000;
/** Longer than the longest chain of resyncs, pulls and drains; far shorter than a slot that is stuck. */
const CALM_MS = 240_000;

interface Weather {
  chaos: boolean;
  down: string | undefined;
  deaf: boolean;
}

/** Resolves when all went well; rejects with what was foul. */
export async function simulate(seed: number, decide: Decide = { plan, inspect }, trace?: (line: string) => void): Promise<void> {
  const random = createRandom(seed);
  const weather: Weather = { chaos: true, down: undefined, deaf: false };
  const referees: Referee[] = [];
  const budget = random.chance(0.4) ? String(random.int(2, 5) * 1000) : undefined;
  const world = createWorld({
    ...weatherOf(random, weather),
    env: { ...(budget === undefined ? {} : { SVC_MEMORY_BUDGET: budget }), SVC_PORT_RANGE: '18080-18099' },
    decide: {
      plan(desired, observed, now) {
        const made = decide.plan(desired, observed, now);
        for (const referee of referees) referee.planned(made);
        if (trace !== undefined) tracePlan(trace, observed, made, now);
        return made;
      },
      inspect: decide.inspect,
    },
  });
  const referee = createReferee(world, DRAIN_MS);
  referees.push(referee);
  referee.follow(world.life());
  for (const model of MODELS) world.setModel(model, random.chance(0.7) ? 'present' : 'pullable', random.int(1, 2) * 1000);
  world.setModel(BAD_MODEL, 'present');
  const names = SLOTS.slice(0, random.int(1, 3));
  for (const name of names) world.edit(name, documentOf(random));
  await chaos(world, random, weather, referee, names);
  weather.chaos = false;
  weather.down = undefined;
  weather.deaf = false;
  await calm(world, random, referee, names, budget === undefined ? Number.POSITIVE_INFINITY : Number(budget));
}

/** What happened, line by line, for whoever replays a seed. */
function tracePlan(trace: (line: string) => void, observed: Observed, made: Plan, now: number): void {
  const at = ((now - WORLD_BEGIN) / 1000).toFixed(3);
  const workloads =
    observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads.map(({ id, phase }) => `${id}:${phase}`) : ['?'];
  const states = [...made.decisions.values()].map(
    ({ name, state, admission, findings }) => `${name}=${state}/${admission.kind}/${findings.map((finding) => finding.name).join('+')}`,
  );
  trace(`${at} ${states.join(' ')} | ${workloads.join(' ')} | ${made.actions.map((action) => keyOfAction(action)).join(' ')}`);
}

function weatherOf(random: Random, weather: Weather) {
  const failure = (reason: string): Failure => ({ kind: 'retry', reason, message: `It failed for the simulation: ${reason}` });
  const slow = (): number => (random.chance(0.2) ? random.int(100, 4000) : random.int(0, 30));
  return {
    losesWake: () => random.chance(weather.chaos ? 0.3 : 0.1),
    readyMs: (model: string) => (model.length % 7) * 20,
    answers: () => !weather.deaf,
    modelPullMs: () => random.int(0, 8000),
    modelPullFailure: () => (weather.chaos && random.chance(0.2) ? failure('PullFailed') : undefined),
    behaviour: {
      observeMs: () => (random.chance(0.2) ? random.int(1, 60) : 0),
      applyMs: () => [slow(), random.chance(0.3) ? random.int(1, 500) : 0] as const,
      stopMs: () => [slow(), random.chance(0.3) ? random.int(1, 500) : 0] as const,
      pullMs: () => random.int(0, 8000),
      unreachable: () => weather.down,
      applyFailure: () => (weather.chaos && random.chance(0.1) ? { ...failure('StartFailed'), late: random.chance(0.5) } : undefined),
      stopFailure: () => (weather.chaos && random.chance(0.1) ? failure('StopFailed') : undefined),
      pullFailure: () => (weather.chaos && random.chance(0.2) ? failure('PullFailed') : undefined),
    },
  };
}

function documentOf(random: Random, good = false): SlotDocument {
  return {
    provider: 'gguf',
    enabled: random.chance(0.85),
    priority: random.int(0, 1),
    load: random.chance(0.7) ? 'always' : 'on-demand',
    model: { default: good || random.chance(0.9) ? random.pick(MODELS) : BAD_MODEL },
    lifecycle: {
      idleTimeout: random.chance(0.7) ? 'never' : '8s',
      startTimeout: '10s',
      drainTimeout: `${DRAIN_MS}ms`,
      swap: random.pick(['auto', 'auto', 'drain', 'blue-green']),
      drift: random.pick(['repair', 'repair', 'warn']),
    },
  };
}

async function chaos(world: World, random: Random, weather: Weather, referee: Referee, names: readonly string[]): Promise<void> {
  const { clock } = world;
  const end = clock.now() + CHAOS_MS;
  for (let events = random.int(5, 14); events > 0; events -= 1) {
    await watch(world, referee, clock.now() + random.int(0, 2 * Math.floor(CHAOS_MS / 14)));
    await happen(world, random, weather, referee, random.pick([names[0] ?? 'primary', ...names]));
  }
  await watch(world, referee, Math.max(clock.now() + 1000, Math.min(end, clock.now() + 5000)));
}

async function happen(world: World, random: Random, weather: Weather, referee: Referee, name: string): Promise<void> {
  const workloads = world.runtime.list().filter(({ slot, phase }) => slot === name && phase === 'running');
  const victim = workloads[random.int(0, Math.max(0, workloads.length - 1))]?.id;
  const known = world.desired.has(slotName(name));
  switch (random.int(0, 13)) {
    case 0:
    case 1:
    case 2:
      return world.edit(name, documentOf(random));
    case 3:
      return known && random.chance(0.5) ? world.spoil(name, 'This is not TOML') : world.remove(name);
    case 4:
      if (victim === undefined) return;
      referee.killed(victim);
      return world.runtime.exit(victim, { code: 139 });
    case 5:
      if (victim === undefined) return;
      referee.killed(victim);
      return world.runtime.vanish(victim);
    case 6:
      return victim === undefined ? undefined : world.runtime.alter(victim, { argv: ['fake-server', '--altered'] });
    case 7:
      return world.setModel(random.pick(MODELS), random.pick(['present', 'pullable', 'missing']), random.int(1, 2) * 1000);
    case 8:
      return random.chance(0.5)
        ? world.runtime.removeImage(IMAGE.reference)
        : void world.runtime.foreignPorts.add(random.int(18_080, 18_084));
    case 9:
      weather.down = random.chance(0.5) ? 'Connection refused' : undefined;
      return;
    case 10:
      weather.deaf = random.chance(0.5);
      return;
    case 11:
      return referee.follow(await world.restart());
    default:
      for (let count = random.int(1, 5); count > 0; count -= 1) ask(world, random, name);
  }
}

function ask(world: World, random: Random, name: string): void {
  const patience = random.chance(0.2) ? random.int(10, 5000) : undefined;
  world.life().traffic.ask(slotName(name), random.chance(0.25) ? 8000 : random.int(1, 1500), patience);
}

async function calm(world: World, random: Random, referee: Referee, names: readonly string[], budget: number): Promise<void> {
  const { clock } = world;
  for (const model of MODELS) world.setModel(model, random.chance(0.8) ? 'present' : 'pullable', 1000);
  for (const name of names) world.edit(name, documentOf(random, true));
  const noticed = (): boolean => names.every((name) => isNoticed(world, name));
  if (!(await watchUntil(world, referee, noticed, 30_000))) foul('An edit was not noticed');
  // What chaos did last is known by then: a request that comes before may meet a server that has just died.
  await watch(world, referee, clock.now() + 16_000);
  const requests = names.map((name) => world.life().traffic.ask(slotName(name), 200));
  const done = (): boolean => requests.every(({ answers }) => answers.length > 0) && names.every((name) => fulfilled(world, name, budget));
  if (!(await watchUntil(world, referee, done, CALM_MS))) foul(`What is wanted and possible did not come true:\n${describe(world, names)}`);
  for (const request of requests) {
    const slot = world.desired.get(request.slot);
    const full = names.length * 2000 > budget;
    if (slot?.spec.enabled === true && !full && request.answers[0] !== 'served')
      foul(`A request to "${request.slot}" was ${request.answers[0]}`);
  }
  await watch(world, referee, clock.now() + 30_000);
  referee.takeChanges();
  world.life().loop.wake();
  await watch(world, referee, clock.now() + 12_000);
  const [change] = referee.takeChanges();
  if (change !== undefined) foul(`There was more to do after everything was done: ${change}`);
  referee.close();
}

/** What is desired of a slot is true, as far as it can be. */
function fulfilled(world: World, name: string, budget: number): boolean {
  const slot = world.desired.get(slotName(name));
  const seen = world.life().board.current().slots.get(slotName(name));
  const workloads = world.runtime.list().filter((workload) => workload.slot === name);
  if (slot === undefined || seen === undefined || !isNoticed(world, name)) return false;
  if (!slot.spec.enabled) return workloads.length === 0;
  if (workloads.length === 1 && seen.admission.kind === 'open') return seen.status.model === slot.spec.model.default;
  // It may be unloaded as it is idle, or out as others hold the memory.
  const full = workloads.length === 0 && heldBytes(world) + (seen.status.memoryBytes ?? 1000) > budget;
  const resting = slot.spec.lifecycle.idleTimeoutMs < Number.POSITIVE_INFINITY && seen.state === 'offline' && workloads.length === 0;
  return full || (resting && seen.admission.kind === 'park');
}

/** By value: a slot that was removed and made anew begins with the same generation. */
function isNoticed(world: World, name: string): boolean {
  return isSameValue(world.life().board.current().slots.get(slotName(name))?.spec, world.desired.get(slotName(name))?.spec);
}

function heldBytes(world: World): number {
  const up = new Set(world.runtime.list().map(({ slot }) => slot));
  return [...world.life().board.current().slots.values()].reduce(
    (sum, { name, status }) => sum + (up.has(name) ? (status.memoryBytes ?? 0) : 0),
    0,
  );
}

function describe(world: World, names: readonly string[]): string {
  const slots = world.life().board.current().slots;
  return names.map((name) => slots.get(slotName(name))?.explanation ?? `Slot "${name}" is not there`).join('\n');
}

async function watch(world: World, referee: Referee, until: number): Promise<void> {
  await watchUntil(world, referee, () => false, until - world.clock.now());
  await world.clock.advanceTo(until);
}

async function watchUntil(world: World, referee: Referee, condition: () => boolean, ms: number): Promise<boolean> {
  return await world.clock.until(() => {
    endBadServers(world, referee);
    referee.look();
    return condition();
  }, ms);
}

function endBadServers(world: World, referee: Referee): void {
  for (const { id, phase, container, startedAt } of world.runtime.list()) {
    if (phase !== 'running' || container.argv?.[2]?.endsWith(BAD_MODEL) !== true || world.clock.now() - (startedAt ?? 0) < 20) continue;
    referee.killed(id);
    world.runtime.exit(id, { code: 1 });
  }
}
