/** Which slots get memory, with the numbers behind each verdict. Decided again in each pass. Pure. */
import type { SlotName } from '../../../schema/names.ts';

export interface MemoryClaim {
  readonly slot: SlotName;
  readonly priority: number;
  /** What it needs, or what it holds now where that is more. */
  readonly bytes: number;
  /** It loads on demand. While it has no request in flight or waiting, others of its priority come first; a request brings it back. */
  readonly onDemand: boolean;
  /** A request is in flight or waiting. */
  readonly busy: boolean;
  /** It is running already. */
  readonly incumbent: boolean;
  /** Monotonic milliseconds; 0 for never. */
  readonly lastActiveAt: number;
}

export interface MemoryVerdict {
  readonly admitted: boolean;
  /** Not admitted, but the slots that hold the memory will release it automatically. */
  readonly mayWait: boolean;
  readonly bytes: number;
  readonly budgetBytes: number | undefined;
  /** What the slots before it get. */
  readonly aheadBytes: number;
  /** The admitted slots before it, in order; at most ten. */
  readonly ahead: readonly SlotName[];
}

export interface MemoryShares {
  readonly verdicts: ReadonlyMap<SlotName, MemoryVerdict>;
  readonly admittedBytes: number;
}

/** More names than this would not be read. */
const MOST_NAMES = 10;

/** Admits claims by rank while the budget lasts. A claim that is too large does not block smaller ones behind it. */
export function shareMemory(claims: readonly MemoryClaim[], budgetBytes: number | undefined): MemoryShares {
  if (budgetBytes === undefined) return admitAll(claims);
  const verdicts = new Map<SlotName, MemoryVerdict>();
  const ahead: MemoryClaim[] = [];
  let names: readonly SlotName[] = [];
  let sum = 0;
  for (const claim of [...claims].sort(byRank)) {
    const admitted = sum + claim.bytes <= budgetBytes;
    verdicts.set(claim.slot, {
      admitted,
      mayWait: !admitted && firmBytes(ahead, claim) + claim.bytes <= budgetBytes,
      bytes: claim.bytes,
      budgetBytes,
      aheadBytes: sum,
      ahead: names,
    });
    if (!admitted) continue;
    ahead.push(claim);
    if (names.length < MOST_NAMES) names = [...names, claim.slot];
    sum += claim.bytes;
  }
  return { verdicts, admittedBytes: sum };
}

/** Without a budget there is no order. */
function admitAll(claims: readonly MemoryClaim[]): MemoryShares {
  const verdicts = new Map<SlotName, MemoryVerdict>();
  const ofSize = new Map<number, MemoryVerdict>();
  let admittedBytes = 0;
  for (const { slot, bytes } of claims) {
    const verdict = ofSize.get(bytes) ?? { admitted: true, mayWait: false, bytes, budgetBytes: undefined, aheadBytes: 0, ahead: [] };
    ofSize.set(bytes, verdict);
    verdicts.set(slot, verdict);
    admittedBytes += bytes;
  }
  return { verdicts, admittedBytes };
}

/** What the slots ahead of a claim will not release automatically. */
function firmBytes(ahead: readonly MemoryClaim[], claim: MemoryClaim): number {
  return ahead.filter((other) => !other.onDemand || other.priority > claim.priority).reduce((total, other) => total + other.bytes, 0);
}

function byRank(a: MemoryClaim, b: MemoryClaim): number {
  return (
    b.priority - a.priority ||
    Number(yields(a)) - Number(yields(b)) ||
    Number(b.incumbent) - Number(a.incumbent) ||
    b.lastActiveAt - a.lastActiveAt ||
    (a.slot < b.slot ? -1 : 1)
  );
}

function yields({ onDemand, busy }: MemoryClaim): boolean {
  return onDemand && !busy;
}
