/** Faults in the code around the planner. What the simulation does not notice here, it would not notice if somebody wrote it. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { readNoticingSeeds, recordNoticingSeeds } from '../support/mutants/noticing-seeds.ts';
import { runMutants, type TriedMutant } from '../support/mutants/run-mutants.ts';
import { PROGRAM_MUTANTS } from './all-program-mutants.ts';

/** Far fewer than `npm test` runs. */
const ENOUGH = 1000;

describe('the simulation notices a program that', () => {
  const tried = new Map<string, TriedMutant>();

  beforeAll(async () => {
    const seeds = readNoticingSeeds();
    for (const each of await runMutants(PROGRAM_MUTANTS, { worlds: ENOUGH, seeds, mutantMs: 120_000 })) tried.set(each.fault, each);
    recordNoticingSeeds(new Map([...tried.values()].flatMap(({ fault, seed }) => (seed === undefined ? [] : [[fault, seed]]))));
  }, 900_000);

  for (const { fault } of PROGRAM_MUTANTS) {
    test(`${fault}`, () => {
      const { violation } = tried.get(fault) ?? {};
      expect(violation).toBeDefined();
      // A mutant that names something that does not exist would prove nothing.
      expect(violation).not.toContain('ReferenceError');
    });
  }
});
