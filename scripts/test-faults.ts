/**
 * Puts the faults of `test/mutants/faults.json` into a copy of the tree, one after the other, and runs the suites that should notice each of them.
 *
 *     npm run test:mutants -- [--only TEXT] [--first 0] [--count 1000] [--minutes 60] [--check]
 *
 * Prints the share that was noticed in `decide/` and in the code around it, and the survivors by name. A fault whose text is not in its file exactly once, or whose
 * suites fail without it, is an error: it would prove nothing. `--check` only looks for such texts. `--draw N` prints N new faults instead.
 */
import { execFileSync, spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { applyMutant, type Mutant } from '../test/support/mutants/mutant.ts';
import { listRandomMutants } from '../test/support/mutants/random-mutants.ts';
import { createRandom } from '../test/support/simulation/seeded-random.ts';

interface Fault extends Mutant {
  /** Paths for jest. */
  readonly suites: readonly string[];
}

type Verdict = 'noticed' | 'survived' | 'suites fail without it';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LIST = 'test/mutants/faults.json';
/** A fault that makes a suite run for longer makes it run for ever. */
const SUITES_MS = 240_000;
/** Enough for a fault that shows in the simulation at all. */
const WORLDS = '150';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    minutes: { type: 'string', default: '60' },
    first: { type: 'string', default: '0' },
    count: { type: 'string', default: '1000' },
    check: { type: 'boolean', default: false },
    draw: { type: 'string' },
    seed: { type: 'string', default: '1' },
    under: { type: 'string', default: 'src' },
  },
});

async function main(): Promise<void> {
  if (values.draw !== undefined) return console.log(JSON.stringify(await drawFaults(Number(values.draw)), undefined, 2));
  const all: readonly Fault[] = JSON.parse(await readFile(join(ROOT, LIST), 'utf8'));
  const stale = await findStale(all);
  for (const problem of stale) console.error(problem);
  if (stale.length > 0) process.exitCode = 1;
  if (values.check || stale.length > 0) return;
  const first = Number(values.first);
  const faults = all.filter(({ fault, file }) => `${file} ${fault}`.includes(values.only)).slice(first, first + Number(values.count));
  const verdicts = await tryFaults(faults, Date.now() + Number(values.minutes) * 60_000);
  console.log(summaryOf(faults, verdicts));
  if ([...verdicts.values()].includes('suites fail without it')) process.exitCode = 1;
}

async function findStale(faults: readonly Fault[]): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const each of faults) {
    const missing = each.suites.find((suite) => !existsSync(join(ROOT, suite)));
    if (missing !== undefined) problems.push(`Correct the fault "${each.fault}": there is no "${missing}"`);
    try {
      applyMutant(await readFile(join(ROOT, each.file), 'utf8'), each);
    } catch (error) {
      problems.push(`${error instanceof Error ? error.message : String(error)} (${each.fault})`);
    }
  }
  return problems;
}

/** One copy for all of them: jest keeps what it has compiled. */
async function tryFaults(faults: readonly Fault[], endAt: number): Promise<ReadonlyMap<Fault, Verdict>> {
  const verdicts = new Map<Fault, Verdict>();
  const sound = new Map<string, boolean>();
  const copy = await copyTree();
  try {
    for (const each of faults) {
      if (Date.now() > endAt) break;
      const key = each.suites.join(' ');
      if (!sound.has(key)) sound.set(key, await passes(copy, each.suites));
      const verdict = sound.get(key) === true ? await tryFault(copy, each) : 'suites fail without it';
      verdicts.set(each, verdict);
      console.log(`${verdict.padEnd(9)} ${each.file}: ${each.fault}`);
    }
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
  return verdicts;
}

async function tryFault(copy: string, fault: Fault): Promise<Verdict> {
  const path = join(copy, fault.file);
  const source = await readFile(path, 'utf8');
  await writeFile(path, applyMutant(source, fault));
  try {
    return (await passes(copy, fault.suites)) ? 'survived' : 'noticed';
  } finally {
    await writeFile(path, source);
  }
}

async function copyTree(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'svc-faults-'));
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' });
  for (const file of listed.split('\0'))
    if (file !== '' && existsSync(join(ROOT, file))) await cp(join(ROOT, file), join(copy, file), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

async function passes(copy: string, suites: readonly string[]): Promise<boolean> {
  const child = spawn('bash', ['scripts/run-jest.sh', ...suites, '--bail', '--silent', '--maxWorkers=1'], {
    cwd: copy,
    // A fresh seed that fails here says nothing about the tree.
    env: { ...process.env, SVC_SEEDS: WORLDS, SVC_FRESH_SEEDS: '0' },
    stdio: 'ignore',
    detached: true,
  });
  const timer = setTimeout(() => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, SUITES_MS);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  return code === 0;
}

function summaryOf(faults: readonly Fault[], verdicts: ReadonlyMap<Fault, Verdict>): string {
  const shareOf = (name: string, belongs: (fault: Fault) => boolean): string => {
    const own = faults.filter(belongs).map((each) => verdicts.get(each));
    const [noticed, survived] = (['noticed', 'survived'] as const).map((verdict) => own.filter((each) => each === verdict).length);
    const tried = (noticed ?? 0) + (survived ?? 0);
    const share = tried === 0 ? '' : ` (${Math.round((100 * (noticed ?? 0)) / tried)} %)`;
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

/** The same seed and the same sources give the same faults. At most one for each file, so that they are spread. */
async function drawFaults(count: number): Promise<readonly Fault[]> {
  const random = createRandom(Number(values.seed));
  const files = execFileSync('git', ['ls-files', `${values.under}/*.ts`], { cwd: ROOT, encoding: 'utf8' })
    .trim()
    .split('\n');
  const drawn: Fault[] = [];
  while (drawn.length < count && files.length > 0) {
    const [file = ''] = files.splice(random.int(0, files.length - 1), 1);
    const suites = suitesOf(file);
    const [first, ...rest] = listRandomMutants(file, await readFile(join(ROOT, file), 'utf8'));
    if (first === undefined || suites === undefined) continue;
    const { fault, ...more } = random.pick([first, ...rest]);
    drawn.push({ fault: fault.replace(/^[^ ]+ /, ''), ...more, suites: [suites] });
  }
  return drawn;
}

/** The test beside a source, or else the tests of its folder. */
function suitesOf(file: string): string | undefined {
  const mirrored = file.replace(/^src\//, 'test/');
  const own = mirrored.replace(/\.ts$/, '.test.ts');
  if (existsSync(join(ROOT, own))) return own;
  for (let folder = dirname(mirrored); folder.includes('/'); folder = dirname(folder)) if (existsSync(join(ROOT, folder))) return folder;
  return undefined;
}

await main();
