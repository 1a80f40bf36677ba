/** Which slots get memory, in which memories of the machine, with everything that led to each verdict. Decided again in each pass. Pure. */
import type { SlotName } from '../../../schema/names.ts';
import { addBytes, HOST, NO_BYTES, sumBytes, totalBytes, type MemoryPool, type PoolBytes, type PoolId } from '../facts/memory-pools.ts';
import { inOrder, type MemoryGroup, type MemoryRequest } from './memory-turns.ts';
import { placeMemory, type PlacementQuestion } from './place-memory.ts';

export interface MemoryClaim extends MemoryRequest {
  /** Set where its server was measured to use more than this. */
  readonly estimatedBytes?: number | undefined;
  /** What it holds, or will hold where it runs; undefined where it has to be placed. */
  readonly held: PoolBytes | undefined;
  /** What it needs, where it has no place yet. */
  readonly needs: PlacementQuestion;
}

/** One slot in the list of all that share the memory. */
export interface MemoryCandidate {
  readonly slot: SlotName;
  readonly bytes: number;
  readonly priority: number;
  readonly group: MemoryGroup;
  /** It runs. */
  readonly incumbent: boolean;
  readonly admitted: boolean;
}

export interface MemoryVerdict {
  readonly admitted: boolean;
  /** Not admitted, but the slots that hold the memory will release it automatically, or other programs may. */
  readonly mayWait: boolean;
  /** Everything that the slot needs. */
  readonly bytes: number;
  /** Set where its server was measured to use more than what it was estimated to need, which is this. */
  readonly estimatedBytes?: number | undefined;
  /** Where it is, or would be. */
  readonly placement: PoolBytes;
  /** The memory that is short; else the first one that the slot needs. The numbers below are those of this memory. */
  readonly pool: PoolId;
  readonly neededBytes: number;
  readonly budgetBytes: number | undefined;
  /** What other programs use of the budget. */
  readonly othersBytes: number;
  /** What the slots before it get. */
  readonly aheadBytes: number;
  /** It would fit, and the slot with this name waits for the same memory and comes first. */
  readonly keptFor?: SlotName;
  /** The admitted slots before it, in order; at most ten. */
  readonly ahead: readonly SlotName[];
  /** The slots that share the memory, where it is short: those without memory first, then the others in order; at most ten of each. */
  readonly candidates: readonly MemoryCandidate[];
}

export interface MemoryShares {
  readonly verdicts: ReadonlyMap<SlotName, MemoryVerdict>;
  readonly admitted: PoolBytes;
  /** When the passage of time alone changes the order, in monotonic milliseconds; undefined where that changes nothing. */
  readonly changesAt: number | undefined;
}

/** More names than this would not be read. */
const MOST_NAMES = 10;

/**
 * Admits claims in order while the budgets last. A claim that is too large does not block smaller ones that run already, but it blocks those that are still to be
 * started: else small models would keep a large one from its turn indefinitely. Other programs of the machine only limit what is started.
 */
export function shareMemory(claims: readonly MemoryClaim[], pools: readonly MemoryPool[]): MemoryShares {
  if (pools.every(({ budgetBytes }) => budgetBytes === undefined)) return admitAll(claims);
  const ordered = inOrder(claims);
  let share: Share = {
    pools: new Map(pools.map((pool) => [pool.id, pool])),
    ahead: [],
    used: NO_BYTES,
    beside: false,
    reserved: new Map(),
  };
  let running = sumBytes(claims.map(({ held }) => held ?? NO_BYTES));
  const decided: Decided[] = [];
  for (const claim of ordered) {
    const verdict = decide(claim, share, running);
    decided.push({ claim, verdict });
    if (verdict.admitted && claim.held === undefined) running = addBytes(running, verdict.placement);
    share = after(share, claim, verdict);
  }
  const short = decided.some(({ verdict }) => !verdict.admitted);
  const candidates = short ? listCandidates(decided) : NO_CANDIDATES;
  const ends = short ? claims.flatMap(({ turn }) => turn.until ?? []) : [];
  return {
    verdicts: new Map(decided.map(({ claim, verdict }) => [claim.slot, { ...verdict, candidates }])),
    admitted: share.used,
    changesAt: ends.length === 0 ? undefined : Math.min(...ends),
  };
}

interface Decided {
  readonly claim: MemoryClaim;
  readonly verdict: Omit<MemoryVerdict, 'candidates'>;
}

/** What has been given out so far. */
interface Share {
  readonly pools: ReadonlyMap<PoolId, MemoryPool>;
  /** The admitted ones, in order. */
  readonly ahead: readonly Decided[];
  readonly used: PoolBytes;
  /** One of them is still to be started, so that everything after it has to fit beside other programs as well. */
  readonly beside: boolean;
  /** Pools that a slot before waits for, the first one that does: nothing else is started in them. */
  readonly reserved: ReadonlyMap<PoolId, SlotName>;
}

