/** Which of several controllers leads: at most one, as with the Lease of a cluster. */
import type { LoopDeps } from '../../../src/reconciler/loop.ts';
import type { Wake } from '../../../src/reconciler/ports.ts';
import { listen } from './world-models.ts';

type Leadership = NonNullable<LoopDeps['leadership']>;

export interface Election {
  leader(): number | undefined;
  elect(index: number | undefined): void;
  /** Leadership as the controller with this index sees it. */
  leadershipOf(index: number): Leadership;
}

export function createElection(first: number | undefined): Election {
  let leader = first;
  const wakes = new Set<Wake>();
  return {
    leader: () => leader,
    elect(index) {
      leader = index;
      for (const wake of wakes) wake();
    },
    leadershipOf: (index) => ({ leads: () => leader === index, changes: (wake, signal) => listen(wakes, wake, signal) }),
  };
}
