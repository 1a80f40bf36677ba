/** Runs one seeded world: first with faults, then without, when everything that is desired and possible must come true. */
import { inspect } from '../../../src/reconciler/decide/inspect.ts';
import { keyOfAction } from '../../../src/reconciler/decide/facts/actions.ts';
import type { Desired, Observed, Plan } from '../../../src/reconciler/decide/facts/facts.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { templatingOf } from '../../../src/reconciler/remember/desire.ts';
import type { LoopDeps } from '../../../src/reconciler/loop.ts';
import type { WorkloadId } from '../../../src/schema/words/names.ts';
import { isSameValue } from '../../../src/schema/words/same-value.ts';
import { createDisturb } from './faults/disturbance.ts';
import { createRandom, type Random } from './seeded-random.ts';
import { createSleepers } from './simulate-sleep.ts';
import { createAhead } from './simulate-ahead.ts';
import { calm } from './simulate-calm.ts';
import { chaos } from './simulate-chaos.ts';
import {
  BAD_MODEL,
  clusterOptions,
  createDocuments,
  DRAIN_MS,
  machineOptions,
  MODELS,
  singleOptions,
  SLOTS,
  type Faults,
  type Scene,
} from './simulate-scene.ts';
import { WORLD_BEGIN } from './world-clock.ts';
import { createCrashJudge } from './world-crashes.ts';
import { judgeFollowers } from './rules/leaders.ts';
import { RULES } from './rules/rules.ts';
import { createReferee, violation, type Referee } from './world-referee.ts';
import { stepWallClock } from './simulate-clock-steps.ts';
import { createWorld, type World, type WorldOptions } from './world.ts';

type Decide = NonNullable<LoopDeps['decide']>;

interface More {
  readonly trace?: (line: string) => void;
  /** Another clock for the controllers. */
  readonly clockOf?: WorldOptions['clockOf'];
  /** Passes pause between their parts. Then only requests, workloads, boards and who acts are judged: the rules for plans are those of one moment. Default: they do not. */
  readonly pauses?: boolean;
}

/** Every fifth world is a cluster. */
const isCluster = (seed: number): boolean => seed % 5 === 0;

/** Every 25th world is a host with the real adapters. */
const isHost = (seed: number): boolean => seed % 25 === 1;

/** Resolves when the world kept all rules; rejects with the first violation. */
export async function simulate(seed: number, decide: Decide = { plan, inspect }, more: More = {}): Promise<void> {
  const { trace } = more;
  const random = createRandom(seed);
  const faults: Faults = { chaos: true, down: undefined, failingEndpoints: false, room: Number.POSITIVE_INFINITY };
  const referees: Referee[] = [];
  const crashes = createCrashJudge(() => world.clock.wallNow() - world.clock.now());
  const pods = isCluster(seed);
  const budget = !pods && random.chance(0.4) ? String(random.int(2, 5) * 1000) : undefined;
  const ahead = createAhead(seed, SLOTS);
  const onKilled = (id: WorkloadId): void => referees.forEach((referee) => referee.killed(id));
  const sleepers = createSleepers(seed, { world: () => world, isChaos: () => faults.chaos });
  const base = pods
    ? { ...clusterOptions(random, faults, onKilled), replicas: random.int(1, 3) }
    : singleOptions(seed, random, faults, onKilled);
  const world: World = createWorld({
    ...base,
    ...(sleepers.provider === undefined ? {} : { provider: { ...base.provider, ...sleepers.provider } }),
    isAsleep: sleepers.isAsleep,
    ...(isHost(seed) ? machineOptions(seed, faults, onKilled) : {}),
    // Too little for anything, which must not matter to pods.
    ...(pods ? { host: { memoryTotalBytes: 800, memoryAvailableBytes: 500 } } : {}),
    disturb: createDisturb(seed, () => faults.chaos),
    ...(more.pauses === true
      ? { pauseMs: somePauses(seed, (random) => pods && faults.chaos && world.lead(random.int(0, world.lives().length - 1))) }
      : {}),
    ...ahead.options,
    env: { ...ahead.options.env, ...(budget === undefined ? {} : { SVC_MEMORY_BUDGET: budget }), SVC_PORT_RANGE: '18080-18099' },
    ...(more.clockOf === undefined ? {} : { clockOf: more.clockOf }),
    decide: {
      plan(desired, observed, now, steps) {
        const made = decide.plan(desired, observed, now, steps);
        if (seed % 20 === 3 || seed % 40 === 0) compareWithFresh(decide, { desired, observed, now, made });
        const wrong = crashes.judge(made, observed);
        if (wrong !== undefined) violation(wrong);
        if (observed.leads) for (const referee of referees) referee.planned(made);
        if (trace !== undefined) tracePlan(trace, observed, made, now);
        return made;
      },
      inspect: decide.inspect,
    },
  });
  stepWallClock(world.clock, seed);
  const referee = createReferee(world, DRAIN_MS, more.pauses === true ? [judgeFollowers] : RULES);
  referees.push(referee);
  for (const life of world.lives()) referee.follow(life);
  const documentOf = createDocuments(random, pods, ahead);
  const names = addSlots(world, random, { pods, documentOf });
  const scene: Scene = {
    world,
    random,
    faults,
    referee,
    names,
    pods,
    budget: budget === undefined ? Number.POSITIVE_INFINITY : Number(budget),
    documentOf,
    areFalling: sleepers.areFalling,
  };
  await chaos(scene);
  world.host?.machine.setFaults('none');
  faults.chaos = false;
  faults.down = undefined;
  faults.failingEndpoints = false;
  await calm(scene);
}

