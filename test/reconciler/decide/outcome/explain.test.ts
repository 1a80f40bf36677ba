import { describe, expect, test } from '@jest/globals';
import { explain, explainSlot, listChanges } from '../../../../src/reconciler/decide/outcome/explain.ts';
import { failed, NOW, planOf, PRIMARY, type Told } from '../plan-fixture.ts';

const texts = (told: Told): readonly string[] => explain(planOf(told).made, NOW).split('\n');
/** Revisions change with whatever a workload is made of; here they are just revisions. */
const plain = (lines: readonly string[]): readonly string[] => lines.map((line) => line.replaceAll(/[0-9a-f]{12}/g, 'REVISION'));

describe('explain()', () => {
  test('says that nothing is to be done', () => {
    expect(texts({ workloads: [{ id: 'w1' }] })).toEqual(['Nothing to do: everything is as it shall be']);
  });

  test('tells a first start', () => {
    expect(texts({})).toEqual([
      'Slot "primary" is starting',
      '  does start "svc-slot-primary" with model "a.gguf" on port 18080: It is wanted, and nothing of it runs',
    ]);
  });

  test('tells a pull', () => {
    expect(texts({ model: 'pullable' })).toEqual([
      'Slot "primary" is pulling',
      '  because Model "a.gguf" (1000 B) is not here [ModelNotPresent]',
      '  does pull model "a.gguf": Model "a.gguf" (1000 B) is not here',
    ]);
  });

  test('tells a swap that drains, and for whom it waits', () => {
    const swap = { slot: { lifecycle: { swap: 'drain' } }, workloads: [{ id: 'w0', revision: 'other', inFlight: 2 }] } as const;
    expect(plain(texts(swap))).toEqual([
      'Slot "primary" is unloading',
      '  because Revision "REVISION" runs and "REVISION" is wanted [RevisionOutdated]',
      '  waits for the requests of "w0" to end',
    ]);
  });

  test('tells a swap beside the old one, with the memory it takes', () => {
    expect(plain(texts({ budgetBytes: 4096, workloads: [{ id: 'w0', revision: 'other' }] }))).toEqual([
      'Slot "primary" is ready',
      '  because Revision "REVISION" serves until "REVISION" does [RevisionOutdated]',
      '  does start "svc-slot-primary--REVISION" with model "a.gguf" on port 18081: Revision "REVISION" starts beside the one that serves',
      '  memory: admitted, 1000 B needed, 0 B of 4.0 KiB promised before it',
      '  answers through "w0"',
    ]);
  });

  test('tells a crash with its last words and the next attempt', () => {
    const crash = { ...failed(500, 'crash'), logTail: [{ stream: 'stderr', text: 'error: out of tokens' }] } as const;
    expect(texts({ failures: [crash] })).toEqual([
      'Slot "primary" is offline',
      '  because It failed: Crashed [Crashed]',
      '  failed 0.5 s ago: It failed: Crashed',
      '  tries again in 0.5 s',
      '  its last words:',
      '    error: out of tokens',
    ]);
  });

  test('tells why there is no memory', () => {
    expect(texts({ budgetBytes: 512 })).toEqual([
      'Slot "primary" is offline, as it is not wanted to run',
      '  because It needs 1000 B of the 512 B there are [InsufficientMemory]',
      '  memory: not admitted, 1000 B needed, 0 B of 512 B promised before it',
    ]);
  });

  test('tells what becomes of a slot that is gone', () => {
    expect(texts({ without: 'slot', workloads: [{ id: 'w1' }] })).toEqual([
      'Slot "primary" is gone',
      '  does stop "w1": Slot "primary" is no longer desired',
    ]);
  });
});

describe('explainSlot()', () => {
  test('explains a slot at rest too', () => {
    const decision = planOf({ slot: { enabled: false } }).made.decisions.get(PRIMARY);
    expect(decision && explainSlot(decision, [], NOW)).toBe(
      'Slot "primary" is offline, as it is not wanted to run\n  because It is not enabled [Disabled]',
    );
  });
});

describe('listChanges()', () => {
  test('leaves probes out', () => {
    expect(listChanges(planOf({ workloads: [{ id: 'w1', probe: 'none' }] }).made)).toEqual([]);
    expect(listChanges(planOf({}).made)).toMatchObject([{ slot: 'primary', action: 'apply', because: 'WorkloadNotPresent' }]);
  });
});
