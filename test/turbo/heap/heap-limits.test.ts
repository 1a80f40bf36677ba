import { expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MEASURE = fileURLToPath(new URL('support/measure-ticks.ts', import.meta.url));
const COUNT = fileURLToPath(new URL('support/count-collections.ts', import.meta.url));

test('calls of process.nextTick cost the same after garbage was collected while there were none', () => {
  const times: unknown = JSON.parse(execFileSync(process.execPath, ['--expose-gc', MEASURE]).toString());
  const [before, after] = Array.isArray(times) ? times.map(Number) : [];
  // Five to six times as much without it.
  expect(after).toBeLessThan(3 * (before ?? 0));
});

test('requests after a quiet time do not begin with a collection of everything', () => {
  const count = (what: string): number => Number(execFileSync(process.execPath, [COUNT, what]));
  expect(count('traffic')).toBe(0);
  // V8 does so by itself; otherwise the line above proves nothing.
  expect(count('no traffic')).toBeGreaterThan(0);
});
