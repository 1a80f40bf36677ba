import { describe, expect, test } from '@jest/globals';
import { inspect } from '../../../src/reconciler/decide/inspect.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import type { Plan } from '../../../src/reconciler/decide/facts/facts.ts';
import type { RuntimeTraits, WaitingReason } from '../../../src/reconciler/ports.ts';
import { WorkloadId } from '../../../src/schema/words/names.ts';
import { failed, NOW, planOf, PRIMARY, factsOf, type Scene } from './plan-fixture.ts';

/** Updates in place; the record says what is altered or outdated. */
const PODS: Partial<RuntimeTraits> = {
  kind: 'kube',
  network: 'pods',
  inPlace: {
    findAltered: (_wanted, { record }) => (record === 'altered' ? ['replicas 0 instead of 1'] : []),
    isOutdated: (_wanted, { record }) => record === 'outdated',
  },
};
const A = { host: '10.0.0.1', port: 8080 };
const B = { host: '10.0.0.2', port: 8080 };
const one = { id: 'w1', fact: { endpoints: [A] } } as const;
const old = { id: 'w0', revision: 'other', fact: { endpoints: [B] } } as const;
const altered = { id: 'w1', fact: { endpoints: [A], record: 'altered' } } as const;
const outdated = { id: 'w1', fact: { endpoints: [A], record: 'outdated' } } as const;
const unplaced: WaitingReason = { kind: 'placement', reason: 'Unschedulable', message: 'Add a node' };
const next = { id: 'w1', name: 'svc-slot-primary--x', phase: 'created', probe: 'none' } as const;
const onDemand = { load: 'on-demand', lifecycle: { idleTimeout: '10s' } } as const;

const exit = { code: 139, outOfMemory: false, at: 5 };
const waits = { id: 'w1', phase: 'created', probe: 'none', fact: { endpoints: [], exit } } as const;
const backUp = { ...one, fact: { ...one.fact, exit } };
const crashedInPlace = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    ...failed((count - index) * 60_000, 'crash'),
    workload: WorkloadId.parse('w1'),
    restartedInPlace: true as const,
  }));
const justNow = crashedInPlace(1).map((attempt) => ({ ...attempt, at: NOW - 10 }));

