/** Runs many seeds in a row, and returns one line for each that failed. */
import { simulate } from './simulate.ts';

/** For each of the two test files, which run in parallel. `npm run test:long -- simulation` runs 3,500. */
const SEEDS = 1500;
/** A broken planner fails in many worlds; the first few are enough to find the cause. */
const ENOUGH = 5;

/** `SVC_SEED` replays one world, `SVC_SEEDS` runs another number of them. */
export async function simulateMany(half: 0 | 1): Promise<readonly string[]> {
  const only = process.env['SVC_SEED'];
  if (only !== undefined) return Number(only) % 2 === half ? await replay(Number(only)) : [];
  const count = Number(process.env['SVC_SEEDS'] ?? SEEDS);
  const failed: string[] = [];
  for (let index = 0; index < count && failed.length < ENOUGH; index += 1) failed.push(...(await replay(2 * index + half)));
  return failed;
}

async function replay(seed: number): Promise<readonly string[]> {
  try {
    await simulate(seed);
    return [];
  } catch (error) {
    return [`SVC_SEED=${seed} npm test -- test/simulation: ${String(error)}`];
  }
}
