/**
 * Puts the faults of `test/mutants/faults.json` into a copy of the tree, one after the other, and runs the tests that should notice each of them.
 *
 *     npm run test:mutants -- [--only TEXT] [--first 0] [--count 1000] [--minutes 90] [--check] [--list FILE]
 *     npm run test:mutants -- --draw 30 [--try] [--seed 1] [--under src/reconciler/decide]
 *
 * Prints the share that was noticed in `decide/` and in the code around it, and the survivors by name. A fault whose text is not in its file exactly once, or whose
 * suites fail without it, is an error: it would prove nothing. `--check` only looks for such texts, also in the mutants of the simulation. `--draw` prints new random faults, or tries them.
 */
import { readFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { messageOf } from '../src/platform/error-text.ts';
import { drawFaults } from '../test/support/mutants/draw-faults.ts';
import { PROGRAM_MUTANTS } from '../test/simulation/all-program-mutants.ts';
import { applyMutant, type Mutant } from '../test/support/mutants/mutant.ts';
import { tryFaults, type Fault, type Verdict } from '../test/support/mutants/try-faults.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    minutes: { type: 'string', default: '90' },
    first: { type: 'string', default: '0' },
    count: { type: 'string', default: '1000' },
    check: { type: 'boolean', default: false },
    list: { type: 'string', default: 'test/mutants/faults.json' },
    draw: { type: 'string' },
    try: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
    under: { type: 'string', default: 'src' },
  },
});

async function main(): Promise<void> {
  const faults = values.draw === undefined ? await chooseFaults() : await drawFaults(ROOT, { ...values, count: Number(values.draw) });
  if (values.draw !== undefined && !values.try) return console.log(JSON.stringify(faults, undefined, 2));
  if (values.check || process.exitCode !== undefined) return;
  const endAt = Date.now() + Number(values.minutes) * 60_000;
  const verdicts = await tryFaults(ROOT, faults, {
    endAt,
    onTried: ({ file, fault }, verdict) => console.log(`${verdict}: ${file}: ${fault}`),
  });
  console.log(summaryOf(faults, verdicts));
  if ([...verdicts.values()].includes('suites fail without it')) process.exitCode = 1;
}

/** Checks all of the list, and returns the selected ones. */
async function chooseFaults(): Promise<readonly Fault[]> {
  const all: readonly Fault[] = JSON.parse(await readFile(resolve(ROOT, values.list), 'utf8'));
  const stale = await findStale(all);
  for (const problem of stale) console.error(problem);
  if (stale.length > 0) process.exitCode = 1;
  const first = Number(values.first);
  return all.filter(({ fault, file }) => `${file} ${fault}`.includes(values.only)).slice(first, first + Number(values.count));
}

async function findStale(faults: readonly Fault[]): Promise<readonly string[]> {
  const missing = faults.flatMap(({ fault, suites }) =>
    suites.filter((suite) => !existsSync(join(ROOT, suite))).map((suite) => `Correct the fault "${fault}": there is no "${suite}"`),
  );
  const problems = await Promise.all([...faults, ...PROGRAM_MUTANTS].map(problemOf));
  return [...missing, ...problems.filter((problem) => problem !== undefined)];
}

/** Returns what is wrong with a text that does not fit its file any more, or whose replacement is no TypeScript. */
async function problemOf(mutant: Pick<Mutant, 'fault' | 'file' | 'find' | 'replace'>): Promise<string | undefined> {
  try {
    stripTypeScriptTypes(applyMutant(await readFile(join(ROOT, mutant.file), 'utf8'), mutant));
    return undefined;
  } catch (error) {
    return `${messageOf(error)} (${mutant.fault})`;
  }
}

function summaryOf(faults: readonly Fault[], verdicts: ReadonlyMap<Fault, Verdict>): string {
  const isNoticed = (verdict: Verdict | undefined): boolean => verdict?.startsWith('noticed') === true;
  const shareOf = (name: string, belongs: (fault: Fault) => boolean): string => {
    const own = faults.filter(belongs).map((each) => verdicts.get(each));
    const noticed = own.filter(isNoticed).length;
    const tried = noticed + own.filter((each) => each === 'survived').length;
    const share = tried === 0 ? '' : ` (${Math.round((100 * noticed) / tried)} %)`;
    return `${name}: noticed ${noticed} of ${tried}${share}; ${own.length - tried} not tried`;
  };
  const isPure = ({ file }: Fault): boolean => file.includes('/decide/');
  const named = (verdict: Verdict, text: string): readonly string[] =>
    faults.filter((each) => verdicts.get(each) === verdict).map(({ file, fault }) => `${text} ${file}: ${fault}`);
  return [
    shareOf('decide/', isPure),
    shareOf('code around it', (fault) => !isPure(fault)),
    ...named('survived', 'Survived:'),
    ...named('suites fail without it', 'Correct the suites of'),
  ].join('\n');
}

await main();
