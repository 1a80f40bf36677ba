/** What the slots of one plan share: ports and memory. Exists for one plan; what one slot takes is no longer there for the next. */
import type { Desired, Observed } from '../facts/facts.ts';
import type { SlotView } from '../facts/view.ts';
import { freePort } from '../facts/workload.ts';
import type { Candidate } from './candidate.ts';

export interface Allocator {
  takePort(): number | undefined;
  takeMemory(bytes: number): void;
  /** Whether there is memory for one more workload of the slot: now, and permanently beside the one that serves. */
  room(view: SlotView): { readonly fitsNow: boolean; readonly fitsBeside: boolean };
}

/** `admittedBytes`: what admission has promised to all slots. */
export function createAllocator(desired: Desired, observed: Observed, candidates: readonly Candidate[], admittedBytes: number): Allocator {
  const { portRange, memoryBudgetBytes: budgetBytes } = desired;
  const bySlot = new Map(candidates.map((candidate) => [candidate.view.slot.name, candidate]));
  const used = findUsed(desired, observed);
  // Pods do not run in the memory of this host.
  const availableBytes = observed.traits.network === 'pods' ? undefined : observed.host.memoryAvailableBytes;
  let heldBytes = candidates.reduce((sum, candidate) => sum + candidate.heldBytes, used.bytes);
  let takenBytes = 0;
  /** All ports below it are taken. */
  let { first } = portRange;
  return {
    takePort() {
      const port = freePort({ first, last: portRange.last }, (candidate) => used.ports.has(candidate));
      first = port === undefined ? portRange.last + 1 : port + 1;
      return port;
    },
    takeMemory(bytes) {
      heldBytes += bytes;
      takenBytes += bytes;
    },
    room({ template, slot }) {
      const needed = template?.memoryBytes ?? 0;
      const own = bySlot.get(slot.name);
      const both = admittedBytes - (own?.claim?.bytes ?? 0) + (own?.heldBytes ?? 0) + needed + takenBytes;
      const fitsNow = budgetBytes === undefined || heldBytes + needed <= budgetBytes;
      const isAvailable = availableBytes === undefined || needed <= availableBytes;
      return { fitsNow, fitsBeside: fitsNow && isAvailable && (budgetBytes === undefined || both <= budgetBytes) };
    },
  };
}

/** Ports in use, and memory in use by what is not a workload of a candidate: orphans, and workloads that are being started. */
function findUsed(desired: Desired, observed: Observed): { readonly ports: ReadonlySet<number>; readonly bytes: number } {
  const ports = new Set(observed.takenPorts);
  const hasHostPorts = observed.traits.network !== 'pods';
  let bytes = 0;
  for (const { id, slot, container, endpoints } of observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : []) {
    const port = container.port?.host ?? endpoints[0]?.port;
    if (port !== undefined && hasHostPorts) ports.add(port);
    if (!desired.slots.has(slot)) bytes += observed.histories.get(id)?.origin?.memoryBytes ?? 0;
  }
  for (const { action } of observed.running.values()) {
    if (action.name !== 'apply' || action.args.updatesInPlace !== undefined) continue;
    if (hasHostPorts) ports.add(action.args.workload.port.host);
    bytes += action.args.origin.memoryBytes;
  }
  return { ports, bytes };
}
