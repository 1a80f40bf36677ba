import { describe, expect, test } from '@jest/globals';
import { keyOfAction } from '../../../src/reconciler/decide/facts/actions.ts';
import { explain } from '../../../src/reconciler/decide/outcome/explain.ts';
import { inspect } from '../../../src/reconciler/decide/inspect.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { warmingPauseMs } from '../../../src/reconciler/decide/steps/plan-probes.ts';
import { IMAGE } from '../../support/simulation/world.ts';
import { failed, NOW, planOf, PRIMARY, factsOf, type Scene } from './plan-fixture.ts';

const one = { id: 'w1' } as const;
const old = { id: 'w0', revision: 'other', name: 'svc-slot-primary' } as const;
const next = { id: 'w1', name: 'svc-slot-primary--x', port: 18_081 } as const;
const NEVER = { lastActive: undefined };
const onDemand = { load: 'on-demand' } as const;
const drain = { lifecycle: { swap: 'drain' } } as const;
const crash = { phase: 'exited', exit: { code: 1, outOfMemory: false, at: NOW } } as const;
const idle = { lifecycle: { idleTimeout: '10s' } } as const;
const nonsense = (ago: number) => failed(ago, 'probe', 'ModelAnswersNonsense');
const crashes = [5, 4, 3, 2, 1].map((minutes) => failed(minutes * 60_000, 'crash'));

