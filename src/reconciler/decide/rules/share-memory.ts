/** Which slots get memory, in which pool, with the reasons of each verdict. Decided again in each pass. Pure. */
import {
  addBytes,
  HOST,
  NO_BYTES,
  sumBytes,
  totalBytes,
  type MemoryCandidate,
  type MemoryVerdict,
  type MemoryPool,
  type Newcomer,
  type PoolBytes,
  type PoolId,
} from '../facts/memory-pools.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { isSameExcept, isSameValue, reuse } from '../../../schema/words/same-value.ts';
import { chooseSplit, inOrder, placeMemory, type MemoryRequest, type PlacementQuestion } from './memory-turns.ts';

export interface MemoryClaim extends MemoryRequest {
  /** Key of the caller whose request it is loaded for. */
  readonly caller?: string | undefined;
  /** Set where its server was measured to use more than this. */
  readonly estimatedBytes?: number | undefined;
  /** What it holds, or will hold where it runs; undefined where it has to be placed. */
  readonly held: PoolBytes | undefined;
  /** What it needs, where it has no place yet. */
  readonly needs: PlacementQuestion;
}

export interface MemoryShares {
  readonly verdicts: ReadonlyMap<SlotName, MemoryVerdict>;
  readonly admitted: PoolBytes;
  /** Monotonic milliseconds at which time alone changes the order; undefined if it never does. */
  readonly changesAt: number | undefined;
  /** How the shares came about, claim by claim; empty where there is no order. */
  readonly turns: readonly ShareTurn[];
  /** The candidates listed in the verdicts. */
  readonly candidates: readonly MemoryCandidate[];
}

/** One claim in its turn. */
interface ShareTurn {
  readonly claim: MemoryClaim;
  readonly found: Share;
  readonly verdict: Verdict;
  /** What the next claim finds. */
  readonly left: Share;
}

type Verdict = Omit<MemoryVerdict, 'candidates'>;

/** What has been given out so far. */
interface Share {
  readonly pools: ReadonlyMap<PoolId, MemoryPool>;
  /** What workloads hold, and what those admitted so far will hold. */
  readonly running: PoolBytes;
  /** The admitted slots in each pool, in order; at most ten. */
  readonly ahead: Readonly<Record<PoolId, readonly SlotName[]>>;
  /** What the admitted ones get. */
  readonly used: PoolBytes;
  /** The part of it that is loaded always. */
  readonly firm: PoolBytes;
  /** The last one in each pool that is still to be started. What comes after one has to fit beside other programs. */
  readonly newcomers: Readonly<Record<PoolId, Newcomer>>;
  /** Pools that a slot before waits for, the first one that does: nothing else is started in them. */
  readonly reserved: Readonly<Record<PoolId, SlotName>>;
}

const NOTHING_GIVEN: Share = {
  pools: new Map(),
  running: NO_BYTES,
  ahead: {},
  used: NO_BYTES,
  firm: NO_BYTES,
  newcomers: {},
  reserved: {},
};

/** More names than this would not be read. */
const MOST_NAMES = 10;

/**
 * Admits claims in order while the budgets last. A claim that is too large does not block smaller ones that run
 * already, but it blocks those that are still to be started: else small models would keep a large one from its turn
 * indefinitely. Other programs of the machine only limit what is started.
 *
 * `last` changes no value of the result. A claim that is the same object, and finds what it found then, gets the same
 * object, and nothing is computed for it.
 */
export function shareMemory(claims: readonly MemoryClaim[], pools: readonly MemoryPool[], last?: MemoryShares): MemoryShares {
  if (pools.every(({ budgetBytes }) => budgetBytes === undefined)) return admitAll(claims, last);
  const running = sumBytes(claims.map(({ held }) => held ?? NO_BYTES));
  let share: Share = { ...NOTHING_GIVEN, pools: new Map(pools.map((pool) => [pool.id, pool])), running };
  const turns: ShareTurn[] = [];
  for (const [index, claim] of inOrder(
    claims,
    last?.turns.map((turn) => turn.claim),
  ).entries()) {
    const turn = takeTurn(claim, share, last?.turns[index]);
    turns.push(turn);
    share = turn.left;
  }
  const short = turns.some(({ verdict }) => !verdict.admitted);
  const candidates = reuse(last?.candidates, short ? listCandidates(turns) : NO_CANDIDATES);
  const ends = short ? claims.flatMap(({ turn }) => turn.until ?? []) : [];
  return {
    verdicts: verdictsOf(turns, candidates, last),
    admitted: share.used,
    changesAt: ends.length === 0 ? undefined : Math.min(...ends),
    turns,
    candidates,
  };
}

