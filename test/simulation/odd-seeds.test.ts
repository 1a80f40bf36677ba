import { expect, test } from '@jest/globals';
import { simulateMany } from '../support/simulation/simulate-many.ts';

test(
  'the loop keeps all rules in thousands of worlds with odd seeds',
  async () => {
    expect(await simulateMany(1)).toEqual([]);
  },
  900_000 * Math.max(1, Number(process.env['SVC_TEST_SCALE'] ?? 1)),
);