/** The facts, and the actions, the state and the admission that follow from them. */
const CASES: Readonly<Record<string, readonly [Scene, readonly string[], string, string]>> = {
  'needs no host port': [{ takenPorts: [18_080, 18_081, 18_082] }, ['apply:primary'], 'starting', 'park'],
  'does not start what is scaled to nothing': [{ slot: { replicas: 0 } }, [], 'offline', 'slot.disabled'],
  'stops what is scaled to nothing': [{ slot: { replicas: 0 }, workloads: [one] }, ['stop:w1'], 'unloading', 'slot.disabled'],
  'repairs an altered workload that serves in place': [{ workloads: [altered] }, ['apply:primary'], 'ready', 'open'],
  'repairs an altered workload that warms up in place': [
    { workloads: [{ ...altered, probe: 'none' }] },
    ['apply:primary', 'probe:w1'],
    'warming',
    'park',
  ],
  'repairs again after the back-off': [{ workloads: [altered], repairs: { times: 4, last: 8000 } }, ['apply:primary'], 'ready', 'open'],
  'does not repair again before the back-off is over': [{ workloads: [altered], repairs: { times: 4, last: 7999 } }, [], 'ready', 'open'],
  'repairs without end, every five minutes': [
    { workloads: [altered], repairs: { times: 1000, last: 300_000 } },
    ['apply:primary'],
    'ready',
    'open',
  ],
  'does not repair where it should only warn': [{ workloads: [altered], slot: { lifecycle: { drift: 'warn' } } }, [], 'ready', 'open'],
  'does not repair a draining workload': [
    { workloads: [{ ...altered, inFlight: 1 }], slot: { enabled: false } },
    [],
    'unloading',
    'slot.disabled',
  ],
  'does not repair while it backs off': [{ workloads: [altered], failures: [failed(100, 'apply', 'Forbidden')] }, [], 'ready', 'open'],
  'updates an outdated workload in place': [{ workloads: [outdated] }, ['apply:primary'], 'ready', 'open'],
  'is pulling while pods fetch': [{ workloads: [{ ...next, fact: { fetching: 'The model' } }] }, [], 'pulling', 'park'],
  'is starting while pods cannot be scheduled, however long': [
    { workloads: [{ ...next, seen: 1e9, fact: { waitingReason: unplaced } }] },
    [],
    'starting',
    'park',
  ],
  'drains the old one for a new one that cannot be scheduled': [
    { workloads: [old, { ...next, fact: { waitingReason: unplaced } }] },
    ['stop:w0'],
    'unloading',
    'park',
  ],
  'keeps the old one when the swap is blue-green': [
    { slot: { lifecycle: { swap: 'blue-green' } }, workloads: [old, { ...next, fact: { waitingReason: unplaced } }] },
    [],
    'ready',
    'open',
  ],
  'keeps the old one while the new one cannot fetch': [
    { workloads: [old, { ...next, fact: { waitingReason: { ...unplaced, kind: 'model' } } }] },
    [],
    'ready',
    'open',
  ],
  'keeps an old one that is not probed yet while the new one starts': [
    {
      workloads: [
        { ...old, probe: 'none' },
        { ...next, fact: { fetching: 'The model' } },
      ],
    },
    ['probe:w0'],
    'warming',
    'park',
  ],
  'parks while no pod is ready': [{ workloads: [{ ...one, fact: { endpoints: [] } }] }, [], 'warming', 'park'],
  'tolerates that no pod is ready, whatever the last probe returned': [
    { workloads: [{ ...one, probe: 'dead', fact: { endpoints: [] } }] },
    [],
    'warming',
    'park',
  ],
  'counts a crash and leaves the restart to the cluster': [{ workloads: [waits] }, ['noteCrash:w1'], 'starting', 'park'],
  'counts a crash once': [{ workloads: [{ ...waits, notedExit: '5' }], failures: justNow }, [], 'starting', 'park'],
  'counts the next crash of the same workload': [
    { workloads: [{ ...waits, notedExit: '4' }], failures: crashedInPlace(1) },
    ['noteCrash:w1'],
    'starting',
    'park',
  ],
  'counts a crash of a workload that answers again': [
    { workloads: [{ ...backUp, probe: 'none' }] },
    ['probe:w1', 'noteCrash:w1'],
    'warming',
    'park',
  ],
  'does not back off from a workload that runs again': [
    { workloads: [{ ...backUp, notedExit: '5' }], failures: justNow },
    [],
    'ready',
    'open',
  ],
  'repairs a workload in place that has just crashed': [
    { workloads: [{ ...backUp, notedExit: '5', fact: { ...backUp.fact, record: 'altered' } }], failures: justNow },
    ['apply:primary'],
    'ready',
    'open',
  ],
  'stops a workload that crashed in place five times': [
    { workloads: [{ ...waits, notedExit: '5' }], failures: crashedInPlace(5) },
    ['stop:w1'],
    'unloading',
    'slot.stalled',
  ],
  'keeps a workload that answers after five crashes': [
    { workloads: [{ ...backUp, notedExit: '5' }], failures: crashedInPlace(5) },
    [],
    'ready',
    'open',
  ],
  'leaves giving up on a crashing workload to the leader': [
    { leads: false, workloads: [{ ...waits, notedExit: '5' }], failures: crashedInPlace(5) },
    [],
    'starting',
    'park',
  ],
  'gives up on the new one that crashes, and keeps the old one': [
    { workloads: [old, { ...waits, name: 'svc-slot-primary--x', notedExit: '5' }], failures: crashedInPlace(5) },
    ['stop:w1'],
    'ready',
    'open',
  ],
  'keeps serving what the leader keeps running': [
    { leads: false, slot: onDemand, lastActive: 60_000, workloads: [one] },
    [],
    'ready',
    'open',
  ],
  'leaves giving up on a start to the leader': [
    { leads: false, workloads: [{ ...one, probe: 'loading', seen: 300_000 }] },
    [],
    'warming',
    'park',
  ],
  'as a follower probes what it takes to be faulty': [
    { leads: false, workloads: [{ ...one, probe: 'dead' }] },
    ['stop:w1'],
    'unloading',
    'park',
  ],
};

const inPods = (each: Scene): Scene => ({ ...each, traits: PODS });
const targetsOf = (made: Plan): readonly string[] => made.decisions.get(PRIMARY)?.targets.map(({ endpoint }) => endpoint.host) ?? [];

