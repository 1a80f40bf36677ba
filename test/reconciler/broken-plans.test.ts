import { describe, expect, test } from '@jest/globals';
import type { Provider } from '../../src/providers/provider.ts';
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { plan, PLAN_STEPS } from '../../src/reconciler/decide/plan.ts';
import type { Plan } from '../../src/reconciler/decide/facts/facts.ts';
import { createWorld, FAKE_PROVIDER, slotName, type World, type WorldOptions } from '../support/simulation/world.ts';

const MINUTE_MS = 60_000;

/** "primary" has model "bad.gguf" and "embed" has "a.gguf". */
function twoSlots(options: WorldOptions, before = 'bad.gguf'): World {
  const world = createWorld(options);
  for (const model of ['a.gguf', 'b.gguf', 'bad.gguf']) world.setModel(model, 'present');
  world.edit('primary', { model: { default: before } });
  world.edit('embed', { model: { default: 'a.gguf' } });
  return world;
}

const condition = (world: World, name: string, type: string) => world.slot(name).status.conditions.find((each) => each.type === type);

function explode(): never {
  throw new TypeError('It exploded');
}

/** Providers that break on one model only. */
const BROKEN: Readonly<Record<string, Partial<Provider>>> = {
  'throws in buildEnv': { buildEnv: (slot) => (slot.model.id === 'bad.gguf' ? explode() : FAKE_PROVIDER.buildEnv(slot)) },
  'throws in startCmd': { startCmd: (slot) => (slot.model.id === 'bad.gguf' ? explode() : FAKE_PROVIDER.startCmd(slot)) },
  'throws in startCmd when there is a port': {
    startCmd: (slot) => (slot.model.id === 'bad.gguf' && slot.listen.port !== 0 ? explode() : FAKE_PROVIDER.startCmd(slot)),
  },
  'throws in estimateMemory': {
    estimateMemory: (name, spec, model) => (model.id === 'bad.gguf' ? explode() : FAKE_PROVIDER.estimateMemory(name, spec, model)),
  },
  'estimates no number': {
    estimateMemory: (name, spec, model) => ({
      ...FAKE_PROVIDER.estimateMemory(name, spec, model),
      ...(model.id === 'bad.gguf' ? { deviceBytes: Number.NaN } : {}),
    }),
  },
  'throws in capabilities': {
    capabilities: (name, spec, model) => (model.id === 'bad.gguf' ? explode() : FAKE_PROVIDER.capabilities(name, spec, model)),
  },
};