/** The facts, and the actions, the state and the admission that follow from them. */
const CASES: Readonly<Record<string, readonly [Scene, readonly string[], string, string]>> = {
  'starts a wanted slot without a workload': [{}, ['apply:primary'], 'starting', 'park'],
  'does nothing about a slot that needs nothing': [{ workloads: [one] }, [], 'ready', 'open'],
  'calls a slot with requests in flight serving': [{ workloads: [{ ...one, inFlight: 2 }] }, [], 'serving', 'open'],
  'calls a slot that had requests idle': [{ workloads: [{ ...one, used: true }] }, [], 'idle', 'open'],
  'pulls a missing image': [{ image: false }, [`pullImage:${IMAGE.reference}`], 'pulling', 'park'],
  'pulls a missing model': [{ model: 'pullable' }, ['pullModel:a.gguf'], 'pulling', 'park'],
  'pulls both at once': [{ model: 'pullable', image: false }, [`pullImage:${IMAGE.reference}`, 'pullModel:a.gguf'], 'pulling', 'park'],
  'stalls on a model that cannot be pulled': [{ model: 'missing' }, [], 'offline', 'slot.stalled'],
  'stalls on a model of another provider': [{ modelOf: 'tts' }, [], 'offline', 'slot.stalled'],
  'starts with a model of its own provider': [{ modelOf: 'gguf' }, ['apply:primary'], 'starting', 'park'],
  'stalls on a provider that is not installed': [{ without: 'provider' }, [], 'offline', 'slot.stalled'],
  'stalls on an image that the manifest does not name': [{ without: 'imageName' }, [], 'offline', 'slot.stalled'],
  'needs no image where the runtime has none': [{ image: false, traits: { images: false } }, ['apply:primary'], 'starting', 'park'],
  'leaves a disabled slot alone': [{ slot: { enabled: false } }, [], 'offline', 'slot.disabled'],
  'stops a disabled slot': [{ slot: { enabled: false }, workloads: [one] }, ['stop:w1'], 'unloading', 'slot.disabled'],
  'lets the requests of a disabled slot end first': [
    { slot: { enabled: false }, workloads: [{ ...one, probe: 'none', inFlight: 1 }] },
    [],
    'unloading',
    'slot.disabled',
  ],
  'stops a disabled slot when its drain time is over': [
    { slot: { enabled: false }, workloads: [{ ...one, inFlight: 1, draining: 30_000 }] },
    ['stop:w1'],
    'unloading',
    'slot.disabled',
  ],
  'asks one whose requests end before others get its memory whether it is alive': [
    { budgetBytes: 500, workloads: [{ ...one, probe: 'none', inFlight: 1 }] },
    ['probe:w1'],
    'unloading',
    'slot.insufficient_memory',
  ],
  'stops the workload of a removed slot': [{ without: 'slot', workloads: [one] }, ['stop:w1'], 'gone', 'gone'],
  'cleans up what is left of a removed slot': [{ without: 'slot', workloads: [{ ...one, ...crash }] }, ['stop:w1'], 'gone', 'gone'],
  'does not load on demand before the first request': [{ slot: onDemand, ...NEVER }, [], 'offline', 'park'],
  'loads on demand when a request waits': [{ slot: onDemand, waiting: 1, ...NEVER }, ['apply:primary'], 'starting', 'park'],
  'continues loading on demand when no request waits any more': [
    { slot: onDemand, waiting: 0, lastActive: 100 },
    ['apply:primary'],
    'starting',
    'park',
  ],
  'unloads a slot that has been idle for too long': [
    { slot: idle, lastActive: 10_000, workloads: [one] },
    ['stop:w1'],
    'unloading',
    'park',
  ],
  'does not unload a slot in use': [{ slot: idle, lastActive: 99_000, workloads: [{ ...one, inFlight: 1 }] }, [], 'serving', 'open'],
  'loads an unloaded slot again when a request waits': [
    { slot: idle, lastActive: 99_000, waiting: 1 },
    ['apply:primary'],
    'starting',
    'park',
  ],
  'probes what runs and was never probed': [{ workloads: [{ ...one, probe: 'none' }] }, ['probe:w1'], 'warming', 'park'],
  'waits a little between two probes': [{ workloads: [{ ...one, probe: 'loading', seen: 100 }] }, [], 'warming', 'park'],
  'gives up on a start that takes too long': [
    { workloads: [{ ...one, probe: 'loading', seen: 300_000 }] },
    ['stop:w1'],
    'unloading',
    'park',
  ],
  'stops a workload whose model answers nonsense': [{ workloads: [{ ...one, probe: 'nonsense' }] }, ['stop:w1'], 'unloading', 'park'],
  'keeps what served before while the new model answers nonsense': [
    { workloads: [old, { ...next, probe: 'nonsense' }] },
    ['stop:w1'],
    'ready',
    'open',
  ],
  'starts a model that answered nonsense once more': [{ failures: [nonsense(2000)] }, ['apply:primary'], 'starting', 'park'],
  'does not start a model a third time that answered nonsense twice': [
    { failures: [nonsense(60_000), nonsense(30_000)] },
    [],
    'offline',
    'slot.stalled',
  ],
  'replaces a workload that stopped answering': [{ workloads: [{ ...one, probe: 'dead' }] }, ['stop:w1'], 'unloading', 'park'],
  'tolerates failing probes while requests are in flight': [{ workloads: [{ ...one, probe: 'dead', inFlight: 1 }] }, [], 'serving', 'open'],
  'waits for a third probe of one that is silent': [{ workloads: [{ ...one, probe: 'doubtful' }] }, [], 'ready', 'open'],
  'replaces one that is silent': [{ workloads: [{ ...one, probe: 'silent' }] }, ['stop:w1'], 'unloading', 'park'],
  'keeps one whose probes are silent while its answers flow': [
    { workloads: [{ ...one, probe: 'silent', inFlight: 500, heard: 9999 }] },
    [],
    'serving',
    'open',
  ],
  'replaces one whose answers stopped flowing, too': [
    { workloads: [{ ...one, probe: 'silent', inFlight: 500, heard: 10_000 }] },
    ['stop:w1'],
    'unloading',
    'park',
  ],
  'replaces one that is silent though requests are in flight': [
    { workloads: [{ ...one, probe: 'silent', inFlight: 1 }] },
    ['stop:w1'],
    'unloading',
    'park',
  ],
  'removes a crashed workload before it starts again': [{ workloads: [{ ...one, ...crash }] }, ['stop:w1'], 'offline', 'park'],
  'backs off after a failure': [{ failures: [failed(500, 'crash')] }, [], 'offline', 'park'],
  'tries again after the back-off': [{ failures: [failed(1000, 'crash')] }, ['apply:primary'], 'starting', 'park'],
  'stalls after five crashes': [{ failures: crashes }, [], 'offline', 'slot.stalled'],
  'stalls when somebody must act': [{ failures: [failed(1e6, 'apply', 'DeviceMissing', 'stalled')] }, [], 'offline', 'slot.stalled'],
  'starts beside the old one': [{ workloads: [old] }, ['apply:primary'], 'ready', 'open'],
  'starts beside an altered one': [{ workloads: [{ ...one, altered: { argv: ['x'] } }] }, ['apply:primary'], 'ready', 'open'],
  'keeps an altered one when it should only warn': [
    { slot: { lifecycle: { drift: 'warn' } }, workloads: [{ ...one, altered: { argv: ['x'] } }] },
    [],
    'ready',
    'open',
  ],
  'treats an unwanted variable as an alteration': [
    { workloads: [{ ...one, altered: { env: { SLOT: 'primary', LANG: 'C' } } }] },
    ['apply:primary'],
    'ready',
    'open',
  ],
  'keeps the old one until the new one passes': [{ workloads: [old, { ...next, probe: 'loading', seen: 100 }] }, [], 'ready', 'open'],
  'stops the old one when the new one passes': [{ workloads: [old, next] }, ['stop:w0'], 'ready', 'open'],
  'drains the old one first when the swap is drain': [{ slot: drain, workloads: [old] }, ['stop:w0'], 'unloading', 'park'],
  'drains the old one first where both do not fit': [{ budgetBytes: 1500, workloads: [old] }, ['stop:w0'], 'unloading', 'park'],
  'keeps the old one while the new model is not there': [{ model: 'missing', workloads: [old] }, [], 'ready', 'open'],
  'keeps the old one while the new one is stalled': [{ failures: crashes, workloads: [old] }, [], 'ready', 'open'],
  'probes an old one that it found': [{ workloads: [{ ...old, probe: 'none' }] }, ['probe:w0'], 'warming', 'park'],
  'stops an old one that does not work': [{ workloads: [{ ...old, probe: 'loading' }] }, ['stop:w0'], 'unloading', 'park'],
  'refuses requests of a slot that nobody has asked for and that can never fit': [
    { slot: { load: 'on-demand' }, lastActive: undefined, budgetBytes: 500 },
    [],
    'offline',
    'slot.insufficient_memory',
  ],
  'lets a slot rest that nobody has asked for and that can fit': [
    { slot: { load: 'on-demand' }, lastActive: undefined, budgetBytes: 1500 },
    [],
    'offline',
    'park',
  ],
  'refuses requests of a slot that does not fit into memory': [{ budgetBytes: 500 }, [], 'offline', 'slot.insufficient_memory'],
  'stops a workload that no longer fits into memory': [
    { budgetBytes: 500, workloads: [one] },
    ['stop:w1'],
    'unloading',
    'slot.insufficient_memory',
  ],
  'does nothing while the runtime is unreachable': [{ unreachable: 'No socket' }, [], 'offline', 'park'],
  'waits for a port when all are taken': [{ takenPorts: [18_080, 18_081, 18_082] }, [], 'offline', 'park'],
};

