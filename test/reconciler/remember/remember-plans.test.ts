import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { BoardView } from '../../../src/reconciler/board.ts';
import { namesOf } from '../../../src/reconciler/decide/outcome/board-slot.ts';
import { explainSlot } from '../../../src/reconciler/decide/outcome/explain.ts';
import type { Attempt, Desired, Observed, Plan, RunningAction } from '../../../src/reconciler/decide/facts/facts.ts';
import { plan, PLAN_STEPS } from '../../../src/reconciler/decide/plan.ts';
import { rememberTemplating } from '../../../src/reconciler/remember/desire.ts';
import { rememberSteps } from '../../../src/reconciler/remember/remember-plans.ts';
import type { Hardware } from '../../../src/schema/status/hardware.ts';
import type { DesiredSlot, ObservedWorkload } from '../../../src/reconciler/ports.ts';
import { WorkloadId } from '../../../src/schema/words/names.ts';
import { inOneGo } from '../../../src/platform/decide/parse-json.ts';
import { createReporter } from '../../../src/reconciler/report.ts';
import { slotName } from '../../support/simulation/world.ts';
import { isSameValue } from '../../../src/schema/words/same-value.ts';
import { factsOf, NOW, PRIMARY } from '../decide/plan-fixture.ts';

describe('a remembered plan', () => {
  const rest = factsOf({ workloads: [{ id: 'w1' }] });
  const { steps } = rememberSteps();
  const desired = { ...rest.desired, ...rememberTemplating(rest.desired) };
  const decide = (observed: Observed, now: number): Plan => plan(desired, observed, now, steps);
  const decision = decide(rest.observed, NOW).decisions.get(PRIMARY);
  if (decision === undefined) throw new Error('Nothing was decided');
  const published = new Map([[PRIMARY, { decision, since: NOW, conditions: [] }]]);
  const observed = { ...rest.observed, published };
  const remembered = decide(observed, NOW).decisions.get(PRIMARY);

  test('is the same object while nothing changes by value, until it is due', () => {
    expect(decide(copyOf(observed), NOW + 1).decisions.get(PRIMARY)).toBe(remembered);
    expect(decide(observed, NOW + 120_000).actions.map(({ name }) => name)).toEqual(['probe']);
  });

  test('is made again when anything changes', () => {
    decide(observed, NOW);
    const activity = new Map([...observed.activity].map(([id, each]) => [id, { ...each, inFlight: 1, lastUsedAt: NOW }]));
    expect(decide({ ...observed, activity }, NOW).decisions.get(PRIMARY)).toMatchObject({ state: 'serving' });
    expect(decide(observed, NOW).decisions.get(PRIMARY)).toEqual(decision);
  });
});

test('the remembered plan of a slot that waits for memory ends when nobody has asked for the slot for too long', () => {
  const { desired, observed } = factsOf({ workloads: [], budgetBytes: 1, slot: { lifecycle: { idleTimeout: '8s' } }, lastActive: 0 });
  const { steps } = rememberSteps();
  const stable = { ...desired, ...rememberTemplating(desired) };
  const reasonAt = (now: number) => plan(stable, observed, now, steps).decisions.get(PRIMARY)?.findings[0]?.reason;
  expect([NOW, NOW, NOW + 7999, NOW + 8000].map(reasonAt)).toEqual([
    ...Array.from({ length: 3 }, () => 'InsufficientMemory'),
    'IdleTimedOut',
  ]);
});

