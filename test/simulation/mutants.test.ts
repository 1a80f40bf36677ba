import { afterAll, describe, expect, test } from '@jest/globals';
import type { Action } from '../../src/reconciler/decide/facts/actions.ts';
import type { Plan } from '../../src/reconciler/decide/facts/facts.ts';
import type { Finding } from '../../src/schema/words/failure.ts';
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import { templatingOf } from '../../src/reconciler/remember/desire.ts';
import { readNoticingSeeds, recordNoticingSeeds } from '../support/mutants/noticing-seeds.ts';
import { simulate } from '../support/simulation/simulate.ts';
import { FAKE_PROVIDER } from '../support/simulation/world.ts';

type Planner = typeof plan;

const changeActions =
  (change: (action: Action, now: number) => readonly Action[]): Planner =>
  (desired, observed, now) => {
    const made = plan(desired, observed, now);
    return { ...made, actions: made.actions.flatMap((action) => change(action, now)) };
  };

const changeDecisions =
  (
    change: (decision: Plan['decisions'] extends ReadonlyMap<infer _Name, infer Decision> ? Decision : never) => Partial<typeof decision>,
  ): Planner =>
  (desired, observed, now) => {
    const made = plan(desired, observed, now);
    return { ...made, decisions: new Map([...made.decisions].map(([name, decision]) => [name, { ...decision, ...change(decision) }])) };
  };

const MUTANT: Finding = { reason: 'Unknown', message: 'Why not' };

/** Planners with one fault each, as somebody might write them. */
const MUTANTS: Readonly<Record<string, Planner>> = {
  'never starts anything after a failure': changeActions((action) =>
    action.name === 'apply' && action.args.workload.port.host > 18_080 ? [] : [action],
  ),
  'never stops what is not wanted': changeActions((action) =>
    action.name === 'stop' && action.because.reason === 'Disabled' ? [] : [action],
  ),
  'never removes exited workloads': changeActions((action) =>
    action.name === 'stop' && action.args.failure?.kind === 'crash' ? [] : [action],
  ),
  'stops without waiting for requests': (desired, observed, now) => {
    const idle = new Map([...observed.activity].map(([id, activity]) => [id, { ...activity, inFlight: 0 }]));
    return plan(desired, { ...observed, activity: idle }, now);
  },
  'ends requests without a drain time': (desired, observed, now) => {
    const since = new Map([...observed.histories].map(([id, known]) => [id, { ...known, drainingSince: 0 }]));
    return plan(desired, { ...observed, histories: since }, now);
  },
  'forgets to probe': changeActions((action, now) => (action.name === 'probe' && now % 2 === 0 ? [] : [action])),
  'starts a second workload beside the first': (desired, observed, now) => {
    const made = plan(desired, observed, now);
    const slot = [...desired.slots.values()][0];
    const known = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads[0] : undefined;
    const model = slot === undefined ? undefined : observed.models.get(slot.spec.model.default);
    const template =
      slot === undefined || model?.kind !== 'present' ? undefined : desired.templateOf(slot, model.facts, desired.images('gguf', 'cpu'));
    if (
      slot === undefined ||
      template === undefined ||
      model?.kind !== 'present' ||
      known?.slot !== slot.name ||
      known.revision !== template.revision
    )
      return made;
    const workload = {
      name: `${known.name}-again`,
      slot: slot.name,
      revision: template.revision,
      generation: slot.generation,
      image: template.image,
      argv: template.argv(18_099),
      env: template.env,
      mounts: template.mounts,
      devices: template.devices,
      port: { host: 18_099, container: 8080 },
      memoryLimitBytes: undefined,
    };
    const origin = { spec: slot.spec, model: model.facts, memory: { host: 0 } };
    const again: Action = { name: 'apply', slot: slot.name, because: MUTANT, args: { workload, origin } };
    return observed.running.has(`apply:${slot.name}`) ? made : { ...made, actions: [...made.actions, again] };
  },
  'takes a frozen server to be a busy one': (desired, observed, now) => {
    const busy = new Map(
      [...observed.histories].map(([id, { probe, ...known }]) => [
        id,
        { ...known, probe: probe && { ...probe, consecutiveSilences: 0, consecutiveFailures: 0 } },
      ]),
    );
    return plan(desired, { ...observed, histories: busy }, now);
  },
  'never admits requests': changeDecisions(() => ({ admission: { kind: 'park' } })),
  'skips the state warming': changeDecisions(({ state }) => (state === 'warming' ? { state: 'offline' } : {})),
  'never runs out of actions': (desired, observed, now) => {
    const made = plan(desired, observed, now);
    const workload = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads[0] : undefined;
    const slot = [...desired.slots.keys()][0];
    // In about half of its plans: an action in each of them makes a pass every 5 ms, which would take most of the time of this suite.
    if (workload !== undefined || slot === undefined || now % 2 === 0) return made;
    return { ...made, actions: [...made.actions, { name: 'cancelPull', slot, because: MUTANT, args: { key: `nothing ${now}` } }] };
  },
  'ignores that the runtime is unreachable': (desired, observed, now) =>
    plan(
      desired,
      observed.runtime.kind === 'reachable'
        ? observed
        : { ...observed, runtime: { kind: 'reachable', facts: { workloads: [], images: [] } } },
      now,
    ),
  'never acts on an edit': (desired, observed, now) => {
    if (observed.runtime.kind === 'unreachable') return plan(desired, observed, now);
    const workloads = observed.runtime.facts.workloads.map((workload) => {
      const slot = desired.slots.get(workload.slot);
      const model = slot === undefined ? undefined : observed.models.get(slot.spec.model.default);
      const template =
        slot !== undefined && model?.kind === 'present' ? desired.templateOf(slot, model.facts, desired.images('gguf', 'cpu')) : undefined;
      const { container } = workload;
      return template === undefined
        ? workload
        : { ...workload, revision: template.revision, container: { ...container, argv: template.argv(container.port?.host ?? 0) } };
    });
    return plan(desired, { ...observed, runtime: { kind: 'reachable', facts: { ...observed.runtime.facts, workloads } } }, now);
  },
};

