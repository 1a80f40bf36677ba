import { describe, expect, test } from '@jest/globals';
import { explain, explainSlot, listChanges } from '../../../../src/reconciler/decide/outcome/explain.ts';
import { parseReason, REASONS } from '../../../../src/schema/status/reasons.ts';
import type { ReasonFacts } from '../../../../src/schema/status/slot-reasons.ts';
import { recordedHardware } from '../../../support/hardware/recorded-machines.ts';
import { failed, NOW, planOf, PRIMARY, type Scene } from '../plan-fixture.ts';

const texts = (scene: Scene): readonly string[] => explain(planOf(scene).made, NOW).split('\n');
/** Revisions change with whatever a workload is made of; here they are just revisions. */
const plain = (lines: readonly string[]): readonly string[] => lines.map((line) => line.replaceAll(/[0-9a-f]{12}/g, 'REVISION'));

describe('explain()', () => {
  test('reports that no action is required', () => {
    expect(texts({ workloads: [{ id: 'w1' }] })).toEqual(['No action required']);
  });

  test('leaves out slots that are off or rest on purpose, unless they could not be loaded', () => {
    expect(texts({ slot: { enabled: false } })).toEqual(['No action required']);
    const resting = { slot: { load: 'on-demand' }, lastActive: undefined } as const;
    expect(texts(resting)).toEqual(['No action required']);
    expect(texts({ ...resting, model: 'missing' })[0]).toBe('Slot "primary" is off');
  });

  test('explains a first start', () => {
    expect(texts({})).toEqual([
      'Slot "primary" is starting',
      '  next: start "svc-slot-primary" with model "a.gguf" on port 18080: No workload is running for this slot',
    ]);
  });

  test('explains why a slot does not compute with the default backend, unless that was asked for', () => {
    const line =
      '  backend: "cuda", as the default "vulkan" is not available here: images for Vulkan cannot use the driver of NVIDIA (gpu0: NVIDIA GB10)';
    expect(texts({ hardware: recordedHardware('dgx-spark') })).toContain(line);
    expect(texts({ hardware: recordedHardware('w7900') }).join()).not.toContain('backend');
    expect(texts({ hardware: recordedHardware('dgx-spark'), slot: { backend: 'cuda' } }).join()).not.toContain('backend');
  });

  test('explains a pull', () => {
    expect(texts({ model: 'pullable' })).toEqual([
      'Slot "primary" is pulling',
      '  because: Model "a.gguf" (1000 B) is not present [ModelNotPresent]',
      '  next: pull model "a.gguf": Model "a.gguf" (1000 B) is not present',
    ]);
  });

  test('explains a swap that drains, and which requests it waits for', () => {
    const swap = { slot: { lifecycle: { swap: 'drain' } }, workloads: [{ id: 'w0', revision: 'other', inFlight: 2 }] } as const;
    expect(plain(texts(swap))).toEqual([
      'Slot "primary" is unloading',
      '  because: Revision "REVISION" runs and "REVISION" is wanted [RevisionOutdated]',
      '  waiting for the requests of "w0" to end',
    ]);
  });

  test('explains a blue-green swap and its memory', () => {
    expect(plain(texts({ budgetBytes: 4096, workloads: [{ id: 'w0', revision: 'other' }] }))).toEqual([
      'Slot "primary" is ready',
      '  because: Revision "REVISION" serves until "REVISION" does [RevisionOutdated]',
      '  next: start "svc-slot-primary--REVISION" with model "a.gguf" on port 18081: Revision "REVISION" starts beside the one that serves',
      '  memory: admitted, needs 1000 B; 4.0 KiB budget, nothing reserved',
      '  served by "w0"',
    ]);
  });

  test('explains a crash with its last log lines and the next attempt', () => {
    const crash = { ...failed(500, 'crash'), logTail: [{ stream: 'stderr', text: 'error: out of tokens' }] } as const;
    expect(texts({ failures: [crash] })).toEqual([
      'Slot "primary" is offline',
      '  because: It failed: Crashed [Crashed]',
      '  failed 0.5 s ago: It failed: Crashed',
      '  next attempt in 0.5 s',
      '  its last log lines:',
      '    error: out of tokens',
    ]);
  });

  test('announces no attempt for a slot that is stalled or not wanted, nor one that is due already', () => {
    const crashes = [5, 4, 3, 2, 1].map((minutes) => failed(minutes * 60_000, 'crash'));
    const stalled = texts({ failures: crashes });
    expect(stalled).toContain('  failed 60 s ago: It failed: Crashed');
    for (const scene of [
      { failures: [...crashes, failed(500, 'crash')] },
      { failures: [failed(500, 'apply', 'Forbidden', 'stalled')] },
      { failures: [failed(500, 'crash')], slot: { enabled: false } },
    ] as const)
      expect([...planOf(scene).made.decisions.values()].map((decision) => explainSlot(decision, [], NOW)).join()).not.toContain(
        'next attempt',
      );
    const [decision] = planOf({ failures: [failed(500, 'crash')] }).made.decisions.values();
    expect(decision && explainSlot(decision, [], NOW + 400)).toContain('next attempt in 0.1 s');
    expect(decision && explainSlot(decision, [], NOW + 600)).not.toContain('next attempt');
  });

  test('counts ages from the moment of the question', () => {
    const [decision] = planOf({ workloads: [{ id: 'w1', probe: 'dead' }], failures: [failed(500, 'crash')] }).made.decisions.values();
    if (decision === undefined) throw new Error('There is no decision');
    expect(explainSlot(decision, [], NOW)).toContain('failed 0.5 s ago');
    expect(explainSlot(decision, [], NOW + 90_000)).toContain('failed 91 s ago');
    // An age inside of a message would stay what it was when the message was written.
    expect(JSON.stringify([decision.findings, decision.conditions])).not.toMatch(/ ago/);
  });

  test('explains why there is no memory', () => {
    expect(texts({ budgetBytes: 512 })).toEqual([
      'Slot "primary" is offline',
      '  because: The slot can never fit: it needs 1000 B, and the whole budget is 512 B; choose a smaller model, quantisation or context [InsufficientMemory]',
      '  to do: Disable another slot, raise "priority", lower "resources.memory", or raise "SVC_MEMORY_BUDGET"',
      '  memory: not admitted, needs 1000 B; 512 B budget, nothing reserved',
    ]);
  });

  test('explains what happens to the workloads of a removed slot', () => {
    expect(texts({ without: 'slot', workloads: [{ id: 'w1' }] })).toEqual([
      'Slot "primary" was removed',
      '  next: stop "w1": Slot "primary" is no longer desired',
    ]);
  });
});