/** Slots at rest in a limited memory, each with a server, and everything that a pass computes for them counted. */
function manySlots(count: number) {
  const one = factsOf({ workloads: [{ id: 'w1' }], budgetBytes: 10_000_000, slot: { load: 'on-demand' }, lastActive: 1000 });
  const runtime = one.observed.runtime;
  if (runtime.kind === 'unreachable') throw new Error('The runtime is unreachable');
  const [workload] = runtime.facts.workloads;
  const history = one.observed.histories.values().next().value;
  if (workload === undefined || history === undefined) throw new Error('There is no workload');
  const nameOf = (index: number) => slotName(`slot-${index}`);
  const idOf = (index: number): WorkloadId => WorkloadId.parse(`w-${index}`);
  const indexes = Array.from({ length: count }, (_, index) => index);
  const slots = new Map<DesiredSlot['name'], DesiredSlot>(
    indexes.map((index) => [nameOf(index), { ...one.slot, name: nameOf(index) }] as const),
  );
  const workloads: readonly ObservedWorkload[] = indexes.map((index) => ({ ...workload, id: idOf(index), slot: nameOf(index) }));
  const compare = () => ({ drift: [], outdated: false, updatable: false });
  const desired: Desired = { ...one.desired, slots, compare, templateOf: () => one.template };
  const observed: Observed = {
    ...one.observed,
    runtime: { kind: 'reachable', facts: { ...runtime.facts, workloads } },
    histories: new Map(indexes.map((index) => [idOf(index), history])),
    activity: new Map(),
    lastActive: new Map(indexes.map((index) => [nameOf(index), NOW - 1000])),
  };
  const counts = { considered: 0, shared: 0, planned: 0 };
  const { steps } = rememberSteps({
    ...PLAN_STEPS,
    consider(...args) {
      counts.considered += 1;
      return PLAN_STEPS.consider(...args);
    },
    shareMemory(...args) {
      counts.shared += 1;
      return PLAN_STEPS.shareMemory(...args);
    },
    planSlot(...args) {
      counts.planned += 1;
      return PLAN_STEPS.planSlot(...args);
    },
  });
  const reporter = createReporter(0);
  const pass = (state: Desired, facts: Observed, now: number): Plan => {
    const seen = { ...facts, published: facts.published.size === 0 ? reporter.published : facts.published };
    const made = plan(state, seen, now, steps);
    if (count < 100 && !isSameValue(partsOf(plan(state, seen, now)), partsOf(made))) throw new Error('Another plan is made from nothing');
    checkBoard(reporter.publish(inOneGo(reporter.prepare(made, state, seen, now))), made, state);
    return made;
  };
  const countPass = (state: Desired, facts: Observed, now: number) => {
    Object.assign(counts, { considered: 0, shared: 0, planned: 0 });
    pass(state, facts, now);
    return { ...counts };
  };
  for (let times = 0; times < 3; times += 1) pass(desired, observed, NOW);
  return { desired, observed, nameOf, idOf, pass, countPass, published: () => reporter.published };
}

describe('a slot is considered again', () => {
  const few = manySlots(3);
  const name = few.nameOf(1);
  const id = few.idOf(1);
  const workload = few.observed.runtime.kind === 'reachable' ? few.observed.runtime.facts.workloads[1] : undefined;
  const history = few.observed.histories.get(id);
  const published = few.published().get(name);
  if (workload === undefined || history === undefined || published === undefined) throw new Error('There is no such slot');
  const because = { reason: 'IdleTimedOut', message: 'Nobody uses it' } as const;
  const stop: RunningAction = {
    action: { name: 'stop', slot: name, args: { slot: name, workload: id, graceMs: 0, abort: false, failure: undefined }, because },
    startedAt: NOW,
  };
  test.each<readonly [string, Partial<Observed>]>([
    ['requests wait for it', { demand: new Map([[name, { waiting: 1, lastAskedAt: NOW }]]) }],
    ['it was used', { lastActive: new Map([...few.observed.lastActive, [name, NOW]]) }],
    ['it was started', { attempts: new Map([[name, { generation: 1, failures: [], repairs: undefined, starts: 1 }]]) }],
    ['its servers were measured', { measured: new Map([[name, { revision: workload.revision, memory: { host: 7 } }]]) }],
    ['its server is being stopped', { running: new Map([[`stop:${id}`, stop]]) }],
    ['its server was probed', { histories: new Map([...few.observed.histories, [id, { ...history, seenAt: 1 }]]) }],
    ['its server has requests', { activity: new Map([[id, { inFlight: 1, lastUsedAt: NOW }]]) }],
    [
      'something else was published of it',
      { published: new Map([...few.published(), [name, { ...published, decision: { ...published.decision, state: 'warming' } }]]) },
    ],
  ])('where %s', (_what, change) => {
    expect(few.countPass(few.desired, few.observed, NOW)).toMatchObject({ considered: 0 });
    const changed = few.countPass(few.desired, { ...few.observed, ...change }, NOW);
    expect(changed.considered).toBeGreaterThan(0);
    for (let times = 0; times < 3; times += 1) few.countPass(few.desired, few.observed, NOW);
  });
});

