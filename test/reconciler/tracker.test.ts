import { describe, expect, test } from '@jest/globals';
import type { SeenWorkload } from '../../src/reconciler/decide/facts/workload-history.ts';
import type { Action } from '../../src/reconciler/decide/facts/actions.ts';
import { createTracker, type Tracker } from '../../src/reconciler/tracker.ts';
import type { Attempt } from '../../src/reconciler/decide/facts/facts.ts';
import { nextAttemptAt } from '../../src/reconciler/decide/rules/backoff.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import { factsOf, NOW } from './decide/plan-fixture.ts';
import { WorkloadId } from '../../src/schema/words/names.ts';
import { parseSlot } from '../../src/schema/slot/slot-spec.ts';
import { slotName } from '../support/simulation/world.ts';

const SLOT = slotName('primary');
const ID = WorkloadId.parse('w1');
const PASSING = { health: { kind: 'passing' }, endpoints: [], failingEndpoints: [] } as const;
const CRASH = { kind: 'retry', reason: 'Crashed', message: 'It crashed' } as const;

const seen = (tracker: Tracker, met: Partial<SeenWorkload>, now: number): void => {
  const running = met.running ?? true;
  const all = { id: ID, slot: SLOT, revision: 'r', alive: true, startedAt: undefined, exitId: undefined, alone: true, counts: running };
  tracker.observe([{ ...all, running, ...met }], now);
};
const known = (tracker: Tracker) => tracker.histories.all.get(ID);

describe('the tracker on a workload that its runtime starts again', () => {
  test('knows an end of one that ran when it was met first, and takes one that waits for news', () => {
    const runs = createTracker();
    seen(runs, { exitId: '5' }, 100);
    expect(known(runs)?.notedExits).toEqual(['5']);
    const waits = createTracker();
    seen(waits, { exitId: '5', running: false }, 100);
    expect(known(waits)?.notedExits).toEqual([]);
  });

  test('forgets its probe and when its start began, and nothing else, at each new end', () => {
    const tracker = createTracker();
    seen(tracker, {}, 100);
    tracker.histories.probed(ID, PASSING, 200);
    tracker.histories.updatedInPlace(ID, 1, 200);
    seen(tracker, { exitId: '5' }, 300);
    expect(known(tracker)).toMatchObject({ startCountsFrom: 300, probe: undefined, updates: { times: 1 }, notedExits: [] });
    tracker.histories.exitNoted(ID, '5');
    tracker.histories.probed(ID, PASSING, 400);
    const before = known(tracker);
    seen(tracker, { exitId: '5' }, 500);
    seen(tracker, {}, 600);
    seen(tracker, { exitId: '5' }, 700);
    expect(known(tracker)).toBe(before);
    // Clocks of nodes differ: another end is another end.
    seen(tracker, { exitId: '4' }, 800);
    expect(known(tracker)).toMatchObject({ probe: undefined, startCountsFrom: 800 });
  });

  test('counts the time of its start from when it runs again', () => {
    const tracker = createTracker();
    seen(tracker, {}, 100);
    seen(tracker, { exitId: '5', running: false }, 200);
    expect(known(tracker)?.startCountsFrom).toBeUndefined();
    seen(tracker, { exitId: '5' }, 900);
    expect(known(tracker)?.startCountsFrom).toBe(900);
  });

  test('takes no end for news that shows because the other replicas went', () => {
    const tracker = createTracker();
    seen(tracker, { alone: false }, 100);
    tracker.histories.probed(ID, PASSING, 200);
    seen(tracker, { exitId: '5' }, 300);
    expect(known(tracker)).toMatchObject({ notedExits: ['5'], probe: { passed: true }, startCountsFrom: 100 });
    seen(tracker, { exitId: '6' }, 400);
    expect(known(tracker)).toMatchObject({ notedExits: ['5'], probe: undefined });
  });

  test('takes no end for news that shows again because the replica that ended later is gone', () => {
    const tracker = createTracker();
    seen(tracker, { alone: false }, 100);
    for (const [exitId, at] of [
      ['5', 200],
      ['6', 300],
    ] as const) {
      seen(tracker, { exitId, alone: false }, at);
      tracker.histories.exitNoted(ID, exitId);
    }
    tracker.histories.probed(ID, PASSING, 400);
    seen(tracker, { exitId: '5', alone: false, running: false }, 500);
    expect(known(tracker)).toMatchObject({ notedExits: ['6', '5'], probe: { passed: true } });
  });

  test('keeps the last words of each of its crashes', () => {
    const tracker = createTracker();
    const parsed = parseSlot(SLOT, { model: { default: 'a.gguf' } });
    if (!parsed.ok) throw new Error('Not a slot');
    tracker.attempts.followEdit({ name: SLOT, generation: 1, spec: parsed.spec });
    for (const at of [1, 2]) tracker.attempts.failed(SLOT, { kind: 'crash', failure: CRASH, workload: ID, restartedInPlace: true }, at);
    for (const at of [2, 1]) tracker.attempts.addLogTail(SLOT, { workload: ID, at }, [{ stream: 'stderr', text: `words ${at}` }]);
    const { failures } = tracker.attempts.all.get(SLOT) ?? {};
    expect(failures?.map(({ logTail }) => logTail?.[0]?.text)).toEqual(['words 1', 'words 2']);
  });
});

