import { describe, expect, test } from '@jest/globals';
import { simulate } from '../support/simulate.ts';

/** One seed replays one world: `SVC_SEED=123 npx jest test/simulation/seeds.test.ts`. */
const only = process.env['SVC_SEED'];
const first = only === undefined ? 1 : Number(only);
const count = only === undefined ? Number(process.env['SVC_SEEDS'] ?? 500) : 1;

describe('the simulation', () => {
  test('keeps its promises in every world', async () => {
    const foul: string[] = [];
    for (let seed = first; seed < first + count; seed += 1) {
      await simulate(seed).catch((error: unknown) => void foul.push(`SVC_SEED=${seed} npx jest test/simulation: ${String(error)}`));
      if (foul.length >= 10) break;
    }
    expect(foul).toEqual([]);
  }, 600_000);
});
