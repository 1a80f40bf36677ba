/** Tries mutants in processes of their own, one after the other, and gives a process up that makes no progress. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Mutant } from './mutant.ts';
import type { NoticingSeeds } from './noticing-seeds.ts';

export interface TriedMutant {
  readonly fault: string;
  /** Worlds until the first violation, that one included; undefined if none was found. */
  readonly worlds: number | undefined;
  readonly violation: string | undefined;
  /** The seed of the world that noticed it. */
  readonly seed?: number | undefined;
}

export interface RunMutantsOptions {
  /** How many worlds each mutant gets at most. */
  readonly worlds: number;
  /** Seeds to try first, by fault. */
  readonly seeds?: NoticingSeeds;
  /** A mutant that takes longer is taken to run for ever, which is noticed too. */
  readonly mutantMs: number;
  readonly onTried?: (tried: TriedMutant) => void;
  readonly signal?: AbortSignal;
}

const PROGRAM = fileURLToPath(new URL('try-mutants.ts', import.meta.url));

export async function runMutants(mutants: readonly Mutant[], options: RunMutantsOptions): Promise<readonly TriedMutant[]> {
  const tried: TriedMutant[] = [];
  const isOver = (): boolean => options.signal?.aborted === true;
  while (tried.length < mutants.length && !isOver()) {
    const before = tried.length;
    const errors = await runProcess(mutants.slice(before), options, (each) => void tried.push(each));
    const next = mutants[tried.length];
    if (next === undefined || isOver()) break;
    // The process ended with this mutant, or was given up.
    if (errors !== '') throw new Error(`Correct the mutant "${next.fault}": ${errors}`);
    const stuck = { fault: next.fault, worlds: 0, violation: 'It never ends, or ends the process' };
    tried.push(stuck);
    options.onTried?.(stuck);
  }
  return tried;
}

/** Resolves when the process has ended, with what it complained of a mutant that cannot be made. */
async function runProcess(
  mutants: readonly Mutant[],
  { worlds, seeds = {}, mutantMs, onTried, signal }: RunMutantsOptions,
  add: (tried: TriedMutant) => void,
): Promise<string> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM], { stdio: ['pipe', 'pipe', 'pipe'] });
  let errors = '';
  let timer = setTimeout(() => child.kill('SIGKILL'), mutantMs);
  const end = (): void => void child.kill('SIGKILL');
  signal?.addEventListener('abort', end, { once: true });
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (errors += text));
  child.stdin.end(JSON.stringify({ mutants, worlds, seeds }));
  createInterface({ input: child.stdout }).on('line', (line) => {
    clearTimeout(timer);
    timer = setTimeout(() => child.kill('SIGKILL'), mutantMs);
    const tried: TriedMutant = JSON.parse(line);
    add(tried);
    onTried?.(tried);
  });
  await new Promise<void>((resolve) => child.once('close', () => resolve()));
  clearTimeout(timer);
  signal?.removeEventListener('abort', end);
  return /Correct the mutant[^\n]*|Name another file[^\n]*|SyntaxError[^\n]*/.exec(errors)?.[0] ?? '';
}
