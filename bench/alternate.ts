import { orderOfRound } from './decide/order-of-round.ts';

/** Runs one thing after another in rounds, because the speed of machines drifts: each round has all of them, in another order, and the first round only warms up. */
export async function alternate<K, S, R>(
  subjects: ReadonlyMap<K, S>,
  rounds: number,
  run: (subject: S) => Promise<R>,
): Promise<ReadonlyMap<K, readonly R[]>> {
  const runs = new Map<K, R[]>([...subjects.keys()].map((name) => [name, []]));
  for (let round = -1; round < rounds; round += 1) {
    for (const [name, subject] of orderOfRound([...subjects], round)) {
      const made = await run(subject);
      if (round >= 0) runs.get(name)?.push(made);
    }
  }
  return runs;
}