describe('explainSlot()', () => {
  test('also explains a slot at rest', () => {
    const decision = planOf({ slot: { enabled: false } }).made.decisions.get(PRIMARY);
    expect(decision && explainSlot(decision, [], NOW)).toBe('Slot "primary" is off\n  because: Slot is off: "enabled" is false [Disabled]');
  });

  test('says of a slot that is larger than the whole budget that it can never get so much, and not that it waits', () => {
    const decision = planOf({ budgetBytes: 512 }).made.decisions.get(PRIMARY);
    const memory = decision?.memory;
    const candidate = memory?.candidates[0];
    if (decision === undefined || memory === undefined || candidate === undefined) throw new Error('There is no candidate');
    const explained = (bytes: number) =>
      explainSlot({ ...decision, memory: { ...memory, candidates: [{ ...candidate, bytes }, candidate] } }, [], NOW);
    expect(explained(513)).toContain('\n    "primary" can never get 513 B: the whole budget is smaller\n');
    expect(explained(512)).toContain('\n    "primary" waits for 512 B: the slots before it leave too little\n');
  });

  test('says what to do for every reason that can leave a slot stalled', () => {
    const decision = planOf({ failures: [failed(0, 'apply', 'Forbidden', 'stalled')] }).made.decisions.get(PRIMARY);
    if (decision === undefined) throw new Error('There is no decision');
    for (const [reason, { stalled }] of Object.entries<ReasonFacts>(REASONS)) {
      if (stalled !== true) continue;
      const condition = { type: 'Stalled', status: 'True', reason: parseReason(reason) ?? 'Unknown', message: '' } as const;
      expect(explainSlot({ ...decision, conditions: [condition] }, [], NOW)).toMatch(/\n {2}to do: [A-Z"][^`<>]+/);
    }
    expect(explainSlot(decision, [], NOW)).toContain('to do: Extend the role or adapt the rule');
  });
});

describe('listChanges()', () => {
  test('leaves probes out', () => {
    expect(listChanges(planOf({ workloads: [{ id: 'w1', probe: 'none' }] }).made)).toEqual([]);
    expect(listChanges(planOf({}).made)).toMatchObject([{ slot: 'primary', action: 'apply', because: 'WorkloadNotPresent' }]);
  });
});