/** Passes then pause between half of their parts, as those over thousands of slots do. In some pauses, another controller is elected. */
function somePauses(seed: number, elect: (random: Random) => void): () => number {
  const random = createRandom(seed);
  return () => {
    if (random.chance(0.05)) elect(random);
    return random.chance(0.5) ? random.int(1, 30) : 0;
  };
}

function addSlots(
  world: ReturnType<typeof createWorld>,
  random: Random,
  { pods, documentOf }: Pick<Scene, 'pods' | 'documentOf'>,
): readonly string[] {
  // In a cluster, the pods fetch their models themselves.
  for (const model of MODELS) world.setModel(model, pods || random.chance(0.7) ? 'present' : 'pullable', random.int(1, 2) * 1000);
  world.setModel(BAD_MODEL, 'present');
  const names = SLOTS.slice(0, random.int(1, 3));
  for (const name of names) world.edit(name, documentOf());
  return names;
}

/** What the memos of a loop remember must not change what is decided. */
function compareWithFresh(
  decide: Decide,
  { desired, observed, now, made }: { readonly desired: Desired; readonly observed: Observed; readonly now: number; readonly made: Plan },
): void {
  const { traits } = observed;
  const templating = templatingOf({ providers: desired.providers, runtime: { traits }, models: { root: desired.modelsRoot } });
  const fresh = decide.plan({ ...desired, ...templating }, observed, now);
  const parts = (each: Plan): unknown => [each.actions, [...each.decisions], [...each.orphans], each.wakeAt];
  if (!isSameValue(parts(fresh), parts(made)))
    violation(`A remembered plan is not the one that would be made: ${JSON.stringify([parts(fresh), parts(made)])}`);
}

/** Prints what happened, one line for each plan, when a seed is replayed. */
function tracePlan(trace: (line: string) => void, observed: Observed, made: Plan, now: number): void {
  const at = ((now - WORLD_BEGIN) / 1000).toFixed(3);
  const workloads =
    observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads.map(({ id, phase }) => `${id}:${phase}`) : ['?'];
  const states = [...made.decisions.values()].map(
    ({ name, state, admission, findings }) => `${name}=${state}/${admission.kind}/${findings.map(({ reason }) => reason).join('+')}`,
  );
  const who = observed.leads ? '' : ' (follows)';
  trace(`${at}${who} ${states.join(' ')} | ${workloads.join(' ')} | ${made.actions.map((action) => keyOfAction(action)).join(' ')}`);
}
