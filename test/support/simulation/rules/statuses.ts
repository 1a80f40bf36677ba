/** Statuses, conditions and the timeline: times move only with what they are times of, sinks get what is published, and entries tell what happened. */
import type { BoardSlot } from '../../../../src/reconciler/board.ts';
import type { SlotName, WorkloadId } from '../../../../src/schema/words/names.ts';
import { isSameValue } from '../../../../src/schema/words/same-value.ts';
import type { Condition, SlotStatus, TimelineEntry } from '../../../../src/schema/status/slot-status.ts';
import { changesWorld } from '../../../../src/reconciler/decide/facts/actions.ts';
import type { Attempt } from '../../../../src/reconciler/decide/facts/facts.ts';
import { isOnlyScaled, type Rule } from './rule.ts';

/** Between two looks at whether targets are there. */
const EVERY_MS = 1000;
/** A regular pass, one that waited for answers in vain, and the next one. */
const GONE_MS = 65_000;

export const judgeStatuses: Rule = ({ world, life, wrong }) => {
  /** Slots that were planned since the runtime could first be reached. */
  let seen = new Set<SlotName>();
  let before = new Map<SlotName, BoardSlot>();
  let seenBefore = new Set<SlotName>();
  let seq: number | undefined = life.lastSeq;
  let read = 0;
  let published = false;
  let lookedAt = { version: -1, at: 0 };
  const done = new Map<string, number>();
  const failures: { readonly slot: SlotName; readonly walls: readonly number[]; readonly message: string }[] = [];
  const known = new Set<string>();
  const told = new Set<string>();
  /** What the controller before this one published of slots to which this one has done nothing, and which are not as ready again as they were. */
  const resuming = new Map(life.earlier);
  let touched: readonly SlotName[] = [];
  /** Every change of a state that was published and not yet reported. */
  const moves: string[] = [];
  const goneSince = new Map<WorkloadId, number>();

  /** An autoscaler at work is no use of a slot, unless it starts one that had no replicas. */
  function isScaling(slot: BoardSlot): boolean {
    const last = before.get(slot.name);
    return last !== undefined && last.spec.cluster.replicas > 0 && isOnlyScaled(last, slot);
  }
  function judgeTimes(slot: BoardSlot, at: number): void {
    const last = seenBefore.has(slot.name) ? before.get(slot.name)?.status : undefined;
    const { name, status } = slot;
    const earlier = resuming.get(name);
    if (status.observedGeneration !== slot.generation) wrong(`The status of "${name}" is of generation ${status.observedGeneration}`);
    if (last === undefined && !seen.has(name)) return;
    if (earlier !== undefined && readiness(status) === readiness(earlier)) resuming.delete(name);
    const ready = status.conditions.find(({ type }) => type === 'Ready');
    const edited =
      last !== undefined && last.observedGeneration !== status.observedGeneration && slot.spec.load === 'always' && !isScaling(slot);
    if (edited && ready?.reason === 'IdleTimedOut') wrong(`Slot "${name}" was edited, and its idle time of before counts`);
    const begun = earlier?.state === status.state ? Math.min(earlier.since, at) : at;
    const since = last?.state === status.state ? last.since : begun;
    if (status.since !== since) wrong(`Slot "${name}" is ${status.state} since ${since}, and its status says ${status.since}`);
    for (const { type, status: value, lastTransitionAt } of status.conditions) {
      const old = last?.conditions.find((each) => each.type === type);
      const resumed = earlier?.conditions.find((each) => each.type === type);
      const changed = resumed?.status === value ? Math.min(resumed.lastTransitionAt, at) : at;
      const expected = old?.status === value ? old.lastTransitionAt : changed;
      if (lastTransitionAt !== expected)
        wrong(`Condition "${type}" of "${name}" is ${value} since ${expected}, and it says ${lastTransitionAt}`);
    }
  }
  function judgeEntry({ slot, message, at }: TimelineEntry): void {
    told.add(`${slot} ${at} ${message}`);
    const ended = /^(Started|Updated|Repaired|Stopped) "([^"]*)"/.exec(message);
    if (ended === null) return;
    const key = `${ended[1] === 'Stopped' ? 'stop' : 'start'} ${ended[2]}`;
    const left = (done.get(key) ?? 0) - 1;
    done.set(key, left);
    if (left < 0) wrong(`The timeline of "${slot}" says "${message}", which did not happen`);
  }
  function judgeReports(): void {
    for (; read < life.reports.length; read += 1) {
      const { entries = [], moves: reported = [] } = life.reports[read] ?? {};
      for (const { slot, from, to } of reported) {
        const expected = moves.shift();
        const move = `${slot} from ${from} to ${to}`;
        if (move !== expected) wrong(`A move was reported that is not the next one, ${expected}: ${move}`);
      }
      for (const entry of entries) {
        if (seq !== undefined && entry.seq !== seq + 1) wrong(`Entry ${entry.seq} of the timeline follows entry ${seq}`);
        seq = entry.seq;
        judgeEntry(entry);
      }
    }
    if (moves[0] !== undefined) wrong(`A move was not reported: ${moves[0]}`);
    const statuses = [...life.board.current().slots.values()].map(({ status }) => status).sort(byName);
    if (published && !isSameValue([...(life.reports.at(-1)?.statuses ?? [])].sort(byName), statuses))
      wrong('The statuses that were reported last are not those that are published');
    for (const { slot, walls, message } of failures.splice(0)) {
      if (!walls.some((at) => told.has(`${slot} ${at} ${message}`))) wrong(`The timeline of "${slot}" does not tell that "${message}"`);
    }
  }
  /** A target that is gone is noticed within a limit. */
  function judgeTargets(): void {
    const present = new Set(world.runtime.list().flatMap(({ id, phase }) => (phase === 'exited' ? [] : [id])));
    const now = world.clock.now();
    const targets = new Set([...life.board.current().slots.values()].flatMap((slot) => slot.targets.map(({ workload }) => workload)));
    for (const id of goneSince.keys()) if (present.has(id) || !targets.has(id)) goneSince.delete(id);
    for (const id of targets) {
      if (present.has(id)) continue;
      const since = goneSince.get(id) ?? now;
      goneSince.set(id, world.isReachable() ? since : now);
      if (now - since > GONE_MS) wrong(`Requests go to "${id}", which has been gone for ${now - since} ms`);
    }
  }
  /** A failure of a workload shows in the timeline at the time at which it is counted. */
  function expectTold(slot: SlotName, { at, kind, failure, workload }: Attempt): void {
    const key = `${at} ${kind} ${workload}`;
    if (known.has(key)) return;
    known.add(key);
    failures.push({ slot, walls: world.clock.wallsAt(at), message: failure.message });
  }
  return {
    answered({ name, failure, workload, id }) {
      if (failure !== undefined) return;
      const key = name === 'apply' ? `start ${workload?.name}` : name === 'stop' ? `stop ${id}` : undefined;
      if (key !== undefined) done.set(key, (done.get(key) ?? 0) + 1);
    },
    planned({ plan, desired, observed }) {
      // A text with a mistake is no removal.
      for (const name of resuming.keys()) if (!desired.slots.has(name) && !desired.refused.has(name)) resuming.delete(name);
      touched = observed.leads ? plan.actions.filter(changesWorld).map(({ slot }) => slot) : [];
      if (observed.runtime.kind === 'reachable') seen = new Set(desired.slots.keys());
      else seen = new Set([...seen].filter((name) => desired.slots.has(name)));
      for (const [name, { failures: all }] of observed.attempts) {
        for (const attempt of all) if (attempt.workload !== undefined || attempt.kind === 'apply') expectTold(name, attempt);
      }
    },
    published(view) {
      published = true;
      for (const slot of view.slots.values()) {
        judgeTimes(slot, view.at);
        const from = seenBefore.has(slot.name) ? before.get(slot.name)?.status.state : undefined;
        if (from !== undefined && from !== slot.status.state) moves.push(`${slot.name} from ${from} to ${slot.status.state}`);
      }
      for (const name of touched) resuming.delete(name);
      before = new Map(view.slots);
      seenBefore = seen;
    },
    look() {
      const { version } = life.board.current();
      if (version !== lookedAt.version || life.reports.length !== read) judgeReports();
      if (version !== lookedAt.version || world.clock.now() - lookedAt.at >= EVERY_MS) judgeTargets();
      else return;
      lookedAt = { version, at: world.clock.now() };
    },
  };
};

function readiness({ conditions }: Pick<SlotStatus, 'conditions'>): Condition['status'] | undefined {
  return conditions.find(({ type }) => type === 'Ready')?.status;
}

function byName(a: { readonly name: SlotName }, b: { readonly name: SlotName }): number {
  return a.name < b.name ? -1 : 1;
}
