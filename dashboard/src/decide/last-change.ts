/** The last change of a slot as phases on a time axis, from its timeline. Pure. */
import type { TimelineEntry } from '../types.ts';

type State = NonNullable<TimelineEntry['to']>;

export interface Phase {
  readonly state: State;
  readonly seconds: number;
}

export interface Mark {
  readonly seq: number;
  readonly kind: TimelineEntry['kind'];
  readonly message: string;
  /** Its place on the axis, from 0 to 1. */
  readonly share: number;
}

export interface LastChange {
  /** When it began, in Unix milliseconds. */
  readonly at: number;
  readonly seconds: number;
  readonly isOver: boolean;
  readonly phases: readonly Phase[];
  /** What happened besides changes of the state. */
  readonly marks: readonly Mark[];
}

/** What is further apart belongs to two changes, unless the slot was on its way in between. */
const PAUSE_MS = 30_000;
const ON_THE_WAY: ReadonlySet<State | null> = new Set(['pulling', 'starting', 'warming', 'unloading']);
const ANSWERING: ReadonlySet<State> = new Set(['serving', 'idle']);

interface Moment {
  readonly entry: TimelineEntry;
  readonly at: number;
  /** The states before and after it, as far as the timeline tells. */
  readonly before: State | null;
  readonly after: State | null;
}

/** `entries`: the oldest first. Undefined where nothing took any time. */
export function lastChange(entries: readonly TimelineEntry[], now: number): LastChange | undefined {
  const moments = momentsOf(entries);
  const newest = moments.at(-1);
  if (newest === undefined) return undefined;
  let first = moments.length - 1;
  while (first > 0 && belongsTogether(moments[first - 1], moments[first])) first -= 1;
  const own = moments.slice(first);
  const isOver = !ON_THE_WAY.has(newest.after);
  const at = own[0]?.at ?? now;
  const until = isOver ? newest.at : Math.max(now, newest.at);
  if (until <= at) return undefined;
  const phases = own.flatMap(({ at: from, after }, index): readonly Phase[] => {
    const seconds = ((own[index + 1]?.at ?? until) - from) / 1000;
    return after === null || seconds <= 0 ? [] : [{ state: ANSWERING.has(after) ? 'ready' : after, seconds }];
  });
  const marks = own.flatMap(({ entry: { seq, kind, message }, at: when }): readonly Mark[] =>
    kind === 'state' ? [] : [{ seq, kind, message, share: (when - at) / (until - at) }],
  );
  return { at, seconds: (until - at) / 1000, isOver, phases: joined(phases), marks };
}

function momentsOf(entries: readonly TimelineEntry[]): readonly Moment[] {
  const moments: Moment[] = [];
  for (const entry of entries) {
    const at = Date.parse(entry.at ?? '');
    const before = entry.from ?? moments.at(-1)?.after ?? null;
    if (!Number.isNaN(at)) moments.push({ entry, at: Math.max(at, moments.at(-1)?.at ?? at), before, after: entry.to ?? before });
  }
  return moments;
}

function belongsTogether(one: Moment | undefined, next: Moment | undefined): boolean {
  if (one === undefined || next === undefined) return false;
  if (ON_THE_WAY.has(one.after)) return true;
  // An edit of a file has no entry of its own, only that of the spec.
  const isEdit = next.entry.kind === 'edit' || (next.entry.kind === 'spec' && one.entry.kind !== 'edit');
  return !isEdit && next.at - one.at <= PAUSE_MS;
}

/** Neighbours of the same state become one. */
function joined(phases: readonly Phase[]): readonly Phase[] {
  const result: Phase[] = [];
  for (const phase of phases) {
    const last = result.at(-1);
    if (last?.state === phase.state) result[result.length - 1] = { ...last, seconds: last.seconds + phase.seconds };
    else result.push(phase);
  }
  return result;
}