describe('a provider', () => {
  test.each(Object.keys(BROKEN))('that %s holds up only its own slot, which says so', async (how) => {
    const world = twoSlots({ env: { SVC_MEMORY_BUDGET: '5000' }, provider: BROKEN[how] ?? {} });
    await world.reach('embed', 'ready', MINUTE_MS);
    await world.clock.advance(1000);
    expect(condition(world, 'primary', 'Stalled')).toMatchObject({ status: 'True', reason: 'InternalError' });
    expect(world.slot('primary').admission).toMatchObject({ kind: 'refuse', code: 'slot.stalled' });
    world.edit('primary', { model: { default: 'b.gguf' } });
    await world.reach('primary', 'ready', MINUTE_MS);
    expect(condition(world, 'primary', 'Stalled')).toMatchObject({ status: 'False' });
  });

  test.each(Object.keys(BROKEN))('that %s leaves what runs as it is, and requests still go there', async (how) => {
    const world = twoSlots({ provider: BROKEN[how] ?? {} }, 'b.gguf');
    await world.reach('primary', 'ready', MINUTE_MS);
    world.edit('primary', { model: { default: 'bad.gguf' } });
    await world.clock.advance(30_000);
    expect(condition(world, 'primary', 'Stalled')).toMatchObject({ status: 'True', reason: 'InternalError' });
    const request = world.life().traffic.ask(slotName('primary'), 100);
    await world.clock.advance(1000);
    expect(request.answers).toEqual(['served']);
    expect(world.life().errors).toEqual([]);
  });

  test('whose health() never ends has failing probes, too, where asking whether the server responds throws', async () => {
    let broken = false;
    const health: Provider['health'] = (endpoint, io, slot, signal) =>
      broken ? new Promise(() => undefined) : FAKE_PROVIDER.health(endpoint, io, slot, signal);
    const world = twoSlots(
      { provider: { health }, disturb: (port) => (broken && port === 'probe' ? { kind: 'throw', message: 'It exploded' } : undefined) },
      'b.gguf',
    );
    await world.reach('primary', 'ready', MINUTE_MS);
    const [before] = world.runtime.list().filter(({ slot }) => slot === 'primary');
    broken = true;
    const isGone = (): boolean => world.runtime.list().every(({ id }) => id !== before?.id);
    expect(await world.clock.until(isGone, 10 * MINUTE_MS)).toBe(true);
    broken = false;
    await world.reach('primary', 'ready', 10 * MINUTE_MS);
  });

  test.each(['throws', 'rejects', 'never ends'])('whose health() %s has failing probes, and does not occupy the loop', async (how) => {
    let broken = false;
    const health: Provider['health'] = (endpoint, io, slot, signal) => {
      if (!broken || slot.name !== 'primary') return FAKE_PROVIDER.health(endpoint, io, slot, signal);
      if (how === 'throws') return explode();
      return how === 'rejects' ? Promise.reject(new Error('It exploded')) : new Promise(() => undefined);
    };
    const world = twoSlots({ provider: { health } }, 'b.gguf');
    await world.reach('primary', 'ready', MINUTE_MS);
    await world.reach('embed', 'ready', MINUTE_MS);
    const [before] = world.runtime.list().filter(({ slot }) => slot === 'primary');
    const version = world.life().board.current().version;
    broken = true;
    const isGone = (): boolean => world.runtime.list().every(({ id }) => id !== before?.id);
    expect(await world.clock.until(isGone, 10 * MINUTE_MS)).toBe(true);
    expect(world.life().board.current().version - version).toBeLessThan(300);
    expect(world.slot('embed').status.state).toBe('ready');
    broken = false;
    await world.reach('primary', 'ready', 10 * MINUTE_MS);
  });
});

/** A planner with a fault in the plan of one slot. */
function faulty(name: string, change: (made: Plan) => Plan): WorldOptions {
  const isPlanned = (made: Plan): boolean => made.actions.some(({ slot }) => slot === name);
  return {
    decide: {
      plan(desired, observed, now, steps) {
        const made = plan(desired, observed, now, steps);
        return isPlanned(made) ? change(made) : made;
      },
      inspect,
    },
  };
}

describe('a plan that fails its inspection', () => {
  test('holds up only the slot that it is wrong for, which says so', async () => {
    const world = twoSlots(
      faulty('primary', (made) => ({ ...made, actions: [...made.actions, ...made.actions.filter(({ slot }) => slot === 'primary')] })),
    );
    await world.reach('embed', 'ready', MINUTE_MS);
    await world.clock.advance(60_000);
    expect(condition(world, 'primary', 'Stalled')).toMatchObject({ status: 'True', reason: 'InternalError' });
    expect(condition(world, 'primary', 'Stalled')?.message).toContain('twice');
    expect(world.runtime.list().map(({ slot }) => slot)).toEqual(['embed']);
    // Logged once, and not in each pass.
    expect(world.life().errors).toHaveLength(1);
  });

  test('holds up only one slot when its plan cannot be made', async () => {
    const world = twoSlots({
      decide: {
        plan: (desired, observed, now, steps) =>
          plan(desired, observed, now, {
            ...(steps ?? PLAN_STEPS),
            planSlot(candidate, verdict, allocation) {
              if (candidate.view.slot.name === 'primary') explode();
              return (steps ?? PLAN_STEPS).planSlot(candidate, verdict, allocation);
            },
          }),
        inspect,
      },
    });
    await world.reach('embed', 'ready', MINUTE_MS);
    expect(condition(world, 'primary', 'Stalled')).toMatchObject({ status: 'True', reason: 'InternalError' });
    expect(condition(world, 'primary', 'Stalled')?.message).toContain('It exploded');
  });
});
