/** A slot before memory is shared out: whether it should run, what prevents that, and how much memory it claims. Pure. */
import type { Finding } from '../../../schema/failure.ts';
import type { SlotView } from '../facts/view.ts';
import type { SlotMemory } from './allocator.ts';
import { findGates, type Gate } from './gates.ts';
import type { MemoryClaim } from './share-memory.ts';
import { whyNotWanted } from './wanted.ts';

export interface Candidate {
  readonly view: SlotView;
  readonly notWanted: Finding | undefined;
  readonly gates: readonly Gate[];
  /** Undefined where the slot needs no memory now. */
  readonly claim: MemoryClaim | undefined;
  readonly memory: SlotMemory;
}

export function makeCandidate(view: SlotView): Candidate {
  const notWanted = whyNotWanted(view);
  const gates = findGates(view);
  const held = view.workloads.map((workload) => heldBytes(workload, view));
  const incumbent = view.workloads.some(({ alive }) => alive) || view.applying !== undefined;
  const willRun = notWanted === undefined && (incumbent || gates.every(({ kind }) => kind === 'waiting'));
  const needed = view.template?.memoryBytes;
  const claim = {
    slot: view.slot.name,
    priority: view.spec.priority,
    bytes: Math.max(needed ?? 0, ...held),
    onDemand: view.spec.load === 'on-demand',
    busy: view.inFlight > 0 || view.waiting > 0,
    incumbent,
    lastActiveAt: view.lastActiveAt ?? 0,
  };
  const claims = willRun && (needed !== undefined || held.length > 0);
  return {
    view,
    notWanted,
    gates,
    memory: { neededBytes: needed ?? 0, claimedBytes: claims ? claim.bytes : 0, heldBytes: held.reduce((sum, each) => sum + each, 0) },
    claim: claims ? claim : undefined,
  };
}

function heldBytes({ fact, known }: SlotView['workloads'][number], { template }: SlotView): number {
  return fact.phase === 'exited' ? 0 : (known.origin?.memoryBytes ?? template?.memoryBytes ?? 0);
}
