import { describe, expect, test } from '@jest/globals';
import type { SlotAnswer } from '../../src/cli/connect/api-answers.ts';
import { noticeOf, progressOf, pullStep, pullText } from '../../src/cli/output/slot-progress.ts';

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

describe('the progress of a download', () => {
  const pulling = (done: number, speed: number | null): SlotAnswer => ({
    name: 'img',
    generation: 1,
    status: {
      state: 'pulling',
      conditions: [condition('Ready', 'False', 'Model "m" is not present')],
      observed_generation: 1,
      restarts: 0,
      progress: { what: 'm.gguf', done_bytes: done, total_bytes: 100 * 2 ** 20, bytes_per_second: speed, seconds_left: 5 },
    },
  });

  test('is what a list of slots says of it', () => {
    expect(pullText(pulling(43 * 2 ** 20, 8 * 2 ** 20))).toBe('Pulling m.gguf, 43.0 MiB of 100 MiB (43 %), 8.0 MiB/s, 5s left');
    expect(pullText({ ...pulling(0, 0), status: { ...pulling(0, 0).status, progress: null } })).toBeUndefined();
  });

  test('counts as changed at every twentieth, and not when only the speed does', () => {
    expect(pullStep(pulling(43 * 2 ** 20, 1))).toBe(pullStep(pulling(44 * 2 ** 20, 9)));
    expect(pullStep(pulling(44 * 2 ** 20, 1))).not.toBe(pullStep(pulling(45 * 2 ** 20, 1)));
  });

  test('is a new line of a pipe at every twentieth, for verbs that wait', () => {
    const step = (done: number): string => progressOf(pulling(done * 2 ** 20, 1)).step;
    expect(step(43)).toBe(step(44));
    expect(new Set([1, 6, 11, 96].map(step)).size).toBe(4);
  });
});
