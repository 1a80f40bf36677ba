/** Many seeds in a row, and one line for each that went foul. */
import { simulate } from './simulate.ts';

/** Of each of the two test files, which run side by side. */
const SEEDS = 5000;
/** A planner that is broken is broken in many worlds; the first few tell enough. */
const ENOUGH = 5;

/** `SVC_SEED` replays one world, `SVC_SEEDS` runs another number of them. */
export async function simulateMany(half: 0 | 1): Promise<readonly string[]> {
  const only = process.env['SVC_SEED'];
  if (only !== undefined) return Number(only) % 2 === half ? await replay(Number(only)) : [];
  const count = Number(process.env['SVC_SEEDS'] ?? SEEDS);
  const foul: string[] = [];
  for (let index = 0; index < count && foul.length < ENOUGH; index += 1) foul.push(...(await replay(2 * index + half)));
  return foul;
}

async function replay(seed: number): Promise<readonly string[]> {
  try {
    await simulate(seed);
    return [];
  } catch (error) {
    return [`SVC_SEED=${seed} npm test -- test/simulation: ${String(error)}`];
  }
}
