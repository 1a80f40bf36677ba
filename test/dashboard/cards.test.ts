/** Pure functions behind cards and rows. */
import { expect, test } from '@jest/globals';
import { cardsInView, drawPauseMs } from '../../dashboard/src/decide/pace.ts';
import { fitOf, neededBytes } from '../../dashboard/src/decide/model-facts.ts';
import { actionsOf, describePod, isNotable, toneOf } from '../../dashboard/src/decide/slot-facts.ts';
import type { Slot } from '../../dashboard/src/types.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { AT_REST_REASONS } from '../../src/schema/status/slot-reasons.ts';

test.each([
  [0, 0],
  [1, 0],
  [8, 0],
  [9, 100],
  [5000, 100],
])('after a drawing of %d events, the next one waits %d ms', (events, pause) => {
  expect(drawPauseMs(events)).toBe(pause);
});

test.each([
  [1280, 900, 9],
  [360, 740, 2],
  [200, 100, 1],
  [3840, 1600, 50],
  [0, 0, 1],
])('a window of %d × %d pixels shows at most %d cards', (width, height, cards) => {
  expect(cardsInView({ width, height })).toBe(cards);
});

function slot(state: Slot['status']['state'], reason: string, spec: Slot['spec'] = {}): Slot {
  return {
    name: SlotName.parse('primary'),
    spec,
    generation: 1,
    resource_version: 'a',
    status: {
      state,
      conditions: [{ type: 'Ready', status: 'False', reason, message: '', last_transition_at: null, observed_generation: 1 }],
      observed_generation: 1,
      provider: 'gguf',
      backend: 'cpu',
      model: 'demo-fox',
      wanted_model: 'demo-fox',
      capabilities: [],
      endpoint: null,
      memory_bytes: null,
      restarts: 0,
      replicas: null,
      since: null,
      progress: null,
      rollout: null,
      problems: [],
    },
  };
}

test.each(Object.keys(AT_REST_REASONS).filter((reason) => reason !== 'Disabled'))(
  'a resting slot (%s) can be loaded or disabled, but not unloaded or restarted',
  (reason) => {
    expect(actionsOf(slot('offline', reason))).toEqual({ change: 'load', other: 'disable' });
    // Still being unloaded.
    expect(actionsOf(slot('unloading', reason))).toEqual({ change: 'unload', other: 'restart' });
  },
);

test('a disabled slot can be loaded; a running, pending or failed one can be unloaded and restarted', () => {
  expect(actionsOf(slot('offline', 'Disabled', { enabled: false }))).toEqual({ change: 'load', other: undefined });
  for (const [state, reason] of [
    ['serving', 'ProbePassed'],
    ['warming', 'Warming'],
    ['offline', 'CrashLoop'],
    ['offline', 'NotEnoughMemory'],
  ] as const)
    expect(actionsOf(slot(state, reason))).toEqual({ change: 'unload', other: 'restart' });
});

test.each([
  ['Ready', 'True', false],
  ['Ready', 'False', true],
  ['Stalled', 'False', false],
  ['DriftDetected', 'Unknown', true],
  ['Reconciling', 'False', false],
  ['Reconciling', 'True', true],
] as const)('the condition %s=%s is shown: %s', (type, status, shown) => {
  expect(isNotable({ type, status })).toBe(shown);
});

test.each([
  [null, null, undefined, null],
  [5, 3, undefined, 5],
  [null, 3, undefined, 3],
  [null, null, 7, 7],
  [5, 3, 7, 7],
])('a model with %p bytes in the list, at least %p, and %p computed needs %p', (memory, least, computed, needed) => {
  expect(neededBytes({ memory_bytes: memory, min_memory_bytes: least }, computed)).toBe(needed);
});

test('the memory of a model is compared with the memory of the machine', () => {
  expect(fitOf(null, 1, 2)).toBe('unknown');
  expect(fitOf(3, 1, 2)).toBe('too-large');
  expect(fitOf(2, 1, 2)).toBe('tight');
  expect(fitOf(1, 1, 2)).toBe('fits');
});

test.each([
  ['Ready', 'True', 'good'],
  ['Ready', 'False', 'bad'],
  ['UpToDate', 'False', 'bad'],
  ['SpecValid', 'True', 'good'],
  ['Stalled', 'True', 'bad'],
  ['Stalled', 'False', 'good'],
  ['DriftDetected', 'True', 'bad'],
  ['Reconciling', 'True', ''],
  ['Ready', 'Unknown', ''],
] as const)('the condition "%s" with status "%s" is shown as "%s"', (type, status, tone) => {
  expect(toneOf({ type, status })).toBe(tone);
});

const POD = {
  name: 'p',
  slot: null,
  phase: 'Running',
  ready: false,
  terminating: false,
  restarts: 0,
  node: null,
  created_at: null,
  reason: null,
  message: '',
} as const;

test.each([
  [{ ready: true }, 'Ready', 'good'],
  [{ terminating: true, reason: 'Crashed' }, 'Terminating', ''],
  [{ reason: 'Crashed' }, 'Crashed', 'bad'],
  [{ phase: 'Pending' }, 'Pending', ''],
  [{ phase: 'Failed' }, 'Failed', 'bad'],
] as const)('a pod with %j is "%s"', (facts, word, tone) => {
  expect(describePod({ ...POD, ...facts })).toEqual({ word, tone });
});