describe('plan()', () => {
  for (const [sentence, [scene, actions, state, admission]] of Object.entries(CASES)) {
    test(`${sentence}`, () => {
      const planned = planOf(scene);
      expect([planned.actions, planned.state, planned.admission]).toEqual([actions, state, admission]);
    });
  }

  test('passes inspection and has an explanation in each of these cases', () => {
    for (const [sentence, [scene]] of Object.entries(CASES)) {
      const { desired, observed } = factsOf(scene);
      const made = plan(desired, observed, NOW);
      expect([sentence, inspect(made, desired, observed, NOW)]).toEqual([sentence, []]);
      expect(explain(made, NOW)).not.toBe('');
    }
  });

  test('is the same for the same facts', () => {
    for (const [scene] of Object.values(CASES)) {
      const { desired, observed } = factsOf(scene);
      expect(plan(desired, observed, NOW)).toEqual(plan(desired, observed, NOW));
    }
  });

  test('wakes when a back-off, a drain or an idle time ends', () => {
    expect(planOf({ failures: [failed(500, 'crash')] }).made.wakeAt).toBe(NOW + 500);
    expect(planOf({ slot: { enabled: false }, workloads: [{ ...one, inFlight: 1, draining: 10_000 }] }).made.wakeAt).toBe(NOW + 20_000);
    expect(planOf({ slot: idle, lastActive: 8000, workloads: [one] }).made.wakeAt).toBe(NOW + 2000);
  });

  test('chooses the lowest free port, and another name while the plain one is taken', () => {
    const [action] = planOf({ workloads: [old], takenPorts: [18_081] }).made.actions;
    expect(action).toMatchObject({ args: { workload: { port: { host: 18_082, container: 8080 } } } });
    expect(action?.name === 'apply' ? action.args.workload.name : '').toMatch(/^svc-slot-primary--[0-9a-f]{12}$/);
  });

  test('starts on another port where the last server was never ready on this one', () => {
    const [action] = planOf({ failures: [{ ...failed(5000, 'crash'), port: 18_080 }] }).made.actions;
    expect(action).toMatchObject({ args: { workload: { port: { host: 18_081 } } } });
  });

  test('never chooses the port of the gateway', () => {
    const [action] = planOf({ ownPorts: [18_080] }).made.actions;
    expect(action).toMatchObject({ args: { workload: { port: { host: 18_081 } } } });
    expect(planOf({ ownPorts: [18_080], takenPorts: [18_081, 18_082] }).actions).toEqual([]);
  });

  test('stops no workload whose start is under way, whatever is wrong with it', () => {
    const { desired, observed } = factsOf({ workloads: [{ ...one, ...crash }] });
    const started = factsOf({ workloads: [] });
    const [apply] = plan(started.desired, started.observed, NOW).actions;
    if (apply === undefined) throw new Error('Nothing is started');
    const running = new Map([[`apply:${PRIMARY}`, { action: apply, startedAt: NOW - 10 }]]);
    expect(plan(desired, { ...observed, running }, NOW).actions).toEqual([]);
  });

  test('asks a server that it could not ask for a while before it gives it up', () => {
    const late = { ...one, seen: 3_600_000 };
    expect(planOf({ workloads: [{ ...late, probe: 'none' }] }).actions).toEqual(['probe:w1']);
    expect(planOf({ workloads: [{ ...late, probe: 'loading' }] }).actions).toEqual(['stop:w1']);
  });

  test('counts no crash against a slot while nobody can tell whether it was of the wanted workload', () => {
    const { desired, observed } = factsOf({ model: 'pullable', workloads: [{ ...one, ...crash }] });
    expect(plan(desired, observed, NOW).actions).toMatchObject([{ name: 'stop', args: { failure: undefined } }, { name: 'pullModel' }]);
  });

  test('pulls nothing a second time while its pull is under way', () => {
    const { desired, observed } = factsOf({ model: 'pullable', image: false });
    const keys = [`pullImage:${IMAGE.reference}`, 'pullModel:a.gguf'];
    const pulls = plan(desired, observed, NOW).actions.map((action) => [keyOfAction(action), { action, startedAt: NOW }] as const);
    const pulledBeside = (...under: readonly string[]): readonly string[] =>
      plan(desired, { ...observed, running: new Map(pulls.filter(([key]) => under.includes(key))) }, NOW).actions.map(keyOfAction);
    expect(pulledBeside()).toEqual(keys);
    for (const key of keys) expect(pulledBeside(key)).toEqual(keys.filter((other) => other !== key));
    expect(pulledBeside(...keys)).toEqual([]);
  });

  test('records a crash once', () => {
    const { desired, observed } = factsOf({ workloads: [{ ...one, ...crash }] });
    const [id] = observed.histories.keys();
    expect(plan(desired, observed, NOW).actions).toMatchObject([
      // It has no requests to end, even where its runtime has started it again.
      { name: 'stop', args: { graceMs: 1000, failure: { kind: 'crash', reason: 'Crashed' } } },
    ]);
    const failures = [{ ...failed(0, 'crash'), ...(id === undefined ? {} : { workload: id }) }];
    const attempts = new Map([[PRIMARY, { generation: 3, failures, repairs: undefined, starts: 1 }]]);
    expect(plan(desired, { ...observed, attempts }, NOW).actions).toMatchObject([{ name: 'stop', args: { failure: undefined } }]);
  });

  test('counts no crash of a server whose stop failed: it may have got the signal', () => {
    const { desired, observed } = factsOf({ workloads: [{ ...one, ...crash }] });
    const stops = { failures: 1, lastAt: NOW - 60_000, message: 'Too many open files' };
    const histories = new Map([...observed.histories].map(([id, history]) => [id, { ...history, stops }] as const));
    expect(plan(desired, { ...observed, histories }, NOW).actions).toMatchObject([{ name: 'stop', args: { failure: undefined } }]);
  });

  test('reports what is wrong with a rejected text, and continues with the last valid one', () => {
    const problems = [{ path: ['model', 'default'], message: 'Write a model id', file: '/slots/primary.toml', line: 3, column: 7 }];
    const conditions = planOf({ workloads: [one], problems }).made.decisions.get(PRIMARY)?.conditions;
    expect(conditions).toContainEqual(
      expect.objectContaining({ type: 'SpecValid', status: 'False', message: expect.stringContaining('/slots/primary.toml:3:7') }),
    );
  });
});

test('a slot whose image nobody has published says with which command it is built', () => {
  const stalled = (scene: Scene) =>
    planOf({ without: 'imageName', ...scene })
      .made.decisions.get(PRIMARY)
      ?.conditions.find(({ type }) => type === 'Stalled');
  expect(stalled({})).toMatchObject({
    reason: 'ImageUnknown',
    message: expect.stringMatching(
      /^No toolbox image is published .*; build it with "svcctl toolbox build gguf \w+", or name one in "toolboxes.toml"$/,
    ),
  });
  // Nobody builds an image on the nodes of a cluster.
  const inCluster = stalled({ traits: { network: 'pods' } })?.message;
  expect(inCluster).toMatch(/build it .*, push it .*, and set "toolboxes\.gguf\.\w+" of the chart to this image and digest$/);
  expect(inCluster).not.toContain('svcctl toolbox build');
});

describe('warmingPauseMs()', () => {
  test('grows from 5 ms to 1 s with the age, and adds at most a twentieth', () => {
    expect([0, 100, 400, 2000, 60_000].map(warmingPauseMs)).toEqual([5, 5, 20, 100, 1000]);
  });
});
