/** Tries faults one after the other in one copy of the tree: the simulation first where it runs the code, then the suites of each. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf, messageOf } from '../../../src/platform/error-text.ts';
import { applyMutant, type Mutant } from './mutant.ts';
import { runMutants } from './run-mutants.ts';

export interface Fault extends Mutant {
  /** Paths for jest. */
  readonly suites: readonly string[];
}

export type Verdict = 'noticed by the simulation' | 'noticed' | 'noticed, suites run for ever' | 'survived' | 'suites fail without it';

interface TryFaultsOptions {
  /** Unix milliseconds. */
  readonly endAt: number;
  readonly onTried: (fault: Fault, verdict: Verdict) => void;
}

/** The planner, which the simulation runs in every world. */
const SIMULATED = 'src/reconciler/decide/';
/** Most faults show within a few worlds; the suites get those that do not. */
const WORLDS = 150;
const WORLDS_MS = 60_000;
/** Beyond three times its duration and this, a suite runs for ever. */
const SPARE_MS = 30_000;

export async function tryFaults(root: string, faults: readonly Fault[], options: TryFaultsOptions): Promise<ReadonlyMap<Fault, Verdict>> {
  const verdicts = new Map<Fault, Verdict>();
  const copy = await copyTree(root);
  try {
    const durations = await runSuites(copy, [...new Set(faults.flatMap(({ suites }) => suites))]);
    for (const each of faults) {
      if (Date.now() > options.endAt) break;
      const verdict = await tryFault(copy, each, durations);
      verdicts.set(each, verdict);
      options.onTried(each, verdict);
    }
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
  return verdicts;
}

/** Milliseconds by file; undefined for a file that fails. */
type Durations = ReadonlyMap<string, number | undefined>;

async function tryFault(copy: string, fault: Fault, durations: Durations): Promise<Verdict> {
  if (fault.file.startsWith(SIMULATED) && (await breaksWorlds(fault))) return 'noticed by the simulation';
  const own = [...durations].filter(([file]) => fault.suites.some((suite) => file === suite || file.startsWith(`${suite}/`)));
  if (own.length === 0 || own.some(([, ms]) => ms === undefined)) return 'suites fail without it';
  const limitMs = SPARE_MS + 3 * own.reduce((sum, [, ms]) => sum + (ms ?? 0), 0);
  const path = join(copy, fault.file);
  const source = await readFile(path, 'utf8');
  await writeFile(path, applyMutant(source, fault));
  try {
    const code = await runJest(copy, [...fault.suites, '--bail'], limitMs);
    return code === 0 ? 'survived' : code === null ? 'noticed, suites run for ever' : 'noticed';
  } finally {
    await writeFile(path, source);
  }
}

async function breaksWorlds(fault: Fault): Promise<boolean> {
  try {
    const [tried] = await runMutants([fault], { worlds: WORLDS, mutantMs: WORLDS_MS });
    return tried?.violation !== undefined;
  } catch (error) {
    // No world runs the file.
    if (messageOf(error).includes('Name another file')) return false;
    throw error;
  }
}

/** Runs all suites once without a fault. */
async function runSuites(copy: string, suites: readonly string[]): Promise<Durations> {
  const output = join(copy, 'results.json');
  await runJest(copy, [...suites, '--json', `--outputFile=${output}`]);
  const { testResults }: Results = JSON.parse(await readFile(output, 'utf8'));
  const durations = testResults.map(({ name, status, startTime, endTime }) => {
    const ms = status === 'passed' ? endTime - startTime : undefined;
    return [name.slice(copy.length + 1), ms] as const;
  });
  return new Map(durations);
}

/** As jest writes it. */
interface Results {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: 'passed' | 'failed';
    readonly startTime: number;
    readonly endTime: number;
  }[];
}

async function copyTree(root: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'svc-faults-'));
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  for (const file of listed.split('\0'))
    if (file !== '' && existsSync(join(root, file))) await cp(join(root, file), join(copy, file), { recursive: true });
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Resolves to its exit code, or null if it was ended after `limitMs`. */
async function runJest(copy: string, args: readonly string[], limitMs?: number): Promise<number | null> {
  const jest = ['scripts/run-jest.sh', ...args, '--silent', '--maxWorkers=1', `--cacheDirectory=${join(copy, '.jest')}`];
  // A fresh seed that fails here says nothing about the tree.
  const env = { ...process.env, SVC_SEEDS: String(WORLDS), SVC_FRESH_SEEDS: '0' };
  const child = spawn('bash', jest, { cwd: copy, env, stdio: 'ignore', detached: true });
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch (error) {
      // Nothing is left of its group.
      if (codeOf(error) !== 'ESRCH') throw error;
    }
  };
  const timer = limitMs === undefined ? undefined : setTimeout(kill, limitMs);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  // With a fault, a suite may leave processes behind.
  kill();
  return code;
}
