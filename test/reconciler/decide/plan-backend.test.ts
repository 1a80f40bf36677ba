import { describe, expect, test } from '@jest/globals';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';
import { FAKE_PROVIDER } from '../../support/simulation/world.ts';
import { factsOf, NOW, planOf, PRIMARY, type Scene } from './plan-fixture.ts';

const one = { id: 'w1' } as const;

describe('the backend', () => {
  const NO_GPU = recordedHardware('server-without-gpu');

  test('that no device of this machine offers stalls the slot, and nothing is started', () => {
    const { made } = planOf({ slot: { backend: 'cuda' }, hardware: NO_GPU });
    expect(made.actions).toEqual([]);
    expect(made.decisions.get(PRIMARY)).toMatchObject({ backend: undefined, findings: [{ reason: 'DeviceMissing' }] });
    expect(made.decisions.get(PRIMARY)?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Stalled', status: 'True', reason: 'DeviceMissing' }),
    );
  });

  test('that its provider fails to judge holds up the slot, which says so, and what runs stays', () => {
    const scene: Scene = { slot: { backend: 'cuda' }, workloads: [one], hardware: NO_GPU };
    const { desired, observed } = factsOf(scene);
    const rankBackends = (): never => {
      throw new TypeError('It exploded');
    };
    const made = plan({ ...desired, providers: { gguf: { ...FAKE_PROVIDER, rankBackends } } }, observed, NOW);
    expect(made.actions).toEqual([]);
    expect(made.decisions.get(PRIMARY)?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Stalled', status: 'True', reason: 'InternalError' }),
    );
  });

  test('in the status is that of the workload that answers, not the one that was asked for', () => {
    const backendOf = (scene: Scene) => planOf(scene).made.decisions.get(PRIMARY)?.backend;
    expect(backendOf({ slot: { backend: 'cpu' }, workloads: [{ id: 'w1' }], hardware: NO_GPU })).toBe('cpu');
    expect(backendOf({ slot: { backend: 'cuda' }, workloads: [{ id: 'w1' }], hardware: NO_GPU })).toBeUndefined();
    expect(backendOf({ slot: { backend: 'cuda' }, workloads: [{ id: 'w1' }] })).toBe('cuda');
    expect(backendOf({ slot: { backend: 'cuda' } })).toBeUndefined();
  });
});

describe('the devices that a slot names', () => {
  const TWO_GPUS = recordedHardware('rtx-3090-and-4090');
  const naming = (...devices: string[]): Scene => ({ slot: { backend: 'cuda', resources: { devices } }, hardware: TWO_GPUS });
  const address = TWO_GPUS.devices[1]?.pciAddress ?? '';

  test.each([
    ['one', ['gpu1'], '1'],
    ['one by its address', [address], '1'],
    ['both', ['gpu0', 'gpu1'], '0,1'],
  ])('are all that its server sees: %s', (_what, devices, numbers) => {
    const [action] = planOf(naming(...devices)).made.actions;
    expect(action).toMatchObject({ args: { workload: { env: { CUDA_VISIBLE_DEVICES: numbers } } } });
  });

  test('stall it where they are not there, or in a cluster', () => {
    for (const scene of [naming('gpu1', 'gpu2'), { ...naming('gpu0'), traits: { network: 'pods' } } satisfies Scene]) {
      const { made } = planOf(scene);
      expect(made.actions).toEqual([]);
      expect(made.decisions.get(PRIMARY)?.conditions).toContainEqual(
        expect.objectContaining({ type: 'Stalled', status: 'True', reason: 'DeviceMissing' }),
      );
    }
  });

  test('are those whose memory is counted', () => {
    const estimateMemory = () => ({ hostBytes: 1, deviceBytes: 5 * 2 ** 30 });
    const placed = (scene: Scene) => planOf({ ...scene, abilities: { estimateMemory } }).made.actions;
    for (const id of ['gpu0', 'gpu1']) {
      expect(placed(naming(id))).toMatchObject([{ args: { origin: { memory: { [id]: 5 * 2 ** 30 } } } }]);
      expect(placed(naming(id))).toMatchObject([{ args: { workload: { env: { CUDA_VISIBLE_DEVICES: id.slice(3) } } } }]);
    }
  });

  test('are those that must be large enough', () => {
    const large = { totalBytes: 48 * 2 ** 30, freeBytes: 48 * 2 ** 30 };
    const devices = TWO_GPUS.devices.map((device) => (device.id === 'gpu1' ? { ...device, memory: large } : device));
    const findingsOf = (...names: string[]) =>
      planOf({ ...naming(...names), hardware: { ...TWO_GPUS, devices }, leastDeviceBytes: 30 * 2 ** 30 }).made.decisions.get(PRIMARY)
        ?.findings;
    expect(findingsOf('gpu0')).toMatchObject([{ reason: 'DeviceTooSmall' }]);
    expect(findingsOf('gpu1')).not.toContainEqual(expect.objectContaining({ reason: 'DeviceTooSmall' }));
  });

  test('are a part of the revision, so that an edit replaces the server', () => {
    const revisionOf = (scene: Scene) => factsOf(scene).template.revision;
    const all: Scene = { slot: { backend: 'cuda' }, hardware: TWO_GPUS };
    const revisions = [all, naming('gpu0'), naming('gpu1')].map(revisionOf);
    expect(new Set(revisions).size).toBe(3);
    expect(planOf({ ...naming('gpu1'), workloads: [one] }).actions).toEqual(planOf({ ...all, workloads: [one] }).actions);
  });
});
