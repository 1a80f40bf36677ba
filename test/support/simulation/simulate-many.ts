/**
 * Runs many seeds in a row, and returns one line for each that failed: the corpus first, then the same seeds each time, then fresh ones, drawn anew in each
 * run. `SVC_SEED` replays one world, `SVC_SEEDS` and `SVC_FRESH_SEEDS` run other numbers of the same and of fresh ones.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { simulate } from './simulate.ts';

/** For each of the two test files, which run in parallel. */
const SEEDS = 1200;
const FRESH_SEEDS = 300;
/** Fresh seeds are larger than all that are the same each time. */
const FRESH_FROM = 1_000_000;
const FRESH_TO = 2 ** 32 - 2_000_000;
/** A broken planner fails in many worlds; the first few are enough to find the cause. */
const ENOUGH = 5;

const CORPUS = fileURLToPath(new URL('../../simulation/seeds.txt', import.meta.url));

export async function simulateMany(half: 0 | 1): Promise<readonly string[]> {
  const only = process.env['SVC_SEED'];
  if (only !== undefined) return Number(only) % 2 === half ? await replay([Number(only)]) : [];
  const corpus = parseSeeds(readFileSync(CORPUS, 'utf8')).filter((seed) => seed % 2 === half);
  const known = await replay([...corpus, ...from(half, numberOf('SVC_SEEDS', SEEDS))]);
  const first = 2 * Math.floor(randomInt(FRESH_FROM, FRESH_TO) / 2) + half;
  const fresh = from(first, numberOf('SVC_FRESH_SEEDS', FRESH_SEEDS));
  process.stdout.write(`Fresh worlds: ${fresh.length}, SVC_SEED=${first} and every second one after it\n`);
  return [...known, ...(await replay(fresh, join))];
}

/** The numbers in a text with one on each line; what follows `#` explains it. */
export function parseSeeds(text: string): readonly number[] {
  const lines = text.split('\n').map((line) => line.replace(/#.*/, '').trim());
  return lines.filter((line) => line !== '').map(parseSeed);
}

function parseSeed(text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`Correct "seeds.txt": "${text}" is no seed`);
  return Number(text);
}

function from(first: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => first + 2 * index);
}

function numberOf(variable: string, otherwise: number): number {
  return Number(process.env[variable] ?? otherwise);
}

/** What failed once is run each time from then on. */
function join(seed: number, error: string): void {
  appendFileSync(CORPUS, `${seed} # ${error.split('\n')[0]?.slice(0, 150) ?? ''}\n`);
}

async function replay(seeds: readonly number[], onFailed?: (seed: number, error: string) => void): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const seed of seeds) {
    if (failed.length === ENOUGH) break;
    await simulate(seed).catch((error: unknown) => {
      failed.push(`SVC_SEED=${seed} npm test -- test/simulation: ${String(error)}`);
      onFailed?.(seed, String(error));
    });
  }
  return failed;
}
