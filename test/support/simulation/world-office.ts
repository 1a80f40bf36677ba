/** Who of several controllers leads: one at most, as a lease has it. */
import type { LoopDeps } from '../../../src/reconciler/loop.ts';
import type { Wake } from '../../../src/reconciler/ports.ts';
import { listen } from './world-models.ts';

type Leadership = NonNullable<LoopDeps['leadership']>;

export interface Office {
  holder(): number | undefined;
  give(index: number | undefined): void;
  seat(index: number): Leadership;
}

export function createOffice(first: number | undefined): Office {
  let holder = first;
  const wakes = new Set<Wake>();
  return {
    holder: () => holder,
    give(index) {
      holder = index;
      for (const wake of wakes) wake();
    },
    seat: (index) => ({ leads: () => holder === index, changes: (wake, signal) => listen(wakes, wake, signal) }),
  };
}
