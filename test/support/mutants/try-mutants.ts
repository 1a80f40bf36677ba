/**
 * Runs simulated worlds with one mutant after the other, and prints a line of JSON for each. A program of its own (`run-mutants.ts` starts it), as jest cannot
 * change what Node reads. It reads the mutants from its standard input: `{"mutants": […], "worlds": 400, "seeds": {}}`.
 */
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { messageOf, nameOf } from '../../../src/platform/error-text.ts';
import type { Mutant } from './mutant.ts';
import { createMutantModules, type MutantModules } from './mutant-modules.ts';
import type { NoticingSeeds } from './noticing-seeds.ts';
import type { TriedMutant } from './run-mutants.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

type Simulate = (seed: number, decide: undefined, more: { readonly pauses: boolean }) => Promise<void>;

async function tryMutant(modules: MutantModules, mutant: Mutant, worlds: number, first?: number): Promise<TriedMutant> {
  const { simulate } = await modules.load('test/support/simulation/simulate.ts', mutant);
  if (!isSimulate(simulate)) throw new Error('Export "simulate" from "simulate.ts"');
  let rejected: unknown;
  const onRejection = (error: unknown): void => void (rejected = error);
  process.on('unhandledRejection', onRejection);
  try {
    for (let world = first === undefined ? 1 : 0; world <= worlds; world += 1) {
      const seed = world === 0 && first !== undefined ? first : seedOf(mutant, world);
      const violation = await simulate(seed, undefined, { pauses: mutant.worlds === 'paused' }).then(
        () => rejected,
        (error: unknown) => error,
      );
      if (violation !== undefined)
        return { fault: mutant.fault, seed, worlds: world, violation: `SVC_SEED=${seed}: ${nameOf(violation)}: ${messageOf(violation)}` };
    }
  } finally {
    process.off('unhandledRejection', onRejection);
  }
  return { fault: mutant.fault, worlds: undefined, violation: undefined };
}

/** `simulate.ts` says which seed is what. */
function seedOf({ worlds }: Mutant, world: number): number {
  if (worlds === 'clusters') return 5 * world;
  if (worlds === 'hosts') return 25 * world + 1;
  return worlds === 'compared' ? 20 * world + 3 : world;
}

function isSimulate(value: unknown): value is Simulate {
  return typeof value === 'function';
}

const job: { readonly mutants: readonly Mutant[]; readonly worlds: number; readonly seeds: NoticingSeeds } = JSON.parse(
  await text(process.stdin),
);
const modules = createMutantModules(root);
for (const mutant of job.mutants) {
  const tried = await tryMutant(modules, mutant, job.worlds, job.seeds[mutant.fault]);
  process.stdout.write(`${JSON.stringify(tried)}\n`);
}