/** `before`: the turn in the same place, last time. */
function takeTurn(claim: MemoryClaim, share: Share, before: ShareTurn | undefined): ShareTurn {
  if (before === undefined) return newTurn(claim, share);
  const found = isSameShare(before.found, share) ? before.found : share;
  if (before.claim === claim && before.found === found) return before;
  const turn = newTurn(claim, found);
  return isSameShare(before.left, turn.left) ? { ...turn, left: before.left } : turn;
}

function newTurn(claim: MemoryClaim, found: Share): ShareTurn {
  const verdict = decide(claim, found);
  return { claim, found, verdict, left: after(found, claim, verdict) };
}

/** Compares first what is most likely to differ. */
function isSameShare(one: Share, other: Share): boolean {
  if (one === other) return true;
  if (!isSameValue(one.used, other.used) || !isSameValue(one.running, other.running) || !isSameValue(one.firm, other.firm)) return false;
  if (!isSameValue(one.newcomers, other.newcomers) || !isSameValue(one.ahead, other.ahead)) return false;
  if (!isSameValue(one.reserved, other.reserved)) return false;
  return one.pools === other.pools || isSameValue([...one.pools], [...other.pools]);
}

function decide(asked: MemoryClaim, share: Share): Verdict {
  const isNew = !asked.incumbent;
  // Beside what is always loaded; the rest gives way in turns.
  const needs = chooseSplit(asked.needs, (id) => roomIn(share.pools.get(id), share.firm[id] ?? 0, true));
  const claim = asked.held === undefined ? { ...asked, needs } : asked;
  const { split } = claim.needs;
  const besideOthers = isNew || Object.keys(share.newcomers).length > 0;
  const room = (used: PoolBytes) => (id: PoolId) => roomIn(share.pools.get(id), used[id] ?? 0, besideOthers);
  const placement =
    claim.held === undefined
      ? choosePlacement(claim.needs, room(share.running), room(share.used))
      : settle(claim.held, share.pools, room(share.used));
  const short = lacking(placement, room(share.used));
  const reserved = isNew ? Object.keys(placement).find((id) => share.reserved[id] !== undefined) : undefined;
  const pool = short ?? reserved ?? Object.keys(placement).at(-1) ?? HOST;
  const keptFor = short === undefined && reserved !== undefined ? share.reserved[reserved] : undefined;
  const admitted = short === undefined && reserved === undefined;
  const givesWayTo = isNew || short === undefined ? undefined : share.newcomers[short];
  const { budgetBytes, othersBytes = 0 } = share.pools.get(pool) ?? {};
  return {
    admitted,
    mayWait: !admitted && mayFit(claim, placement, share, false),
    bytes: totalBytes(placement),
    ...(claim.estimatedBytes === undefined ? {} : { estimatedBytes: claim.estimatedBytes }),
    placement,
    ...(split === undefined ? {} : { split }),
    pool,
    neededBytes: placement[pool] ?? 0,
    budgetBytes,
    othersBytes: besideOthers ? othersBytes : 0,
    aheadBytes: share.used[pool] ?? 0,
    ...(keptFor === undefined ? {} : { keptFor }),
    ...(givesWayTo === undefined ? {} : { givesWayTo }),
    ahead: share.ahead[pool] ?? NOBODY,
  };
}

const NOBODY: readonly SlotName[] = [];

function after(share: Share, claim: MemoryClaim, { placement, admitted }: Verdict): Share {
  if (admitted) {
    const { ahead, used, firm, newcomers, running } = share;
    const newcomer = { slot: claim.slot, caller: claim.caller };
    return {
      ...share,
      running: claim.held === undefined ? addBytes(running, placement) : running,
      ahead: withName(ahead, claim.slot, placement),
      used: addBytes(used, placement),
      firm: claim.turn.group === 'always' ? addBytes(firm, placement) : firm,
      newcomers: claim.incumbent ? newcomers : { ...newcomers, ...Object.fromEntries(Object.keys(placement).map((id) => [id, newcomer])) },
    };
  }
  const { group } = claim.turn;
  // What is always loaded and gives way waits for its return from then on.
  const waits = group === 'always' || (!claim.incumbent && group !== 'unloaded' && group !== 'warm');
  if (!waits || !mayFit(claim, placement, share, true)) return share;
  const first = Object.keys(placement).map((id) => [id, share.reserved[id] ?? claim.slot] as const);
  return { ...share, reserved: { ...share.reserved, ...Object.fromEntries(first) } };
}