/** Faults that only matter where workloads have pods. */
const POD_MUTANTS: Readonly<Record<string, Planner>> = {
  'never updates in place': changeActions((action) =>
    action.name === 'apply' && action.args.updatesInPlace !== undefined ? [] : [action],
  ),
  'updates in place what needs no update': (desired, observed, now) => {
    const { inPlace } = observed.traits;
    const made = plan(desired, observed, now);
    const asked = desired.slots.values().find(({ name }) => (made.decisions.get(name)?.targets.length ?? 0) > 0);
    if (inPlace === undefined || asked === undefined || now % 7 !== 0) return made;
    const traits = { ...observed.traits, inPlace: { ...inPlace, isOutdated: () => true } };
    const { compare } = templatingOf({ providers: { gguf: FAKE_PROVIDER }, runtime: { traits }, models: { root: '/store' } });
    return plan({ ...desired, compare }, { ...observed, traits }, now);
  },
  'stops a workload whose pods cannot be scheduled': (desired, observed, now) => {
    if (observed.runtime.kind === 'unreachable') return plan(desired, observed, now);
    const { workloads } = observed.runtime.facts;
    const lost = workloads.find(({ slot, waitingReason }) => waitingReason?.kind === 'placement' && desired.slots.has(slot));
    const made = plan(desired, observed, now);
    if (lost === undefined || observed.running.has(`stop:${lost.id}`) || made.actions.some(({ name }) => name === 'stop')) return made;
    const args = { slot: lost.slot, workload: lost.id, graceMs: 0, abort: true, failure: undefined };
    const again: Action = { name: 'stop', slot: lost.slot, because: MUTANT, args };
    return { ...made, actions: [...made.actions, again] };
  },
  'stops a workload that crashed in place': (desired, observed, now) => {
    const made = plan(desired, observed, now);
    const workloads = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
    const crashed = workloads.find(({ slot, phase, exit }) => phase === 'created' && exit !== undefined && desired.slots.has(slot));
    if (crashed === undefined || observed.running.has(`stop:${crashed.id}`) || made.actions.some(({ name }) => name === 'stop'))
      return made;
    const args = { slot: crashed.slot, workload: crashed.id, graceMs: 0, abort: true, failure: undefined };
    const stop: Action = { name: 'stop', slot: crashed.slot, because: MUTANT, args };
    return { ...made, actions: [...made.actions, stop] };
  },
  'never counts a crash in place': changeActions((action) => (action.name === 'noteCrash' ? [] : [action])),
  'counts a crash in place repeatedly': (desired, observed, now) => {
    const unnoted = new Map([...observed.histories].map(([id, known]) => [id, { ...known, notedExits: [] }]));
    return plan(desired, { ...observed, histories: unnoted }, now);
  },
};

const ENOUGH = 400;
const SEEDS = readNoticingSeeds();
const noticed = new Map<string, number>();

afterAll(() => recordNoticingSeeds(noticed));

describe('the simulation notices a planner that', () => {
  for (const [fault, mutant] of Object.entries(MUTANTS)) {
    test(`${fault}`, async () => {
      expect(await findViolation(fault, mutant, {})).toBeDefined();
    }, 300_000);
  }
});

describe('the simulation of clusters notices a planner that', () => {
  for (const [fault, mutant] of Object.entries(POD_MUTANTS)) {
    test(`${fault}`, async () => {
      expect(await findViolation(fault, mutant, { step: 5 })).toBeDefined();
    }, 120_000);
  }
});

describe('the violation', () => {
  const found = async (fault: string, look: typeof inspect = inspect): Promise<string | undefined> => {
    const mutant = MUTANTS[fault];
    if (mutant === undefined) throw new Error(`There is no mutant "${fault}"`);
    return await findViolation(fault, mutant, { look });
  };

  test('is of the rule that the planner breaks', async () => {
    expect(await found('stops without waiting for requests', () => [])).toMatch(/was lost|before its drain/);
    // Starting the same revision again without a pause is forbidden by itself, and may be noticed first.
    expect(await found('starts a second workload beside the first', () => [])).toMatch(/two workloads|3 workloads|before its back-off/);
    expect(await found('skips the state warming', () => [])).toMatch(/moved from/);
    expect(await found('never runs out of actions', () => [])).toMatch(/Changes were planned after everything was done/);
  }, 120_000);

  test('is prevented by the inspection of the plan', async () => {
    expect(await found('stops without waiting for requests')).toMatch(/requests in flight before its drain time is over/);
    expect(await found('starts a second workload beside the first')).toMatch(/beside one that does not answer|twice|taken/);
    expect(await found('never admits requests')).toMatch(/has a target and does not open it/);
  }, 120_000);
});

/** Without `look`, nothing inspects the plans. */
async function findViolation(
  fault: string,
  mutant: Planner,
  { look = () => [], step = 1 }: { readonly look?: typeof inspect; readonly step?: number },
): Promise<string | undefined> {
  const ordinary = Array.from({ length: ENOUGH }, (_, index) => step * (index + 1));
  for (const seed of [...(SEEDS[fault] === undefined ? [] : [SEEDS[fault]]), ...ordinary]) {
    try {
      await simulate(seed, { plan: mutant, inspect: look });
    } catch (error) {
      noticed.set(fault, noticed.get(fault) ?? seed);
      return String(error);
    }
  }
  return undefined;
}
