import { expect, test } from '@jest/globals';
import { judgeActivity, type ActivityVerdict } from '../../../src/gateway/traffic/activity-watch.ts';
import { SLOT_STATES, type SlotState } from '../../../src/schema/status/slot-status.ts';

test.each<readonly [SlotState | undefined, number, boolean, ActivityVerdict]>([
  ['serving', 1, true, 'shown'],
  ['serving', 7, false, 'shown'],
  // Between two short requests.
  ['serving', 0, true, 'wait'],
  ['serving', 0, false, 'news'],
  ['idle', 0, true, 'shown'],
  ['idle', 0, false, 'shown'],
  ['idle', 1, true, 'news'],
  ['idle', 1, false, 'news'],
  // A slot that was used is not "ready" any more.
  ['ready', 0, true, 'news'],
  ['ready', 1, true, 'news'],
  [undefined, 0, true, 'news'],
  [undefined, 1, true, 'news'],
])('judgeActivity(): state %p, %p in flight, changed: %p', (state, inFlight, hasChanged, verdict) => {
  expect(judgeActivity({ state, inFlight, hasChanged })).toBe(verdict);
});

test('no other state shows activity', () => {
  for (const state of SLOT_STATES.filter((one) => one !== 'serving' && one !== 'idle')) {
    for (const inFlight of [0, 1]) expect(judgeActivity({ state, inFlight, hasChanged: true })).toBe('news');
  }
});
