import { describe, expect, test } from '@jest/globals';
import { betterOutcome, findSurplus, outcomeOf, planUndo, settleOutcomes } from '../../../../src/schema/slot/decide/revisions.ts';
import { REVISION_OUTCOMES, type Revision, type RevisionOutcome } from '../../../../src/schema/slot/revision-store.ts';
import type { Condition } from '../../../../src/schema/status/slot-status.ts';

const revision = (number: number, model: string, outcome: RevisionOutcome = 'served', more: Partial<Revision> = {}): Revision => ({
  number,
  at: number,
  who: 'anna',
  outcome,
  document: { model: { default: model } },
  ...more,
});

describe('outcomeOf()', () => {
  const status = (
    upToDate: Condition['status'],
    ready: Condition['status'],
    observedGeneration = 3,
    reason: Condition['reason'] = 'SpecInForce',
  ) => {
    const shared = { message: '', lastTransitionAt: 0, observedGeneration };
    return {
      conditions: [
        { ...shared, type: 'UpToDate', status: upToDate, reason },
        { ...shared, type: 'Ready', status: ready, reason: 'ProbePassed' },
      ],
    } as const;
  };
  test.each([
    ['answers with the newest spec', status('True', 'True'), 'served'],
    ['rests with the newest spec', status('True', 'False'), 'at_rest'],
    ['answers with the spec before', status('False', 'True'), 'pending'],
    ['is not known', status('Unknown', 'Unknown'), 'pending'],
    ['is one of an earlier generation', status('True', 'True', 2), undefined],
    ['is one of a later generation that waits', status('False', 'True', 4, 'Paused'), undefined],
    ['has nothing that waits though rollouts are paused', status('True', 'True', 4), 'served'],
  ])('a slot that %s', (_, found, expected) => expect(outcomeOf(found, 3)).toBe(expected));

  test('is rolled back where its model failed the cases of the slot', () => {
    const found = status('False', 'True');
    const stalled = {
      type: 'Stalled',
      status: 'True',
      reason: 'RolledBack',
      message: '',
      lastTransitionAt: 0,
      observedGeneration: 3,
    } as const;
    expect(outcomeOf({ conditions: [...found.conditions, stalled] }, 3)).toBe('rolled_back');
    expect(outcomeOf({ conditions: [...found.conditions, stalled] }, 4)).toBeUndefined();
  });

  test('never makes an outcome worse, except that a model fails the cases of the slot', () => {
    const better = REVISION_OUTCOMES.map((before) => [
      before,
      REVISION_OUTCOMES.filter((after) => betterOutcome(before, after) === after && after !== before),
    ]);
    expect(Object.fromEntries(better)).toMatchObject({
      pending: ['served', 'at_rest', 'rolled_back'],
      at_rest: ['served', 'rolled_back'],
      served: ['rolled_back'],
      rolled_back: ['served', 'at_rest'],
    });
    expect(betterOutcome('served', undefined)).toBe('served');
  });
});

describe('settleOutcomes()', () => {
  test('sorts by number, whatever the times say, and closes what was replaced', () => {
    const settled = settleOutcomes([
      revision(4, 'a', 'served', { undoOf: 1, at: 1 }),
      revision(2, 'b', 'pending', { at: 9 }),
      revision(3, 'c', 'served'),
      revision(1, 'a', 'at_rest'),
      revision(7, 'd', 'pending'),
    ]);
    expect(settled.map(({ number, outcome }) => [number, outcome])).toEqual([
      [1, 'at_rest'],
      [2, 'never_ready'],
      [3, 'rolled_back'],
      [4, 'served'],
      [7, 'pending'],
    ]);
  });
});

test('settleOutcomes() joins revisions that say the same but for the number of replicas and a pause', () => {
  const document = { model: { default: 'a' } };
  const settled = settleOutcomes([
    revision(1, 'a', 'pending'),
    revision(2, 'a', 'served', { document: { ...document, replicas: 3 } }),
    revision(3, 'a', 'pending', { document: { ...document, rollout: {} } }),
    revision(4, 'b', 'pending'),
    revision(5, 'a', 'pending'),
  ]);
  expect(settled.map(({ number, outcome }) => [number, outcome])).toEqual([
    [1, 'served'],
    [4, 'never_ready'],
    [5, 'pending'],
  ]);
});

test('findSurplus() finds the oldest ones', () => {
  expect(findSurplus([3, 10, 9, 1], 2)).toEqual([3, 1]);
  expect(findSurplus([3], 2)).toEqual([]);
});

test('an undo brings back the cases that were added to a revision after it had served', () => {
  const judged = { rollout: { check: 'a.jsonl' } };
  const of = (number: number, model: string, more: object = {}) => ({
    ...revision(number, model),
    document: { model: { default: model }, ...more },
  });
  const settled = settleOutcomes([of(1, 'a'), of(2, 'a', judged), { ...of(3, 'b', judged), outcome: 'rolled_back' as const }]);
  expect(planUndo(settled, { model: { default: 'b' }, ...judged })).toMatchObject({
    kind: 'write',
    revision: { number: 1 },
    document: { model: { default: 'a' }, ...judged },
  });
});

describe('planUndo()', () => {
  const history = [revision(1, 'a'), revision(2, 'b', 'never_ready'), revision(3, 'c'), revision(5, 'd', 'pending')];
  const present = { model: { default: 'd' } };
  const kindAndNumber = (...args: Parameters<typeof planUndo>) => {
    const undo = planUndo(...args);
    return undo.kind === 'refused' ? undo.message : [undo.kind, undo.revision.number];
  };
  test.each<readonly [string, Parameters<typeof planUndo>, unknown]>([
    ['the last one that served', [history, present], ['write', 3]],
    ['not one that says the same', [history, { model: { default: 'c' } }], ['write', 1]],
    ['the one that is named, whatever became of it', [history, present, 2], ['write', 2]],
    ['nothing if it is in the text already', [history, present, 5], ['same', 5]],
    ['none that is not kept', [history, present, 4], 'Revision 4 is not kept: the revisions are 1, 2, 3, 5'],
    ['none where none is kept', [[], present], 'No earlier revision has served with another spec: no revision is kept'],
    [
      'none where none has served',
      [[revision(1, 'a', 'never_ready'), revision(2, 'd')], present],
      'No earlier revision has served with another spec: name one of the revisions 1, 2',
    ],
    [
      'further back after an undo',
      [
        settleOutcomes([revision(1, 'a'), revision(2, 'b'), revision(3, 'c'), revision(4, 'b', 'served', { undoOf: 2 })]),
        { model: { default: 'b' } },
      ],
      ['write', 1],
    ],
  ])('%s', (_, args, expected) => expect(kindAndNumber(...args)).toEqual(expected));

  test('leaves the last restart, the pause and the number of replicas as they are', () => {
    const before = revision(1, 'a', 'served', {
      document: { model: { default: 'a' }, restartedAt: '2026-01-01T00:00:00Z', replicas: 1, rollout: { paused: true } },
    });
    const now = { model: { default: 'b' }, restartedAt: '2026-02-02T00:00:00Z', replicas: 3 };
    expect(planUndo([before, revision(2, 'b')], now)).toMatchObject({
      kind: 'write',
      document: { model: { default: 'a' }, restartedAt: '2026-02-02T00:00:00Z', replicas: 3 },
    });
    expect(planUndo([before, revision(2, 'b')], now)).not.toHaveProperty('document.rollout');
    // A restart alone is nothing to undo.
    expect(planUndo([before, revision(2, 'a')], { ...now, model: { default: 'a' } }, 1).kind).toBe('same');
  });
});
