/**
 * Who comes first where memory is short. Slots that load on demand take turns: one that has loaded keeps its memory for as long as it took to load (1 s to 30 s)
 * while requests come, and only then gives way to the one whose requests have waited longest. So every slot that is asked for gets its turn, and at least half of
 * the time is spent on requests. Idle slots give way at once: first the lowest priority, then what is read from the disk fastest, then what was not used for longest. Pure.
 */
import type { SlotName } from '../../../schema/names.ts';
import type { MemoryRequest } from './share-memory.ts';

/** Why a slot has its place in the order, the best place first. */
export const MEMORY_GROUPS = ['always', 'loading', 'turn', 'waiting', 'served', 'idle', 'unloaded'] as const;
export type MemoryGroup = (typeof MEMORY_GROUPS)[number];

export interface Turn {
  readonly group: MemoryGroup;
  /** Until then the place holds unless requests come or end, in monotonic milliseconds; undefined where time does not change it. */
  readonly until: number | undefined;
}

const SHORTEST_TURN_MS = 1000;
const LONGEST_TURN_MS = 30_000;
/** Without a request for this part of its turn, a slot is idle: a client that sends one request after another pauses for less. */
const PAUSE = 1 / 4;

export interface TurnFacts {
  readonly onDemand: boolean;
  /** A request is in flight or waiting. */
  readonly busy: boolean;
  /** It is running or being started. */
  readonly incumbent: boolean;
  /** Since when it passes its probes; undefined while it does not. Monotonic milliseconds. */
  readonly passingSince: number | undefined;
  /** When its workload was started, or first seen. */
  readonly startedAt: number | undefined;
  readonly lastActiveAt: number;
  readonly now: number;
}

export function turnOf({ onDemand, busy, incumbent, passingSince, startedAt, lastActiveAt, now }: TurnFacts): Turn {
  if (!onDemand) return { group: 'always', until: undefined };
  if (!incumbent) return { group: busy ? 'waiting' : 'unloaded', until: undefined };
  if (passingSince === undefined) return { group: 'loading', until: undefined };
  const loadMs = passingSince - (startedAt ?? passingSince);
  const turnMs = Math.min(LONGEST_TURN_MS, Math.max(SHORTEST_TURN_MS, loadMs));
  const end = passingSince + turnMs;
  const until = busy ? end : Math.min(end, lastActiveAt + turnMs * PAUSE);
  if (now < until) return { group: 'turn', until };
  return { group: busy ? 'served' : 'idle', until: undefined };
}

const PLACES: Readonly<Record<MemoryGroup, number>> = { always: 0, loading: 0, turn: 0, waiting: 1, served: 2, idle: 3, unloaded: 4 };

/**
 * The order in which memory is given out. Where a slot of lower priority is asked for, the idle ones come after it: they would keep it from being served at all. And
 * for a slot that is neither asked for nor running, nothing else gives way.
 */
export function inOrder<Request extends MemoryRequest>(requests: readonly Request[]): readonly Request[] {
  const lowestAsked = Math.min(...requests.filter(isAsked).map(({ priority }) => priority));
  const pressed = requests.some(({ turn, priority }) => turn.group === 'idle' && priority > lowestAsked);
  const yields = ({ turn: { group } }: Request): number => (group === 'unloaded' ? 2 : group === 'idle' && pressed ? 1 : 0);
  return [...requests].sort(
    (a, b) =>
      yields(a) - yields(b) || b.priority - a.priority || placeOf(a) - placeOf(b) || compareWithin(a, b) || compareNames(a.slot, b.slot),
  );
}

function isAsked({ busy, turn: { group } }: MemoryRequest): boolean {
  return busy || group === 'loading' || group === 'turn';
}

/** What is to run always and does not run yet waits as others do, before all that load on demand. */
function placeOf({ turn, incumbent }: MemoryRequest): number {
  return turn.group === 'always' && !incumbent ? PLACES.waiting : PLACES[turn.group];
}

function compareWithin(a: MemoryRequest, b: MemoryRequest): number {
  const always = Number(b.turn.group === 'always') - Number(a.turn.group === 'always');
  if (always !== 0) return always;
  if (a.turn.group === 'waiting') return (a.waitingSince ?? 0) - (b.waitingSince ?? 0);
  if (a.turn.group === 'idle') return b.reloadBytes - a.reloadBytes || b.lastActiveAt - a.lastActiveAt;
  return b.lastActiveAt - a.lastActiveAt;
}

function compareNames(a: SlotName, b: SlotName): number {
  return a < b ? -1 : a === b ? 0 : 1;
}
