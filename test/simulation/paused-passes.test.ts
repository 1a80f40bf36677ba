import { expect, test } from '@jest/globals';
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import { simulate } from '../support/simulation/simulate.ts';

/** `SVC_SEEDS` runs another number of worlds. */
const SEEDS = Number(process.env['SVC_SEEDS'] ?? 500);

test('passes that pause between their parts lose no request and end where others do', async () => {
  const found: string[] = [];
  for (let seed = 0; seed < SEEDS && found.length < 5; seed += 1) {
    await simulate(seed, { plan, inspect }, { pauses: true }).catch((error: unknown) => found.push(`seed ${seed}: ${String(error)}`));
  }
  expect(found).toEqual([]);
}, 300_000);
