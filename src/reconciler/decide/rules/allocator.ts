/** What the slots of one plan share: ports and memory. Lives for one plan; what one slot takes, the next one no longer has. */
import { freePort } from '../facts/workload.ts';
import type { SlotView } from '../facts/view.ts';

export interface AllocatorFacts {
  readonly portRange: { readonly first: number; readonly last: number };
  readonly takenPorts: ReadonlySet<number>;
  readonly budgetBytes: number | undefined;
  readonly availableBytes: number | undefined;
  /** What all workloads that exist or are being started hold. */
  readonly heldBytes: number;
  /** What admission has promised. */
  readonly admittedBytes: number;
  /** What a slot's claim in that is, and what its workloads hold. */
  readonly claimOf: (view: SlotView) => { readonly claimBytes: number; readonly heldBytes: number };
}

export interface Allocator {
  takePort(): number | undefined;
  takeMemory(bytes: number): void;
  /** Whether one more workload of the slot finds memory: now, and for good beside the one that serves. */
  room(view: SlotView): { readonly fitsNow: boolean; readonly fitsBeside: boolean };
}

export function createAllocator(facts: AllocatorFacts): Allocator {
  const { budgetBytes } = facts;
  const taken = facts.takenPorts;
  // All below it are taken.
  let { first } = facts.portRange;
  let held = facts.heldBytes;
  let extra = 0;
  return {
    takePort() {
      const port = freePort({ ...facts.portRange, first }, (candidate) => taken.has(candidate));
      first = port === undefined ? facts.portRange.last + 1 : port + 1;
      return port;
    },
    takeMemory(bytes) {
      held += bytes;
      extra += bytes;
    },
    room(view) {
      const need = view.template?.memoryBytes ?? 0;
      const fitsNow = budgetBytes === undefined || held + need <= budgetBytes;
      const own = facts.claimOf(view);
      const both = facts.admittedBytes - own.claimBytes + own.heldBytes + need + extra;
      const available = facts.availableBytes === undefined || need <= facts.availableBytes;
      return { fitsNow, fitsBeside: fitsNow && available && (budgetBytes === undefined || both <= budgetBytes) };
    },
  };
}