describe('the tracker on a workload that is being stopped', () => {
  const args = { slot: SLOT, workload: ID, graceMs: 0, abort: false, failure: undefined } as const;
  const stop: Action = { name: 'stop', slot: SLOT, because: { reason: 'Disabled', message: 'Slot is off: "enabled" is false' }, args };

  test('keeps the beginning of its drain when the stop fails while the world is observed', () => {
    const tracker = createTracker();
    seen(tracker, {}, 100);
    tracker.markDraining(new Set([ID]), 200);
    tracker.begin(stop, 300);
    tracker.beginObservation();
    tracker.histories.stopFailed(ID, 'It failed', 400);
    tracker.end(stop);
    seen(tracker, {}, 400);
    tracker.markDraining(new Set(), 400);
    expect(known(tracker)?.drainingSince).toBe(200);
  });

  test('no longer expects it to go when the stop failed', () => {
    const tracker = createTracker();
    seen(tracker, {}, 100);
    tracker.begin(stop, 200);
    tracker.histories.stopFailed(ID, 'It failed', 300);
    tracker.end(stop);
    tracker.beginObservation();
    seen(tracker, {}, 400);
    expect(tracker.observe([], 500)).toEqual([{ id: ID, slot: SLOT }]);
  });

  test('still expects it to go when it is started again in the meantime', () => {
    const tracker = createTracker();
    seen(tracker, { startedAt: 50 }, 100);
    tracker.begin(stop, 200);
    seen(tracker, { startedAt: 250 }, 300);
    tracker.end(stop);
    tracker.beginObservation();
    expect(tracker.observe([], 400)).toEqual([]);
  });

  test('counts the time of its first start from when it is seen running, not from when it was applied', () => {
    const tracker = createTracker();
    tracker.started(ID, SLOT, 100);
    expect(known(tracker)?.startCountsFrom).toBeUndefined();
    seen(tracker, {}, 900);
    expect(known(tracker)?.startCountsFrom).toBe(900);
  });
});

describe('the tracker on a slot that is removed while its workload starts', () => {
  test('still knows what the workload was started with, and so how much memory it holds', () => {
    const { desired, observed } = factsOf({ workloads: [] });
    const [apply] = plan(desired, observed, NOW).actions;
    if (apply?.name !== 'apply') throw new Error('Nothing is started');
    const tracker = createTracker();
    for (const slot of desired.slots.values()) tracker.attempts.followEdit(slot);
    tracker.begin(apply, 100);
    tracker.keepOnly(new Map());
    tracker.started(ID, SLOT, 200);
    expect(known(tracker)?.origin?.memory['host']).toBe(1000);
  });

  test('takes it for no loss of a slot of that name when the start ends after the stop', () => {
    const { desired, observed } = factsOf({ workloads: [] });
    const [apply] = plan(desired, observed, NOW).actions;
    if (apply === undefined) throw new Error('Nothing is started');
    const tracker = createTracker();
    for (const slot of desired.slots.values()) tracker.attempts.followEdit(slot);
    tracker.begin(apply, 100);
    tracker.keepOnly(new Map());
    seen(tracker, {}, 200);
    tracker.histories.stopBegun(ID);
    expect(tracker.observe([], 300)).toEqual([]);
    tracker.started(ID, SLOT, 400);
    tracker.histories.beginObservation();
    expect(tracker.observe([], 500)).toEqual([]);
  });
});

describe('the tracker on failures', () => {
  const failedAt = (tracker: Tracker, at: number): void => tracker.attempts.failed(SLOT, { kind: 'apply', failure: CRASH }, at);
  const timesOf = (tracker: Tracker): readonly number[] => tracker.attempts.all.get(SLOT)?.failures.map(({ at }) => at) ?? [];
  const recorded = (at: number): Attempt => ({ at, recordedAt: at, kind: 'crash', failure: CRASH });
  const onSlot = (): Tracker => {
    const tracker = createTracker();
    for (const slot of factsOf({}).desired.slots.values()) tracker.attempts.followEdit(slot);
    return tracker;
  };

  test('keeps the newest ones, so that the back-off counts from the last', () => {
    const tracker = onSlot();
    for (let at = 1; at <= 50; at += 1) failedAt(tracker, at * 1000);
    expect(timesOf(tracker)).toHaveLength(20);
    expect(timesOf(tracker).at(-1)).toBe(50_000);
    expect(nextAttemptAt(tracker.attempts.all.get(SLOT)?.failures ?? [])).toBe(350_000);
  });

  test('takes over what was recorded, unless it knows as much itself', () => {
    const tracker = onSlot();
    tracker.attempts.recall(SLOT, [recorded(1), recorded(2)]);
    expect(timesOf(tracker)).toEqual([1, 2]);
    failedAt(tracker, 3);
    tracker.attempts.recall(SLOT, [recorded(1), recorded(2), recorded(2)]);
    expect(timesOf(tracker)).toEqual([1, 2, 3]);
  });

  test('counts nothing of an object that was deleted for one of the same name', () => {
    const tracker = onSlot();
    const [slot] = factsOf({}).desired.slots.values();
    if (slot === undefined) throw new Error('There is no slot');
    tracker.attempts.followEdit({ ...slot, uid: 'uid-1' });
    failedAt(tracker, 1);
    expect(tracker.attempts.followEdit({ ...slot, uid: 'uid-2' })).toBe('edited');
    expect(timesOf(tracker)).toEqual([]);
  });
});

test('a port that another program used is tried again after a minute', () => {
  const tracker = createTracker();
  tracker.portTaken(18_080, 1000);
  tracker.portTaken(18_081, 31_000);
  expect([...tracker.facts(60_999).takenPorts]).toEqual([18_080, 18_081]);
  expect([...tracker.facts(61_000).takenPorts]).toEqual([18_081]);
  expect([...tracker.facts(91_000).takenPorts]).toEqual([]);
});
