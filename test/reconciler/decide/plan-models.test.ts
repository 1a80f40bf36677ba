/** What a plan makes of a model: whether a device is large enough for it, and which one requests are translated for. */
import { describe, expect, test } from '@jest/globals';
import { keyOfAction } from '../../../src/reconciler/decide/facts/actions.ts';
import type { RunningAction } from '../../../src/reconciler/decide/facts/facts.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { inspect } from '../../../src/reconciler/decide/inspect.ts';
import type { ModelPresence } from '../../../src/reconciler/ports.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';
import { IMAGE } from '../../support/simulation/world.ts';
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

describe('models that a server loads beside its own', () => {
  const slot = { model: { default: 'a.gguf', draft: { model: 'tiny' }, adapters: [{ name: 'legal', file: 'loras/legal.gguf' }] } };
  const fact = (id: string, more: object = {}): ModelPresence => ({
    kind: 'present',
    facts: { id: ModelId.parse(id), hostPath: `/store/${id}`, sizeBytes: 100, ...more },
  });
  const TINY = ModelId.parse('tiny');
  const LEGAL = ModelId.parse('loras/legal.gguf');
  const BOTH = { [TINY]: fact('tiny'), [LEGAL]: fact('loras/legal.gguf') };

  function planWith(
    companions: Readonly<Record<string, ModelPresence>>,
    scene: Scene = {},
    running: ReadonlyMap<string, RunningAction> = new Map(),
  ) {
    const { desired, observed } = factsOf({ slot, ...scene });
    const models = new Map([...observed.models, ...Object.entries(companions).map(([id, each]) => [ModelId.parse(id), each] as const)]);
    const facts = { ...observed, models, running };
    const made = plan(desired, facts, NOW);
    expect(inspect(made, desired, facts, NOW)).toEqual([]);
    return { made, decision: made.decisions.get(PRIMARY), keys: made.actions.map((each) => keyOfAction(each)) };
  }

  test('are all there before it starts', () => {
    const { made, keys } = planWith(BOTH);
    expect(keys).toEqual([expect.stringMatching(/^apply/)]);
    expect(made.actions[0]).toMatchObject({ args: { origin: { model: { id: 'a.gguf' } } } });
  });

  test.each<[string, Readonly<Record<string, ModelPresence>>, readonly string[], string]>([
    ['is pulled', { ...BOTH, [TINY]: { kind: 'pullable', sizeBytes: 4096 } }, ['pullModel:tiny'], 'Model "tiny" (4.0 KiB) is not present'],
    ['is waited for until it was looked up', { [LEGAL]: fact('loras/legal.gguf') }, [], 'The model store has not answered yet'],
    ['stalls the slot where it is missing', { ...BOTH, [LEGAL]: { kind: 'missing', message: 'Put it there' } }, [], 'Put it there'],
    [
      'is not pulled before its licence is accepted',
      { ...BOTH, [TINY]: { kind: 'pullable', sizeBytes: 1, refusal: 'Accept it' } },
      [],
      'Accept it',
    ],
    [
      'must be on the volume where pods fetch models',
      { ...BOTH, [TINY]: fact('tiny', { pinnedBy: { object: 'pin', digest: 'd' } }) },
      [],
      'In a cluster, pods fetch only "model.default": put the file of "tiny" on the volume of the models',
    ],
  ])('one of them %s', (_what, companions, actions, message) => {
    const { keys, decision } = planWith(companions);
    expect(keys).toEqual(actions);
    expect(decision?.findings.map((finding) => finding.message)).toContain(message);
  });

  test('and the pull of one goes on while the slot waits for it', () => {
    const pull = {
      action: { name: 'pullModel', slot: PRIMARY, because: { reason: 'ModelNotPresent', message: '' }, args: { model: TINY } },
      startedAt: NOW - 10,
    } as const;
    const { keys, decision } = planWith({ ...BOTH, [TINY]: { kind: 'pullable', sizeBytes: 1 } }, {}, new Map([['pullModel:tiny', pull]]));
    expect([keys, decision?.state]).toEqual([[], 'pulling']);
  });

  test('leave what serves alone while one of them is missing', () => {
    const { keys, decision } = planWith(
      { ...BOTH, [TINY]: { kind: 'missing', message: 'Gone' } },
      { workloads: [{ id: 'w1', revision: 'other' }] },
    );
    expect(keys.filter((key) => !key.startsWith('probe'))).toEqual([]);
    expect(decision?.serving).toBe('w1');
  });

  test('outdate a server whose files were replaced, and have their paths in the workload', () => {
    const { desired, slot: wanted } = factsOf({ slot });
    const of = (version: string) => {
      const main = { ...factsAt('a.gguf'), version: '1' };
      return desired.templateOf(wanted, main, IMAGE, {
        companions: [
          { ...factsAt('tiny'), version },
          { ...factsAt('loras/legal.gguf'), version: '1' },
        ],
      });
    };
    expect(of('1')?.env['INFERENCE_MODEL_FILES']).not.toBe(of('2')?.env['INFERENCE_MODEL_FILES']);
    expect(of('1')?.revision).toBe(of('2')?.revision);
  });
});

const factsAt = (id: string) => ({ id: ModelId.parse(id), hostPath: `/store/${id}`, sizeBytes: 100 });
