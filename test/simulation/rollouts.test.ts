/**
 * New models that are judged before they get requests, and watched afterwards, in random worlds of the real loop:
 * models that answer nonsense, that are slow to answer the cases, never start, crash after a while or fail requests;
 * edits, crashes of servers and controllers, and other cases at any moment. A model that fails never gets another
 * request, a slot that had a server gets one back, and nothing is judged twice.
 */
import { describe, expect, test } from '@jest/globals';
import type { Checks } from '../../src/evaluation/decide/rollout-state.ts';
import { pause } from '../../src/platform/clock.ts';
import type { Evaluation } from '../../src/reconciler/decide/facts/actions.ts';
import type { SlotDocument } from '../../src/schema/slot/slot-spec.ts';
import { createRandom, type Random } from '../support/simulation/seeded-random.ts';
import { createWorld, slotName, type World } from '../support/simulation/world.ts';

const SEEDS = Array.from({ length: 100 }, (_, index) => index + 1);
const PRIMARY = slotName('primary');
const GOOD = ['a.gguf', 'c.gguf'] as const;
const NONSENSE = ['b.gguf', 'd.gguf'] as const;
/** Its server never answers a probe. */
const DEAD = 'e.gguf';
/** It passes the cases, and its server crashes after a while. */
const SHAKY = 'f.gguf';
/** It passes the cases, and its server fails all other requests. */
const FAILING = 'g.gguf';
const MODELS = [...GOOD, ...NONSENSE, DEAD, SHAKY, FAILING] as const;
const isGood = (model: string): boolean => GOOD.some((good) => model.endsWith(good));
const passes = (model: string): boolean => isGood(model) || model.endsWith(SHAKY) || model.endsWith(FAILING);
const SHAKY_MS = 45_000;
const MINUTE_MS = 60_000;

interface Rollouts {
  digest: number;
  /** Each verdict, as generation, revision, outcome and cases. */
  readonly judged: string[];
  readonly violations: string[];
  kills: number;
}

function createRollouts(random: Random): { readonly state: Rollouts; readonly world: World } {
  const state: Rollouts = { digest: 1, judged: [], violations: [], kills: 0 };
  const checks = (): Checks => ({ digest: `cases-${state.digest}`, cases: [{ request: { messages: [] }, expect: { contains: 'a' } }] });
  const evaluation: Evaluation = async (server, cases, signal) => {
    await pause(world.clock, random.int(0, 20_000), signal);
    const model = server.spec.model.default;
    const passed = passes(model) ? 1 : 0;
    const miss = { case: 1, required: true, question: 'Who?', expectation: 'contains "a"', answer: model };
    return { cases: cases.length, passed, misses: passed === 1 ? [] : [miss], firstTokenP95: 1, tokensPerSecond: 1 };
  };
  const world: World = createWorld({
    rollouts: {
      checks,
      evaluation,
      fails(model) {
        if (!model.endsWith(FAILING)) return false;
        state.kills += 1;
        return true;
      },
      settled(settlement) {
        if (settlement.kind !== 'verdict') return;
        const { revision, outcome, checks: digest } = settlement.verdict;
        state.judged.push([settlement.generation, revision, outcome, digest].join(' '));
      },
    },
    readyMs: (model) => (model.includes(DEAD) ? Number.POSITIVE_INFINITY : 50),
    ...(random.chance(0.5) ? { env: { SVC_MEMORY_BUDGET: '1500' } } : {}),
  });
  for (const model of MODELS) world.setModel(model, 'present');
  return { state, world };
}

function documentOf(random: Random, model: string): SlotDocument {
  const compare = random.chance(0.3);
  const isWatched = random.chance(0.4) || model === SHAKY || model === FAILING;
  const judges = {
    check: 'checks/a.jsonl',
    onFailure: random.pick(['revert', 'hold'] as const),
    ...(compare ? { compare, tolerance: 0.1 } : {}),
  };
  const watch = isWatched ? { watch: '5m' } : {};
  return {
    model: { default: model },
    load: random.chance(0.3) ? 'on-demand' : 'always',
    lifecycle: { swap: random.pick(['auto', 'blue-green', 'drain']), startTimeout: '20s', drainTimeout: '10s' },
    rollout: passes(model) && isWatched && random.chance(0.3) ? watch : { ...judges, ...watch },
  };
}

