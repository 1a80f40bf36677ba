/** What a plan makes of a model: whether a device is large enough for it, and which one requests are translated for. */
import { describe, expect, test } from '@jest/globals';
import { keyOfAction } from '../../../src/reconciler/decide/facts/actions.ts';
import type { RunningAction } from '../../../src/reconciler/decide/facts/facts.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';
import { factsOf, NOW, planOf, PRIMARY, type Scene } from './plan-fixture.ts';

describe('the least memory that a model needs of a discrete device', () => {
  const W7900 = recordedHardware('w7900');
  const bytes = W7900.devices.find(({ backends }) => backends.includes('rocm'))?.memory?.totalBytes ?? 0;

  test('stalls the slot where no device has so much, and nothing is started', () => {
    const { made, actions } = planOf({ slot: { backend: 'rocm' }, hardware: W7900, leastDeviceBytes: bytes + 1 });
    expect(actions).toEqual([]);
    expect(made.decisions.get(PRIMARY)?.findings).toEqual([
      {
        kind: 'stalled',
        reason: 'DeviceTooSmall',
        message: '"a.gguf" needs a GPU with at least 48.3 GB, and the largest here has 48.3 GB; choose a smaller model or a larger GPU',
      },
    ]);
  });

  test.each<[string, Scene]>([
    ['a device has it', { hardware: W7900, leastDeviceBytes: bytes }],
    ['the device shares the memory of the host', { hardware: recordedHardware('strix-halo-128gb'), leastDeviceBytes: 2 ** 50 }],
    ['nobody knows the devices', { leastDeviceBytes: 2 ** 50 }],
    ['the model needs no device', { hardware: W7900 }],
  ])('does not matter where %s', (_what, scene) => {
    expect(planOf({ slot: { backend: 'rocm' }, ...scene }).actions).toEqual([expect.stringMatching(/^apply/)]);
  });
});

describe('the model that requests are translated for', () => {
  const modelOf = (scene: Scene) => planOf(scene).made.decisions.get(PRIMARY)?.servedModel?.id;

  test('is that of the slot', () => {
    expect(modelOf({ workloads: [{ id: 'w1' }] })).toBe('a.gguf');
    expect(modelOf({ model: 'missing' })).toBeUndefined();
  });

  test('stays the one that the serving workload was started for until another one serves', () => {
    const { desired, observed } = factsOf({ workloads: [{ id: 'w1', revision: 'other' }] });
    const before = plan(desired, observed, NOW).decisions.get(PRIMARY);
    if (before?.servedModel === undefined) throw new Error('There is no decision');
    const old = { ...before.servedModel, id: ModelId.parse('old.gguf') };
    const published = new Map([[PRIMARY, { decision: { ...before, servedModel: old }, since: NOW, conditions: [] }]]);
    expect(plan(desired, { ...observed, published }, NOW).decisions.get(PRIMARY)?.servedModel?.id).toBe('old.gguf');
  });

  test('stays what it was while its files cannot be used, as its server goes on', () => {
    const sound = factsOf({ workloads: [{ id: 'w1' }] });
    const before = plan(sound.desired, sound.observed, NOW).decisions.get(PRIMARY);
    if (before === undefined) throw new Error('There is no decision');
    const published = new Map([[PRIMARY, { decision: before, since: NOW, conditions: [] }]]);
    const { desired, observed } = factsOf({ workloads: [{ id: 'w1' }], model: 'missing' });
    expect(plan(desired, { ...observed, published }, NOW).decisions.get(PRIMARY)?.servedModel?.id).toBe('a.gguf');
  });
});

describe('a pull of a model that is under way', () => {
  const id = ModelId.parse('a.gguf');
  const key = `pullModel:${id}`;
  const pull = {
    action: { name: 'pullModel', slot: PRIMARY, because: { reason: 'ModelNotPresent', message: '' }, args: { model: id } },
    startedAt: NOW - 10,
  } as const;

  test.each<[string, readonly string[], Scene, RunningAction]>([
    ['goes on while its slot waits for it', [], {}, pull],
    ['is cancelled when its slot is off', [`cancelPull:${key}`], { slot: { enabled: false } }, pull],
    ['is cancelled when its slot is gone', [`cancelPull:${key}`], { without: 'slot' }, pull],
    ['is cancelled once', [], { slot: { enabled: false } }, { ...pull, cancelled: true }],
  ])('%s', (_, expected, scene, action) => {
    const { desired, observed } = factsOf({ model: 'pullable', ...scene });
    const { actions } = plan(desired, { ...observed, running: new Map([[key, action]]) }, NOW);
    expect(actions.map((each) => keyOfAction(each))).toEqual(expected);
  });
});
