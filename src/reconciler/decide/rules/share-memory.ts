/** Who gets memory: a written decision with its numbers, made anew in each pass. Pure. */
import type { SlotName } from '../../../schema/names.ts';

export interface MemoryClaim {
  readonly slot: SlotName;
  readonly priority: number;
  /** What it needs, or what it holds now if that is more. */
  readonly bytes: number;
  /** Loads on demand. With no request in flight or waiting it gives way to others of its priority, and comes back when asked. */
  readonly onDemand: boolean;
  /** A request is in flight or waiting. */
  readonly busy: boolean;
  /** It runs already. */
  readonly incumbent: boolean;
  /** Unix milliseconds. */
  readonly lastActiveAt: number;
}

export interface MemoryVerdict {
  readonly admitted: boolean;
  /** Not admitted, but those who hold the memory give it back by themselves. */
  readonly mayWait: boolean;
  readonly bytes: number;
  readonly budgetBytes: number | undefined;
  /** What those before it in the order hold. */
  readonly aheadBytes: number;
  /** Those before it that are let in, first ones first; at most ten. */
  readonly ahead: readonly SlotName[];
}

export interface MemoryShares {
  readonly verdicts: ReadonlyMap<SlotName, MemoryVerdict>;
  readonly admittedBytes: number;
}

/** As many as a person reads. */
const NAMED = 10;

/** Lets claims in by rank while the budget lasts; one that is too large does not keep smaller ones behind it out. */
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
    if (names.length < NAMED) names = [...names, claim.slot];
    sum += claim.bytes;
  }
  return { verdicts, admittedBytes: sum };
}

/** Without a budget there is no order, and nobody is before anybody. */
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

/** What those ahead of a claim will not give back by themselves. */
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
