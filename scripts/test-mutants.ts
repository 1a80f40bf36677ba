/**
 * Puts random faults into the sources of the reconciler, and counts how many of them the simulation or the tests in `test/reconciler` notice.
 *
 *     npm run test:long -- mutants [--seed 1] [--count 30] [--minutes 4] [--under src/reconciler/decide/rules/assign-roles.ts]
 *
 * A fault that nobody notices is either harmless or shows where a test is missing: the last lines of the table say where to look.
 */
import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Mutant } from '../test/support/mutants/mutant.ts';
import { listRandomMutants } from '../test/support/mutants/random-mutants.ts';
import { runMutants, type TriedMutant } from '../test/support/mutants/run-mutants.ts';
import { createRandom } from '../test/support/simulation/seeded-random.ts';

type Verdict = 'simulation' | 'tests' | 'nobody' | 'no time';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Most faults show within a few worlds; the tests get those that do not. */
const WORLDS = 60;
/** A mutant that takes longer runs for ever. */
const MUTANT_MS = 60_000;

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '30' },
    minutes: { type: 'string', default: '4' },
    under: { type: 'string', default: 'src/reconciler/decide' },
  },
});

async function main(): Promise<void> {
  const mutants = await chooseMutants(values.under, Number(values.seed), Number(values.count));
  const verdicts = new Map<Mutant, Verdict>(mutants.map((mutant) => [mutant, 'no time']));
  const end = AbortSignal.timeout(Number(values.minutes) * 60_000);
  const show = ({ fault, violation }: TriedMutant): void => console.log(violation === undefined ? `… ${fault}` : `ok ${fault}`);
  // One after the other to its verdict, so that what there is no time for is no selection.
  for (const mutant of mutants) {
    const [tried] = await runMutants([mutant], { worlds: WORLDS, mutantMs: MUTANT_MS, onTried: show, signal: end });
    if (tried === undefined || end.aborted) break;
    verdicts.set(mutant, tried.violation === undefined ? await failsTests(mutant, end) : 'simulation');
  }
  console.log(tableOf(verdicts));
}

/** The same seed and the same sources give the same mutants. */
async function chooseMutants(under: string, seed: number, count: number): Promise<readonly Mutant[]> {
  const files = under.endsWith('.ts') ? [under] : await listSources(under);
  const all: Mutant[] = [];
  for (const file of files.sort()) all.push(...listRandomMutants(file, await readFile(`${ROOT}${file}`, 'utf8')));
  const random = createRandom(seed);
  const chosen: Mutant[] = [];
  while (chosen.length < count && all.length > 0) chosen.push(...all.splice(random.int(0, all.length - 1), 1));
  return chosen;
}

async function listSources(folder: string): Promise<string[]> {
  const entries = await readdir(`${ROOT}${folder}`, { recursive: true });
  return entries.filter((entry) => entry.endsWith('.ts')).map((entry) => `${folder}/${entry}`);
}

/** `strip-types.cjs` puts the mutant into what jest reads. */
async function failsTests(mutant: Mutant, signal: AbortSignal): Promise<Verdict> {
  const child = spawn('bash', ['scripts/run-jest.sh', 'test/reconciler', '--bail', '--silent'], {
    cwd: ROOT,
    env: { ...process.env, SVC_TEST_MUTANT: JSON.stringify(mutant) },
    stdio: 'ignore',
    detached: true,
  });
  const kill = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  signal.addEventListener('abort', kill, { once: true });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  signal.removeEventListener('abort', kill);
  return signal.aborted ? 'no time' : code === 0 ? 'nobody' : 'tests';
}

function tableOf(verdicts: ReadonlyMap<Mutant, Verdict>): string {
  const count = (mutants: readonly Mutant[], verdict: Verdict): number => mutants.filter((each) => verdicts.get(each) === verdict).length;
  const row = (name: string, mutants: readonly Mutant[]): string => {
    const [simulation, tests, nobody] = [count(mutants, 'simulation'), count(mutants, 'tests'), count(mutants, 'nobody')];
    return [name.padEnd(58), mutants.length, simulation, tests, nobody, count(mutants, 'no time')]
      .map((cell) => String(cell).padStart(9))
      .join(' ');
  };
  const files = Map.groupBy(verdicts.keys(), ({ file }) => file);
  const tried = [...verdicts.keys()].filter((each) => verdicts.get(each) !== 'no time');
  const noticed = tried.length - count(tried, 'nobody');
  const share = tried.length === 0 ? '' : ` (${Math.round((100 * noticed) / tried.length)} %)`;
  return [
    ['file'.padEnd(58), 'faults', 'simulated', 'tested', 'unnoticed', 'no time'].map((cell) => cell.padStart(9)).join(' '),
    ...[...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([file, mutants]) => row(file, mutants)),
    `Noticed: ${noticed} of ${tried.length}${share}`,
    ...[...verdicts].filter(([, verdict]) => verdict === 'nobody').map(([{ fault }]) => `Nobody noticed ${fault}`),
  ].join('\n');
}

await main();
