import { describe, expect, test } from '@jest/globals';
import type { BoardSlot, BoardView } from '../../../../src/reconciler/board.ts';
import { followLeader } from '../../../../src/cluster/leadership/decide/follow-leader.ts';
import { ModelId, SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import { parseSlot } from '../../../../src/schema/slot/slot-spec.ts';
import type { Reason } from '../../../../src/schema/status/reasons.ts';
import type { Condition, ConditionType, SlotStatus } from '../../../../src/schema/status/slot-status.ts';

const PRIMARY = SlotName.parse('primary');
const EMBED = SlotName.parse('embed');
const [OLD, NEW] = [ModelId.parse('old'), ModelId.parse('new')];
const TARGETS = [{ workload: WorkloadId.parse('w'), endpoint: { host: '10.0.0.1', port: 8080 } }];

function condition(type: ConditionType, status: Condition['status'], reason: Reason, message = 'Because'): Condition {
  return { type, status, reason, message, lastTransitionAt: 1, observedGeneration: 3 };
}

function statusOf(name: SlotName, more: Partial<SlotStatus> = {}): SlotStatus {
  return {
    name,
    state: 'offline',
    conditions: [condition('Ready', 'False', 'AtRest'), condition('Stalled', 'False', 'AtRest')],
    observedGeneration: 3,
    provider: 'gguf',
    backend: 'cpu',
    model: NEW,
    restarts: 0,
    since: 5,
    ...more,
  };
}

function slotOf(name: SlotName, more: Partial<BoardSlot> = {}, aliases: readonly string[] = ['alias']): BoardSlot {
  const parsed = parseSlot(name, { provider: 'gguf', backend: 'cpu', model: { default: NEW, aliases } });
  if (!parsed.ok) throw new Error('The spec is bad');
  return {
    name,
    capabilities: ['chat'],
    admission: { kind: 'park' },
    targets: [],
    status: statusOf(name),
    spec: parsed.spec,
    generation: 3,
    problems: [],
    explain: () => 'Explained',
    ...more,
  };
}

function viewOf(...slots: readonly BoardSlot[]): BoardView {
  const names = new Map<string, readonly SlotName[]>(slots.map(({ name }) => [name, [name]]));
  return { version: 7, at: 9, slots: new Map(slots.map((slot) => [slot.name, slot])), names, refused: new Map() };
}

function follow(slot: BoardSlot, published: SlotStatus): BoardSlot {
  const found = followLeader(viewOf(slot), new Map([[published.name, published]])).slots.get(slot.name);
  if (found === undefined) throw new Error('The slot is lost');
  return found;
}

const OPEN = slotOf(PRIMARY, { status: statusOf(PRIMARY, { state: 'ready' }), admission: { kind: 'open' }, targets: TARGETS });

describe('followLeader()', () => {
  test('shows the status that the leader published for the same generation, and keeps its own targets', () => {
    const progress = { what: 'model "new"', doneBytes: 5 };
    const conditions = [condition('Ready', 'True', 'ProbePassed'), condition('Stalled', 'False', 'NotStalled')];
    const followed = follow(OPEN, statusOf(PRIMARY, { state: 'serving', conditions, restarts: 4, since: 77, progress }));
    expect(followed).toMatchObject({ admission: { kind: 'open' }, targets: TARGETS, status: { state: 'serving', restarts: 4, since: 77 } });
    expect(followed.status.conditions).toEqual(conditions);
    expect(followed.status.progress).toEqual(progress);
  });

  test.each([2, 4])('ignores a status of generation %i for generation 3', (observedGeneration) => {
    const view = viewOf(OPEN);
    expect(followLeader(view, new Map([[PRIMARY, statusOf(PRIMARY, { observedGeneration })]]))).toBe(view);
  });

  test('does not change a slot without a published status, and ignores the status of a removed slot', () => {
    const view = followLeader(viewOf(OPEN), new Map([[EMBED, statusOf(EMBED)]]));
    expect([...view.slots]).toEqual([[PRIMARY, OPEN]]);
  });

  test('shows its own condition if the leader has not published one of that type', () => {
    const stalled = condition('Stalled', 'False', 'NotStalled');
    const { conditions } = follow(slotOf(PRIMARY), statusOf(PRIMARY, { conditions: [stalled] })).status;
    expect(conditions.map(({ type, reason }) => [type, reason])).toEqual([
      ['Ready', 'AtRest'],
      ['Stalled', 'NotStalled'],
    ]);
  });

  test.each<[Reason, string, string]>([
    ['CrashLoop', 'slot.stalled', 'Slot "primary" is stalled: It crashed'],
    ['InsufficientMemory', 'slot.insufficient_memory', 'Not enough memory for slot "primary": It crashed; free memory, or lower its needs'],
  ])('refuses requests that would wait in vain: %s is %s', (reason, code, message) => {
    const conditions = [condition('Stalled', 'True', reason, 'It crashed')];
    expect(follow(slotOf(PRIMARY), statusOf(PRIMARY, { conditions })).admission).toEqual({ kind: 'refuse', code, message });
  });

  test.each<[string, BoardSlot, Reason]>([
    ['admits requests if pods are ready', OPEN, 'CrashLoop'],
    ['lets requests wait for the last valid document', slotOf(PRIMARY), 'SpecInvalid'],
    ['lets requests wait for the text that comes back', slotOf(PRIMARY), 'RolledBack'],
    ['lets requests wait for the model before one that is held', slotOf(PRIMARY), 'EvaluationFailed'],
    [
      'keeps its own reason for a refusal',
      slotOf(PRIMARY, { admission: { kind: 'refuse', code: 'slot.disabled', message: 'Enable it' } }),
      'CrashLoop',
    ],
  ])('%s although the slot is stalled', (_what, slot, reason) => {
    const conditions = [condition('Stalled', 'True', reason)];
    expect(follow(slot, statusOf(PRIMARY, { conditions })).admission).toEqual(slot.admission);
  });

  test('finds a slot by the model that is being served, which only the leader may know', () => {
    const embed = slotOf(EMBED, {}, []);
    const view = followLeader(viewOf(OPEN, embed), new Map([[PRIMARY, statusOf(PRIMARY, { model: OLD })]]));
    expect(Object.fromEntries(view.names)).toEqual({
      primary: [PRIMARY],
      embed: [EMBED],
      new: [PRIMARY, EMBED],
      old: [PRIMARY],
      alias: [PRIMARY],
    });
    expect([view.version, view.at]).toEqual([7, 9]);
  });

  test('does not compute an explanation that is not requested', () => {
    let written = 0;
    const followed = follow({ ...slotOf(PRIMARY), explain: () => `${(written += 1)}` }, statusOf(PRIMARY));
    expect(written).toBe(0);
    expect(followed.explain(0)).toBe('1');
  });
});