describe('plan() of pods', () => {
  for (const [sentence, [each, actions, state, admission]] of Object.entries(CASES)) {
    test(`${sentence}`, () => {
      const planned = planOf(inPods(each));
      expect([planned.actions, planned.state, planned.admission]).toEqual([actions, state, admission]);
    });
  }

  test('passes inspection in each of these cases', () => {
    for (const [sentence, [each]] of Object.entries(CASES)) {
      const { desired, observed } = factsOf(inPods(each));
      expect([sentence, inspect(plan(desired, observed, NOW), desired, observed, NOW)]).toEqual([sentence, []]);
    }
  });

  test('sends requests to all endpoints except failing ones, unless all fail', () => {
    const both = { endpoints: [A, B] };
    expect(targetsOf(planOf(inPods({ workloads: [{ id: 'w1', fact: both }] })).made)).toEqual([A.host, B.host]);
    expect(targetsOf(planOf(inPods({ workloads: [{ id: 'w1', fact: both, failingEndpoints: [A] }] })).made)).toEqual([B.host]);
    expect(targetsOf(planOf(inPods({ workloads: [{ id: 'w1', fact: both, failingEndpoints: [A, B] }] })).made)).toEqual([A.host, B.host]);
  });

  test('reports how many replicas answer, and why not all', () => {
    const fact = { replicas: { present: 3, ready: 2 } };
    const saidOf = (missing: object) => {
      const { made } = planOf(inPods({ slot: { replicas: 3 }, workloads: [{ ...one, fact: { ...fact, ...missing } }] }));
      return made.decisions.get(PRIMARY)?.conditions.filter(({ type }) => type === 'Ready' || type === 'Reconciling');
    };
    const both = (message: string) => [
      expect.objectContaining({ type: 'Ready', status: 'True', message }),
      expect.objectContaining({ type: 'Reconciling', status: 'True', reason: 'ReplicasNotReady', message }),
    ];
    expect(saidOf({})).toEqual(both('2 of 3 replicas answer'));
    expect(saidOf({ missing: unplaced })).toEqual(both('2 of 3 replicas answer: Add a node'));
  });

  test('repairs a workload in place under its own name, and reports what was altered', () => {
    const [action] = planOf(inPods({ workloads: [{ ...altered, name: 'svc-slot-primary--0123' }] })).made.actions;
    expect(action).toMatchObject({
      because: { reason: 'WorkloadAltered', message: 'The workload was altered from outside: replicas 0 instead of 1' },
      args: {
        updatesInPlace: { workload: 'w1', altered: true },
        workload: { name: 'svc-slot-primary--0123', port: { host: 8080, container: 8080 } },
      },
    });
  });

  test('counts crashes of the wanted workload only, and does not restart after the fifth', () => {
    const noted = (each: Scene) => planOf(inPods(each)).made.actions.find(({ name }) => name === 'noteCrash')?.args;
    const message = 'The process of the server ended unexpectedly (exit code 139)';
    const crash = { exitId: '5', failure: { reason: 'Crashed', message }, startsAgain: true };
    expect(noted({ workloads: [waits] })).toMatchObject(crash);
    expect(noted({ workloads: [waits], failures: crashedInPlace(3), repairs: { times: 9, last: 1 } })).toMatchObject(crash);
    expect(noted({ workloads: [waits], failures: crashedInPlace(4) })).toMatchObject({ ...crash, startsAgain: false });
    for (const each of [
      { slot: { enabled: false } },
      { workloads: [{ ...waits, revision: 'other' }] },
      { workloads: [{ ...waits, draining: 1 }] },
    ] as const)
      expect(noted({ workloads: [waits], ...each })).toMatchObject({ exitId: '5', failure: undefined });
  });

  test('stops a workload that crashed too often quickly, without another failure, once its last log lines are read', () => {
    const { desired, observed } = factsOf(inPods({ workloads: [{ ...waits, notedExit: '5' }], failures: crashedInPlace(5) }));
    const [stop] = plan(desired, observed, NOW).actions;
    expect(stop).toMatchObject({ name: 'stop', because: { reason: 'CrashLoop' }, args: { graceMs: 1000, failure: undefined } });
    const noting = planOf(inPods({ workloads: [waits], failures: crashedInPlace(4) })).made.actions[0];
    if (noting === undefined) throw new Error('Nothing is noted');
    const running = new Map([['noteCrash:w1', { action: noting, startedAt: NOW }]]);
    expect(plan(desired, { ...observed, running }, NOW).actions).toEqual([]);
  });

  test('counts another failure of a workload that crashed in place, but only once', () => {
    const late = { ...backUp, notedExit: '5', probe: 'loading', seen: 300_000 } as const;
    const stops = (failures: Scene['failures']) => planOf(inPods({ workloads: [late], failures: failures ?? [] })).made.actions[0]?.args;
    expect(stops(crashedInPlace(1))).toMatchObject({ failure: { kind: 'start-timeout' } });
    const counted = { ...failed(10, 'start-timeout'), workload: WorkloadId.parse('w1') };
    expect(stops([...crashedInPlace(1), counted])).toMatchObject({ failure: undefined });
  });

  test('updates again only after a delay', () => {
    const { desired, observed } = factsOf(inPods({ workloads: [outdated] }));
    const [[id, known] = []] = observed.histories;
    if (id === undefined || known === undefined) throw new Error('There is no history');
    const after = (updates: typeof known.updates): Plan =>
      plan(desired, { ...observed, histories: new Map([[id, { ...known, updates }]]) }, NOW);
    const last = { generation: 3, times: 2, lastAt: NOW - 500 };
    expect(after(last)).toMatchObject({ actions: [], wakeAt: NOW + 1500 });
    expect(after({ ...last, lastAt: NOW - 2000 }).actions).toHaveLength(1);
    expect(after({ ...last, generation: 2 }).actions).toHaveLength(1);
  });
});
