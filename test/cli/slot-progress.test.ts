import { describe, expect, test } from '@jest/globals';
import type { SlotAnswer } from '../../src/cli/connect/api-answers.ts';
import { noticeOf } from '../../src/cli/output/slot-progress.ts';

type Condition = SlotAnswer['status']['conditions'][number];
const condition = (type: string, status: Condition['status'], message: string): Condition => ({ type, status, reason: 'Reason', message });
const AT_REST = [condition('Ready', 'True', 'It answers'), condition('Reconciling', 'False', 'There is nothing to do')];
const SHORT = '1 of 2 replicas answer';

describe('noticeOf()', () => {
  test.each<[string, readonly Condition[], string]>([
    ['is empty if the slot is ready and nothing is in progress', AT_REST, ''],
    ['is empty if nothing is known', [], ''],
    ['says why the slot is not ready', [condition('Ready', 'False', 'It has just been started')], 'It has just been started'],
    [
      'says what is in progress while the slot answers',
      [condition('Ready', 'True', SHORT), condition('Reconciling', 'True', SHORT)],
      SHORT,
    ],
    ['says what is stalled while the slot answers', [...AT_REST, condition('Stalled', 'True', 'img.toml:3:1: …')], 'img.toml:3:1: …'],
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