function decide(claim: MemoryClaim, share: Share, running: PoolBytes): Decided['verdict'] {
  const isNew = !claim.incumbent;
  const besideOthers = isNew || share.beside;
  const room = (used: PoolBytes) => (id: PoolId) => roomIn(share.pools.get(id), used[id] ?? 0, besideOthers);
  const placement = claim.held ?? choosePlacement(claim.needs, room(running), room(share.used));
  const short = lacking(placement, room(share.used));
  const reserved = isNew ? Object.keys(placement).find((id) => share.reserved.has(id)) : undefined;
  const pool = short ?? reserved ?? Object.keys(placement).at(-1) ?? HOST;
  const keptFor = short === undefined && reserved !== undefined ? share.reserved.get(reserved) : undefined;
  const admitted = short === undefined && reserved === undefined;
  const { budgetBytes, othersBytes = 0 } = share.pools.get(pool) ?? {};
  const ahead = share.ahead.filter(({ verdict }) => (verdict.placement[pool] ?? 0) > 0);
  return {
    admitted,
    mayWait: !admitted && mayFit(claim, placement, share, false),
    bytes: totalBytes(placement),
    ...(claim.estimatedBytes === undefined ? {} : { estimatedBytes: claim.estimatedBytes }),
    placement,
    pool,
    neededBytes: placement[pool] ?? 0,
    budgetBytes,
    othersBytes: besideOthers ? othersBytes : 0,
    aheadBytes: share.used[pool] ?? 0,
    ...(keptFor === undefined ? {} : { keptFor }),
    ahead: ahead.slice(0, MOST_NAMES).map((other) => other.claim.slot),
  };
}

function after(share: Share, claim: MemoryClaim, verdict: Decided['verdict']): Share {
  const { placement, admitted } = verdict;
  if (admitted) {
    const ahead = [...share.ahead, { claim, verdict }];
    return { ...share, ahead, used: addBytes(share.used, placement), beside: share.beside || !claim.incumbent };
  }
  const waits = !claim.incumbent && claim.turn.group !== 'unloaded' && mayFit(claim, placement, share, true);
  if (!waits) return share;
  const first = Object.keys(placement).map((id) => [id, share.reserved.get(id) ?? claim.slot] as const);
  return { ...share, reserved: new Map([...share.reserved, ...first]) };
}

/** Rather where nobody has to give way for it. */
function choosePlacement(needs: PlacementQuestion, unused: (id: PoolId) => number, available: (id: PoolId) => number): PoolBytes {
  const beside = placeMemory(needs, unused);
  return lacking(beside, unused) === undefined ? beside : placeMemory(needs, available);
}

function lacking(placement: PoolBytes, room: (id: PoolId) => number): PoolId | undefined {
  return Object.entries(placement).find(([id, bytes]) => bytes > room(id))?.[0];
}

function roomIn(pool: MemoryPool | undefined, usedBytes: number, besideOthers: boolean): number {
  if (pool?.budgetBytes === undefined) return Number.POSITIVE_INFINITY;
  return pool.budgetBytes - (besideOthers ? pool.othersBytes : 0) - usedBytes;
}

/** Whether it fits once all slots before it that load on demand have released their memory; what is loaded always does not. */
function mayFit({ needs, held }: MemoryClaim, placement: PoolBytes, { ahead, pools }: Share, besideOthers: boolean): boolean {
  const firm = sumBytes(ahead.filter(({ claim }) => claim.turn.group === 'always').map(({ verdict }) => verdict.placement));
  const room = (id: PoolId): number => roomIn(pools.get(id), firm[id] ?? 0, besideOthers);
  return lacking(held === undefined ? placeMemory(needs, room) : placement, room) === undefined;
}

function listCandidates(decided: readonly Decided[]): readonly MemoryCandidate[] {
  const listed = decided.map(({ claim: { slot, priority, turn, incumbent }, verdict: { bytes, admitted } }) => ({
    slot,
    bytes,
    priority,
    group: turn.group,
    incumbent,
    admitted,
  }));
  const part = (kept: boolean): readonly MemoryCandidate[] => listed.filter(({ admitted }) => admitted === kept).slice(0, MOST_NAMES);
  return [...part(false), ...part(true)];
}

const NO_CANDIDATES: readonly MemoryCandidate[] = [];

const UNLIMITED = (): number => Number.POSITIVE_INFINITY;

/** Without a budget there is no order. */
function admitAll(claims: readonly MemoryClaim[]): MemoryShares {
  const verdicts = new Map<SlotName, MemoryVerdict>();
  const ofSize = new Map<number, MemoryVerdict>();
  let admitted: PoolBytes = NO_BYTES;
  for (const { slot, held, needs } of claims) {
    const placement = held ?? placeMemory(needs, UNLIMITED);
    const bytes = totalBytes(placement);
    const verdict = ofSize.get(bytes) ?? admittedAs(placement, bytes);
    ofSize.set(bytes, verdict);
    verdicts.set(slot, verdict);
    admitted = addBytes(admitted, placement);
  }
  return { verdicts, admitted, changesAt: undefined };
}

function admittedAs(placement: PoolBytes, bytes: number): MemoryVerdict {
  return {
    admitted: true,
    mayWait: false,
    bytes,
    placement,
    pool: HOST,
    neededBytes: placement[HOST] ?? 0,
    budgetBytes: undefined,
    othersBytes: 0,
    aheadBytes: 0,
    ahead: [],
    candidates: NO_CANDIDATES,
  };
}
