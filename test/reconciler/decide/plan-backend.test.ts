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
