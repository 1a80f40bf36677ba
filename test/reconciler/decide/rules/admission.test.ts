/** What requests of a slot get to know while it cannot answer, and how soon. */
import { describe, expect, test } from '@jest/globals';
import type { Attempt } from '../../../../src/reconciler/decide/facts/facts.ts';
import { failed, planOf, PRIMARY, type Scene } from '../plan-fixture.ts';

const admissionIn = (scene: Scene) => planOf({ waiting: 1, ...scene }).made.decisions.get(PRIMARY)?.admission;

const crashed = (text: string): Attempt => ({ ...failed(100, 'crash'), logTail: [{ stream: 'stderr', text }] });

describe('a request for a slot that cannot load', () => {
  test.each<[string, Scene]>([
    ['its model cannot be fetched', { model: 'pullable', failures: [failed(100, 'pull-model', 'ModelPullFailed')] }],
    ['its image cannot be fetched', { image: false, failures: [failed(100, 'pull-image', 'ImagePullFailed')] }],
    ['its engine cannot be installed', { failures: [failed(100, 'apply', 'EngineInstallFailed')] }],
  ])('is refused with the cause as soon as %s, and may come again', (_, scene) => {
    const reason = scene.failures?.[0]?.failure.reason ?? '';
    expect(admissionIn(scene)).toEqual({
      kind: 'refuse',
      code: 'slot.loading',
      message: `Slot "primary" cannot load: It failed: ${reason}; it is tried again`,
    });
  });

  test('waits while the next attempt runs, and knows for what', () => {
    const scene: Scene = { model: 'pullable', failures: [failed(2000, 'pull-model', 'ModelPullFailed')] };
    expect(admissionIn(scene)).toEqual({ kind: 'park', because: expect.stringContaining('Model "a.gguf"') });
  });

  test.each<[string, Scene]>([
    ['is still to be tried', { workloads: [{ id: 'w1', revision: 'other', probe: 'none' }] }],
    ['starts', { workloads: [{ id: 'w1', probe: 'loading' }] }],
  ])('waits while a server %s, whatever prevents another start', (_, scene) => {
    const failures = [failed(100, 'pull-model', 'ModelPullFailed')];
    expect(admissionIn({ ...scene, model: 'pullable', failures })).toEqual({ kind: 'park', because: 'It failed: ModelPullFailed' });
    expect(admissionIn({ ...scene, model: 'missing' })).toEqual({ kind: 'park', because: 'Put the model "a.gguf" in place' });
  });

  test('waits for a server that crashed, and knows why', () => {
    expect(admissionIn({ failures: [failed(100, 'crash')] })).toEqual({ kind: 'park', because: 'It failed: Crashed' });
  });

  test.each([
    'error: invalid argument: --old-flag',
    'error: unrecognized arguments: --old-flag',
    'error: Remove the argument "--old-flag" or install llama-server: the embedded engine does not support it',
  ])('is refused after the first start that ends with the words: %s', (line) => {
    expect(admissionIn({ failures: [crashed(line)] })).toEqual({
      kind: 'refuse',
      code: 'slot.stalled',
      message: 'Slot "primary" is stalled: The server refuses its arguments; correct "model.args" of the slot; last log line: "(hidden)"',
    });
  });

  test('is not refused for a crash with other words, nor for the words of an earlier one', () => {
    expect(admissionIn({ failures: [crashed('GGML_ASSERT failed')] })?.kind).toBe('park');
    expect(admissionIn({ failures: [crashed('error: invalid argument: -x'), failed(50, 'crash')] })?.kind).toBe('park');
  });

  test.each([
    ['RemoteUntrusted', 'refuse'],
    ['RemoteRefuses', 'refuse'],
    ['RemoteUnusable', 'refuse'],
    ['RemoteLacksModel', 'refuse'],
    ['RemoteUnreachable', 'park'],
    ['RemoteLoading', 'park'],
  ] as const)('with a server elsewhere that cannot be used (%s) gets: %s', (reason, kind) => {
    const waitingReason = { kind: 'other', reason, message: '"https://10.0.0.1" says no' } as const;
    const admission = admissionIn({ workloads: [{ id: 'w1', phase: 'created', probe: 'none', fact: { waitingReason } }] });
    expect(admission?.kind).toBe(kind);
    expect(JSON.stringify(admission)).not.toContain('10.0.0.1');
    if (admission?.kind === 'refuse')
      expect([admission.code, admission.message]).toEqual(['slot.loading', expect.stringContaining(reason)]);
  });
});
