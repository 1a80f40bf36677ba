import { describe, expect, test } from '@jest/globals';
import { hasResumed, resumeTimes, type EarlierStatus } from '../../../../src/reconciler/decide/outcome/resume-times.ts';
import type { Condition } from '../../../../src/schema/status/slot-status.ts';

const NOW = 5000;
const condition = (type: Condition['type'], status: Condition['status'], at = NOW): Condition => ({
  type,
  status,
  reason: 'ProbePassed',
  message: '',
  lastTransitionAt: at,
  observedGeneration: 1,
});
const EARLIER: EarlierStatus = {
  state: 'ready',
  since: 1000,
  conditions: [condition('Ready', 'True', 2000), condition('Stalled', 'False', 3000)],
};

describe('resumeTimes()', () => {
  test.each([
    ['nothing is known', undefined, 'ready', 'True', { since: NOW, at: [NOW, NOW] }],
    ['all is as it was', EARLIER, 'ready', 'True', { since: 1000, at: [2000, 3000] }],
    ['it is not probed yet', EARLIER, 'warming', 'False', { since: NOW, at: [NOW, 3000] }],
    ['its state is another one, and it is as ready', EARLIER, 'idle', 'True', { since: NOW, at: [2000, 3000] }],
    [
      'the clock was set back since',
      { ...EARLIER, since: 9000, conditions: [condition('Ready', 'True', 9000)] },
      'ready',
      'True',
      { since: NOW, at: [NOW, NOW] },
    ],
  ] as const)('when %s', (_when, earlier, state, ready, expected) => {
    const present = { state, since: NOW, conditions: [condition('Ready', ready), condition('Stalled', 'False')] };
    const { since, conditions } = resumeTimes(present, { earlier, before: undefined }, NOW);
    expect({ since, at: conditions.map(({ lastTransitionAt }) => lastTransitionAt) }).toEqual(expected);
  });

  test('changes no time of what did not change since the last pass, wherever the clock is set', () => {
    const before = { decision: { state: 'ready' }, conditions: [condition('Ready', 'True', 40)] } as const;
    const present = { state: 'ready', since: 30, conditions: before.conditions } as const;
    expect(resumeTimes(present, { earlier: EARLIER, before }, NOW)).toEqual({ since: 30, conditions: before.conditions });
  });

  test('is over as soon as the slot is as ready as it was', () => {
    expect(hasResumed([condition('Ready', 'False')], EARLIER)).toBe(false);
    expect(hasResumed([condition('Ready', 'True')], EARLIER)).toBe(true);
    expect(hasResumed([condition('Ready', 'Unknown')], { ...EARLIER, conditions: [condition('Ready', 'Unknown')] })).toBe(true);
  });
});
