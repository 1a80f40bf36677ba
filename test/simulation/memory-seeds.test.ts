import { afterAll, describe, expect, test } from '@jest/globals';
import type { Observed } from '../../src/reconciler/decide/facts/facts.ts';
import { inspect } from '../../src/reconciler/decide/inspect.ts';
import { plan } from '../../src/reconciler/decide/plan.ts';
import type { Demand } from '../../src/reconciler/ports.ts';
import type { SlotName } from '../../src/schema/words/names.ts';
import { readNoticingSeeds, recordNoticingSeeds } from '../support/mutants/noticing-seeds.ts';
import { simulateMemory } from '../support/simulation/simulate-memory.ts';

/** Half of `SVC_SEEDS`: a world takes about half a second. */
const SEEDS = Number(process.env['SVC_SEEDS'] ?? 50) / 2;

const NOTICING = readNoticingSeeds();
const noticed = new Map<string, number>();

afterAll(() => recordNoticingSeeds(noticed));

async function violationOf(seed: number, planner: typeof plan, overshoots = false): Promise<string | undefined> {
  return await simulateMemory(seed, { plan: planner, inspect }, overshoots).then(
    () => undefined,
    (error: unknown) => `seed ${seed}: ${String(error)}`,
  );
}

/** A planner that sees something else than what is there. */
const withSight =
  (change: (observed: Observed, now: number) => Partial<Observed>): typeof plan =>
  (desired, observed, now) =>
    plan(desired, { ...observed, ...change(observed, now) }, now);

const mapValues = <Key, Value>(map: ReadonlyMap<Key, Value>, change: (value: Value) => Value): ReadonlyMap<Key, Value> =>
  new Map([...map].map(([key, value]) => [key, change(value)]));

const MUTANTS: Readonly<Record<string, typeof plan>> = {
  'never lets a turn end': withSight(({ histories }, now) => ({
    histories: mapValues(histories, (known) => (known.probe === undefined ? known : { ...known, probe: { ...known.probe, since: now } })),
  })),
  'loads for nobody what gave way': withSight(({ published }) => ({
    published: mapValues(published, (slot) => ({ ...slot, decision: { ...slot.decision, findings: [] } })),
  })),
  'takes memory from a slot whose requests it does not see': withSight(({ activity }) => ({
    activity: mapValues(activity, (use) => ({ ...use, inFlight: 0 })),
  })),
  'does not know who asks': withSight(({ demand }) => ({ demand: mapValues(demand, (each) => ({ ...each, caller: undefined })) })),
  'takes a schedule for a request': withSight(({ warm, demand }, now) => ({
    demand: new Map<SlotName, Demand>([
      ...demand,
      ...(warm?.keys() ?? []).map((name) => [name, { waiting: 1, waitingSince: now - 60_000, lastAskedAt: now }] as const),
    ]),
  })),
};

describe('slots that cannot all have memory', () => {
  test('all get their turn, and none is loaded more often than it is asked for', async () => {
    const found: string[] = [];
    for (let seed = 0; seed < SEEDS && found.length < 3; seed += 1) found.push(...[(await violationOf(seed, plan)) ?? []].flat());
    expect(found).toEqual([]);
  }, 300_000);

  test('do so as well when the server of one of them takes twice what it was estimated to need', async () => {
    const found: string[] = [];
    for (let seed = 1000; seed < 1000 + SEEDS / 2; seed += 1) found.push(...[(await violationOf(seed, plan, true)) ?? []].flat());
    expect(found).toEqual([]);
  }, 300_000);

  test.each(Object.entries(MUTANTS))(
    'would not if a planner %s',
    async (fault, mutant) => {
      // The pause between starts of the same revision hides these faults in most worlds.
      const ordinary = Array.from({ length: 2 * SEEDS }, (_, seed) => seed);
      for (const seed of [...(NOTICING[fault] === undefined ? [] : [NOTICING[fault]]), ...ordinary]) {
        if ((await violationOf(seed, mutant)) === undefined) continue;
        noticed.set(fault, seed);
        break;
      }
      expect(noticed.get(fault)).toBeDefined();
    },
    300_000,
  );
});