describe('a pass over a thousand slots', () => {
  test('neither considers, orders nor plans a slot where nothing has changed, also if the source read everything again', () => {
    const { desired, observed, countPass } = manySlots(1000);
    expect(countPass(desired, observed, NOW + 1)).toEqual({ considered: 0, shared: 0, planned: 0 });
    const again = { ...desired, slots: new Map([...desired.slots].map(([name, slot]) => [name, { ...slot, spec: { ...slot.spec } }])) };
    expect(countPass(again, copyOf(observed), NOW + 2)).toEqual({ considered: 0, shared: 0, planned: 0 });
  });

  test('considers no slot where other programs use more or less of the memory', () => {
    const { desired, observed, countPass } = manySlots(1000);
    const withFree = (freeBytes: number): Desired => ({ ...desired, hardware: hardwareWith(freeBytes) });
    for (let times = 0; times < 3; times += 1) countPass(withFree(1e9), observed, NOW + 1);
    expect(countPass(withFree(1e9 - 1), observed, NOW + 2)).toEqual({ considered: 0, shared: 0, planned: 0 });
    expect(countPass(withFree(0), observed, NOW + 3)).toEqual({ considered: 0, shared: 1, planned: 0 });
  });

  test('considers and plans only the slot that was edited, also where its place in the order of the memory changes', () => {
    const { desired, observed, nameOf, countPass } = manySlots(1000);
    const slot = desired.slots.get(nameOf(500));
    if (slot === undefined) throw new Error('There is no such slot');
    const edited = { ...slot, generation: slot.generation + 1, spec: { ...slot.spec, priority: 7 } };
    const state = { ...desired, slots: new Map([...desired.slots, [slot.name, edited]]) };
    expect(countPass(state, observed, NOW + 1)).toEqual({ considered: 1, shared: 1, planned: 1 });
    expect(countPass(state, observed, NOW + 2)).toEqual({ considered: 0, shared: 0, planned: 0 });
  });

  test('does not share out memory again for an edit that changes nothing in what the slot claims', () => {
    const { desired, observed, nameOf, countPass } = manySlots(1000);
    const slot = desired.slots.get(nameOf(500));
    if (slot === undefined) throw new Error('There is no such slot');
    const lifecycle = { ...slot.spec.lifecycle, drainTimeoutMs: 7 };
    const edited = { ...slot, generation: slot.generation + 1, spec: { ...slot.spec, lifecycle } };
    const state = { ...desired, slots: new Map([...desired.slots, [slot.name, edited]]) };
    expect(countPass(state, observed, NOW + 1)).toEqual({ considered: 1, shared: 0, planned: 1 });
  });

  test('gives the plan that is made from nothing, whatever happens to its slots and their servers', () => {
    const { desired, observed, nameOf, idOf, pass } = manySlots(4);
    const event = fc.record({
      index: fc.nat({ max: 4 }),
      what: fc.constantFrom(...EVENTS),
      size: fc.nat({ max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), (events) => {
        let [state, facts, now] = [desired, observed, NOW];
        for (const { index, what, size } of events) {
          const name = nameOf(index);
          const slot = state.slots.get(name);
          if (what === 'edit' && slot !== undefined)
            state = {
              ...state,
              slots: new Map([
                ...state.slots,
                [name, { ...slot, generation: slot.generation + 1, spec: { ...slot.spec, priority: size } }],
              ]),
            };
          if (what === 'budget') state = { ...state, memoryBudgetBytes: (size + 1) * 4000 };
          if (what === 'remove') state = { ...state, slots: new Map([...state.slots].filter(([each]) => each !== name)) };
          if (what === 'declare')
            state = { ...state, slots: new Map([...state.slots, ...[...desired.slots].filter(([each]) => each === name)]) };
          if (what === 'fail') {
            const failure: Attempt = { at: now, kind: 'crash', failure: { kind: 'retry', reason: 'Crashed', message: 'It crashed' } };
            const failures = Array.from({ length: size }, () => failure);
            const attempts = { generation: slot?.generation ?? 1, failures, repairs: undefined, starts: size };
            facts = { ...facts, attempts: new Map([...facts.attempts, [name, attempts]]) };
          }
          if (what === 'idle') facts = { ...facts, lastActive: new Map([...facts.lastActive, [name, size === 0 ? now : now - 1e9]]) };
          if (what === 'model') facts = { ...facts, models: new Map(size === 0 ? [] : observed.models) };
          if (what === 'turn') state = { ...state, slots: new Map([...state.slots].toReversed()) };
          if (what === 'alias' && slot !== undefined) {
            const model = { ...slot.spec.model, aliases: [`alias-${size}`] };
            state = {
              ...state,
              slots: new Map([...state.slots, [name, { ...slot, generation: slot.generation + 1, spec: { ...slot.spec, model } }]]),
            };
          }
          if (what === 'others') state = { ...state, hardware: hardwareWith(size * 2e8) };
          if (what === 'time') now += size * 11_000;
          if (what === 'use' || what === 'leave') {
            const use = { inFlight: what === 'use' ? 1 + size : 0, lastUsedAt: now };
            facts = { ...facts, activity: new Map([...facts.activity, [idOf(index), use]]) };
          }
          if (what === 'demand') facts = { ...facts, demand: new Map([...facts.demand, [name, { waiting: size, lastAskedAt: now }]]) };
          if ((what === 'stop' || what === 'sleep') && facts.runtime.kind === 'reachable') {
            const workloads = facts.runtime.facts.workloads.filter(({ id }) => id !== idOf(index));
            facts = { ...facts, runtime: { kind: 'reachable', facts: { ...facts.runtime.facts, workloads } } };
          }
          // Compares the plan with one that relies on nothing remembered.
          pass(state, facts, now);
        }
      }),
      { numRuns: 200 },
    );
  });
});

const EVENTS = [
  ...(['edit', 'alias', 'remove', 'declare', 'turn', 'use', 'leave', 'demand', 'idle', 'sleep'] as const),
  ...(['fail', 'stop', 'model', 'budget', 'others', 'time'] as const),
];

/** A machine with a GPU on which the slots of these tests may compute. */
const hardwareWith = (freeBytes: number): Hardware => ({
  source: { kind: 'machine' },
  cpu: { architecture: 'x64', threads: 2 },
  memory: { totalBytes: 100_000, availableBytes: freeBytes },
  devices: [{ id: 'gpu0', kind: 'gpu', vendor: 'nvidia', backends: ['vulkan'], unified: false, memory: { totalBytes: 1e9, freeBytes } }],
  programs: {},
});

/** The board shows every slot of the plan, whatever was taken over from the last board. */
function checkBoard(view: BoardView, { decisions, actions }: Plan, { slots }: Desired): void {
  expect([...view.slots.keys()]).toEqual([...decisions.keys()]);
  expect([...view.names]).toEqual([...namesOf(view.slots)]);
  for (const [name, decision] of decisions) {
    const board = view.slots.get(name);
    const spec = slots.get(name)?.spec;
    const own = actions.filter(({ slot }) => slot === name);
    const shown = [
      board?.spec,
      board?.generation,
      board?.admission,
      board?.targets,
      board?.status.state,
      board?.memory,
      board?.explain(NOW),
    ];
    const { generation, admission, targets, state, memory } = decision;
    const wanted = [spec, generation, admission, targets, state, memory, explainSlot(decision, own, NOW)];
    if (!isSameValue(shown, wanted)) throw new Error(`The board shows another slot "${name}" than the plan`);
  }
}

function partsOf({ actions, decisions, orphans, wakeAt }: Plan): unknown {
  return [actions, [...decisions], [...orphans], wakeAt];
}

/** The same facts in other objects, as adapters return them. */
function copyOf(observed: Observed): Observed {
  if (observed.runtime.kind === 'unreachable') return observed;
  const { facts } = observed.runtime;
  const models: Observed['models'] = new Map([...observed.models].map(([id, presence]) => [id, { ...presence }]));
  return {
    ...observed,
    models,
    runtime: { kind: 'reachable', facts: { ...facts, workloads: facts.workloads.map((each) => ({ ...each })) } },
  };
}