function withName(ahead: Share['ahead'], name: SlotName, placement: PoolBytes): Share['ahead'] {
  let all = ahead;
  for (const id in placement) {
    const names = all[id] ?? NOBODY;
    if ((placement[id] ?? 0) > 0 && names.length < MOST_NAMES) all = { ...all, [id]: [...names, name] };
  }
  return all;
}

/** Prefers a placement that displaces no other slot. */
function choosePlacement(needs: PlacementQuestion, unused: (id: PoolId) => number, available: (id: PoolId) => number): PoolBytes {
  const beside = placeMemory(needs, unused);
  return lacking(beside, unused) === undefined ? beside : placeMemory(needs, available);
}

/** What does not fit into memory set aside for a device is in the memory of the host. */
function settle(held: PoolBytes, pools: Share['pools'], room: (id: PoolId) => number): PoolBytes {
  let settled = held;
  for (const id in held) {
    const excess = pools.get(id)?.aside === true ? (held[id] ?? 0) - Math.max(0, room(id)) : 0;
    if (excess > 0) settled = addBytes(settled, { [id]: -excess, [HOST]: excess });
  }
  return settled;
}

function lacking(placement: PoolBytes, room: (id: PoolId) => number): PoolId | undefined {
  for (const id in placement) if ((placement[id] ?? 0) > room(id)) return id;
  return undefined;
}

function roomIn(pool: MemoryPool | undefined, usedBytes: number, besideOthers: boolean): number {
  if (pool?.budgetBytes === undefined) return Number.POSITIVE_INFINITY;
  return pool.budgetBytes - (besideOthers ? pool.othersBytes : 0) - usedBytes;
}

/** Whether it fits once all earlier on-demand slots have released their memory; `always` slots never do. */
function mayFit({ needs, held }: MemoryClaim, placement: PoolBytes, { firm, pools }: Share, besideOthers: boolean): boolean {
  const room = (id: PoolId): number => roomIn(pools.get(id), firm[id] ?? 0, besideOthers);
  return lacking(held === undefined ? placeMemory(chooseSplit(needs, room), room) : placement, room) === undefined;
}

function listCandidates(turns: readonly ShareTurn[]): readonly MemoryCandidate[] {
  const listed = turns.map(({ claim: { slot, priority, turn, incumbent }, verdict: { bytes, admitted } }) => ({
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

function verdictsOf(turns: readonly ShareTurn[], candidates: readonly MemoryCandidate[], last: MemoryShares | undefined) {
  const verdicts = new Map<SlotName, MemoryVerdict>();
  const isSameList = last?.candidates === candidates;
  for (const [index, turn] of turns.entries()) {
    const { slot } = turn.claim;
    const before = isSameList ? last.verdicts.get(slot) : undefined;
    const isSame = before !== undefined && (last?.turns[index] === turn || isSameExcept<string>({ ...before }, turn.verdict, 'candidates'));
    verdicts.set(slot, isSame ? before : { ...turn.verdict, candidates });
  }
  return verdicts;
}

const UNLIMITED = (): number => Number.POSITIVE_INFINITY;

/** Unlimited memory needs no order. */
function admitAll(claims: readonly MemoryClaim[], last: MemoryShares | undefined): MemoryShares {
  const verdicts = new Map<SlotName, MemoryVerdict>();
  const ofSize = new Map<number, MemoryVerdict>();
  const placements: PoolBytes[] = [];
  for (const claim of claims) {
    const placement = claim.held ?? placeMemory(claim.needs, UNLIMITED);
    const bytes = totalBytes(placement);
    const admitted = () => ({ ...decide({ ...claim, estimatedBytes: undefined }, NOTHING_GIVEN), candidates: NO_CANDIDATES });
    const verdict = ofSize.get(bytes) ?? reuse(last?.verdicts.get(claim.slot), admitted());
    ofSize.set(bytes, verdict);
    verdicts.set(claim.slot, verdict);
    placements.push(placement);
  }
  return { verdicts, admitted: sumBytes(placements), changesAt: undefined, turns: [], candidates: NO_CANDIDATES };
}
