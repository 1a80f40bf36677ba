import { describe, expect, test } from '@jest/globals';
import type { SlotShape } from '../../src/cli/connect/api-shapes.ts';
import { noticeOf } from '../../src/cli/output/slot-progress.ts';

type Condition = SlotShape['status']['conditions'][number];
const condition = (type: string, status: Condition['status'], message: string): Condition => ({ type, status, reason: 'Reason', message });
const AT_REST = [condition('Ready', 'True', 'The slot answers'), condition('Reconciling', 'False', 'No action required')];
const SHORT = '1 of 2 replicas answer';

describe('what a person should read of a slot', () => {
  test.each<[string, readonly Condition[], string]>([
    ['nothing where it is ready and nothing is under way', AT_REST, ''],
    ['nothing where nothing is known', [], ''],
    ['why it is not ready', [condition('Ready', 'False', 'The workload has just been started')], 'The workload has just been started'],
    ['what is under way while it answers', [condition('Ready', 'True', SHORT), condition('Reconciling', 'True', SHORT)], SHORT],
    ['what needs a person while it answers', [...AT_REST, condition('Stalled', 'True', 'img.toml:3:1: …')], 'img.toml:3:1: …'],
  ])('%s', (_name, conditions, notice) => {
    expect(
      noticeOf({
        name: 'img',
        generation: 1,
        status: { state: 'ready', conditions: [...conditions], observed_generation: 1, restarts: 0 },
      }),
    ).toBe(notice);
  });
});