/** Every request is answered by a model that has passed. */
function look(world: World, state: Rollouts): void {
  const models = new Map(world.runtime.list().map(({ id, container }) => [id, container.argv?.[2] ?? '']));
  for (const { id, hold } of world.life().traffic.requests) {
    const model = hold === undefined ? undefined : models.get(hold);
    if (model !== undefined && !passes(model)) state.violations.push(`Request ${id} goes to "${model}"`);
  }
  for (const { id, phase } of world.runtime.list()) {
    if (phase !== 'running' || models.get(id)?.endsWith(SHAKY) !== true || world.runtime.runningMs(id) < SHAKY_MS) continue;
    world.runtime.exit(id);
    state.kills += 1;
  }
}

async function spend(world: World, state: Rollouts, ms: number): Promise<void> {
  const end = world.clock.now() + ms;
  while (world.clock.now() < end) {
    await world.clock.advance(Math.min(250, end - world.clock.now()));
    look(world, state);
  }
}

async function happen(world: World, state: Rollouts, random: Random): Promise<string | undefined> {
  const running = world.runtime.list().filter(({ phase }) => phase === 'running');
  const victim = running[random.int(0, Math.max(0, running.length - 1))];
  switch (random.int(0, 6)) {
    case 0:
    case 1:
    case 2: {
      const model = random.pick(MODELS);
      world.edit('primary', documentOf(random, model));
      return model;
    }
    case 3:
      world.crash();
      return undefined;
    case 4:
      if (victim !== undefined) world.runtime.exit(victim.id);
      state.kills += 1;
      return undefined;
    case 5:
      await world.restart();
      return undefined;
    default:
      for (let count = random.int(1, 4); count > 0; count -= 1) world.life().traffic.ask(PRIMARY, random.int(10, 5000), 600_000);
      return undefined;
  }
}

async function live(seed: number): Promise<{ readonly world: World; readonly state: Rollouts; readonly last: string }> {
  const random = createRandom(seed);
  const { state, world } = createRollouts(random);
  let last: string = GOOD[0];
  world.edit('primary', { ...documentOf(random, last), load: 'always' });
  await world.reach('primary', 'ready');
  await spend(world, state, 1000);
  for (let events = random.int(3, 12); events > 0; events -= 1) {
    last = (await happen(world, state, random)) ?? last;
    await spend(world, state, random.int(0, 40_000));
  }
  world.life().traffic.ask(PRIMARY, 100, 1_800_000);
  await spend(world, state, 20 * MINUTE_MS);
  return { world, state, last };
}

describe('a new model that is judged', () => {
  test.each(SEEDS)('in world %i', async (seed) => {
    const { world, state, last } = await live(seed);
    const slot = world.desired.get(PRIMARY);
    const explained = world.slot('primary').explain(world.clock.now());
    expect([state.violations, world.life().errors]).toEqual([[], []]);
    expect(state.judged.filter((each, index) => state.judged.indexOf(each) !== index)).toEqual([]);
    // A request fails with the server that a fault ends, and with nothing else.
    const answers = world.life().traffic.requests.map((request) => request.answers.join());
    expect([answers.filter((answer) => answer !== 'served' && !(answer === 'failed' && state.kills > 0)), explained]).toEqual([
      [],
      explained,
    ]);
    // What loads on demand is judged with the next request.
    if (world.slot('primary').status.state === 'offline') return expect(slot?.spec.load).toBe('on-demand');
    const stalled = world.slot('primary').status.conditions.find(({ type }) => type === 'Stalled');
    if (last === FAILING && slot?.rollout?.rolledBack === undefined) return expect(slot?.spec.model.default).toBe(FAILING);
    if (slot?.rollout?.isOnTrial === false) expect(slot.rollout.watched).toBeUndefined();
    const { because } = slot?.rollout?.rolledBack?.verdict ?? {};
    if (passes(last) && because !== undefined)
      expect([because, state.kills > 0]).toEqual([expect.stringMatching(/^It was watched/u), true]);
    if (isGood(last) && because === undefined)
      expect([slot?.spec.model.default, slot?.rollout?.isOnTrial, stalled?.status, explained]).toEqual([last, false, 'False', explained]);
    else
      expect([stalled?.reason, explained]).toEqual([
        slot?.rollout?.rolledBack === undefined ? 'EvaluationFailed' : 'RolledBack',
        explained,
      ]);
  });
});
