/** Draws random faults from the sources, each with the tests that are nearest to its file. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createRandom } from '../simulation/seeded-random.ts';
import type { Mutant } from './mutant.ts';
import { listRandomMutants } from './random-mutants.ts';
import type { Fault } from './try-faults.ts';

interface DrawOptions {
  readonly count: number;
  readonly seed: string;
  /** A folder or a file. */
  readonly under: string;
}

/** The same seed and the same sources give the same faults. One for each file, then a second one, so that they are spread. */
export async function drawFaults(root: string, { count, seed, under }: DrawOptions): Promise<readonly Fault[]> {
  const random = createRandom(Number(seed));
  const files = execFileSync('git', ['ls-files', under.endsWith('.ts') ? under : `${under}/*.ts`], { cwd: root, encoding: 'utf8' });
  const left = new Map<string, Mutant[]>();
  for (const file of files.trim().split('\n')) left.set(file, [...listRandomMutants(file, await readFile(join(root, file), 'utf8'))]);
  const drawn: Fault[] = [];
  let round: string[] = [];
  while (drawn.length < count && left.size > 0) {
    if (round.length === 0) round = [...left.keys()];
    const [file = ''] = round.splice(random.int(0, round.length - 1), 1);
    const mutants = left.get(file) ?? [];
    const suites = suitesOf(root, file);
    const [mutant] = mutants.length === 0 ? [] : mutants.splice(random.int(0, mutants.length - 1), 1);
    if (mutant === undefined || suites === undefined) left.delete(file);
    else drawn.push({ ...mutant, fault: mutant.fault.replace(/^[^ ]+ /, ''), suites: [suites] });
  }
  return drawn;
}

/** The test beside a source, or else the tests of its folder. */
function suitesOf(root: string, file: string): string | undefined {
  const mirrored = file.replace(/^src\//, 'test/');
  const own = mirrored.replace(/\.ts$/, '.test.ts');
  if (existsSync(join(root, own))) return own;
  for (let folder = dirname(mirrored); folder.includes('/'); folder = dirname(folder)) if (existsSync(join(root, folder))) return folder;
  return undefined;
}
