import { expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MEASURE = fileURLToPath(new URL('support/measure-ticks.ts', import.meta.url));

test('calls of process.nextTick cost the same after garbage was collected while there were none', () => {
  const times: unknown = JSON.parse(execFileSync(process.execPath, ['--expose-gc', MEASURE]).toString());
  const [before, after] = Array.isArray(times) ? times.map(Number) : [];
  // Five to six times as much without it.
  expect(after).toBeLessThan(3 * (before ?? 0));
});
