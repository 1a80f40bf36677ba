/** Faults in the code around the planner, as lines of the program that are replaced. */
import type { Mutant } from '../support/mutants/mutant.ts';
import { ACTION_MUTANTS } from './action-mutants.ts';
import { HOST_MUTANTS } from './host-mutants.ts';
import { LOOP_MUTANTS } from './loop-mutants.ts';
import { MEMORY_MUTANTS } from './memory-mutants.ts';
import { TRACKER_MUTANTS } from './tracker-mutants.ts';

export const PROGRAM_MUTANTS: readonly Mutant[] = [
  ...LOOP_MUTANTS,
  ...ACTION_MUTANTS,
  ...TRACKER_MUTANTS,
  ...MEMORY_MUTANTS,
  ...HOST_MUTANTS,
];
