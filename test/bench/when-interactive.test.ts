import { expect, test } from '@jest/globals';
import { whenInteractive } from '../../bench/decide/when-interactive.ts';

const task = (startMs: number, durationMs: number) => ({ startMs, durationMs });

test.each([
  ['nothing takes long', 400, [], 400],
  ['a task was over before the controls were there', 400, [task(100, 200)], 400],
  ['a task runs while they are drawn', 400, [task(390, 100)], 490],
  ['tasks follow one another', 400, [task(450, 300), task(800, 100), task(1700, 60)], 1760],
  ['a second without a long task ends it', 400, [task(450, 50), task(1500, 400)], 500],
])('a page can be used when %s', (_case, shownMs, tasks, expected) => {
  expect(whenInteractive(shownMs, tasks)).toBe(expected);
});
