/**
 * From a plan to what people and requests see: the board, statuses and the timeline. The loop calls `prepare` and then
 * `publish` once a pass, `begun` and `ended` for each action, and `report` to get what the sinks are to write.
 * Remembers what was published last, to tell what has changed.
 */
import { PIECES_PER_PART, type Parts } from '../platform/decide/parse-json.ts';
import type { SlotName } from '../schema/words/names.ts';
import { isSameExcept, isSameValue, reuse } from '../schema/words/same-value.ts';
import type { Caused, SlotStatus, StateMove, TimelineEntry } from '../schema/status/slot-status.ts';
import { EMPTY_BOARD, type BoardSlot, type BoardView } from './board.ts';
import { changesWorld, type Action } from './decide/facts/actions.ts';
import type { Decision, Desired, Observed, Plan, PublishedSlot } from './decide/facts/facts.ts';
import { recordFailures, type Recorded } from './decide/facts/recorded-failures.ts';
import { namesOf, boardSlot } from './decide/outcome/board-slot.ts';
import { stampConditions } from './decide/outcome/conditions.ts';
import { beginText, doneText } from './decide/outcome/explain.ts';
import {
  followSwap,
  NO_SWAP,
  describeChanges,
  statusFacts,
  statusOf,
  type SwapProgress,
  type NewEntry,
  type StatusFacts,
} from './decide/outcome/published-status.ts';
import { hasResumed, resumeTimes, type EarlierStatus } from './decide/outcome/resume-times.ts';
import type { Outcome } from './execute.ts';
import type { DesiredSlot, Report } from './ports.ts';

export type Reporter = ReturnType<typeof createReporter>;

/** What `publish` is to record. */
export interface Prepared {
  /** Slots whose published status changed. */
  readonly changes: readonly PublicationChange[];
  readonly publications: ReadonlyMap<SlotName, Publication>;
  readonly published: ReadonlyMap<SlotName, PublishedSlot>;
  readonly view: BoardView;
  readonly entries: readonly (readonly [SlotName, NewEntry])[];
  /** Slots whose earlier times are no longer to be resumed. */
  readonly resumed: readonly SlotName[];
}

/** All inputs of a slot's publication. */
interface Inputs {
  readonly slot: DesiredSlot;
  readonly decision: Decision;
  readonly facts: StatusFacts;
  readonly actions: readonly Action[];
  /** The runtime has answered since this controller began. */
  readonly seen: boolean;
}

interface Publication extends PublishedSlot {
  inputs: Inputs;
  readonly seen: boolean;
  readonly swap: SwapProgress;
  /** What this pass has to tell of a swap. */
  readonly swapEntries: readonly NewEntry[];
  /** Its failures as the status has them. */
  readonly recorded: readonly Recorded[];
  readonly status: SlotStatus;
  readonly board: BoardSlot;
}

const NO_ACTIONS: readonly Action[] = [];

/** `lastSeq`: number of the newest timeline entry of the previous run. `earlier`: the last statuses of that run. */
export function createReporter(lastSeq: number, earlier: ReadonlyMap<SlotName, EarlierStatus> = new Map()) {
  /** Slots whose times are still to be resumed, because nothing has been done to them. */
  const resuming = new Map(earlier);
  let seq = lastSeq;
  let publications: ReadonlyMap<SlotName, Publication> = new Map();
  let published: ReadonlyMap<SlotName, PublishedSlot> = new Map();
  let view = EMPTY_BOARD;
  let pending: TimelineEntry[] = [];
  let moves: StateMove[] = [];
  let caused: Caused[] = [];
  let changed = false;
  const add = (slot: SlotName, now: number, entry: NewEntry): void => {
    seq += 1;
    pending.push({ seq, at: now, slot, ...entry });
  };
  return {
    /** What was published of each slot. A slot that was never seen has no entry: it may turn out to be in any state. */
    get published() {
      return published;
    },
    /** Computes in slices how a plan changes the published board. Publishes nothing. */
    *prepare(plan: Plan, desired: Pick<Desired, 'slots' | 'refused'>, observed: Observed, now: number): Parts<Prepared> {
      const made = yield* publishSlots(publications, { plan, desired, observed, now, resuming });
      yield;
      return { ...made, ...nextBoard({ published, view }, made, { refused: desired.refused, now }) };
    },
    /** Records what was prepared, unless something else was published since; returns the board to publish. */
    publish(prepared: Prepared): BoardView {
      const { changes } = prepared;
      for (const name of prepared.resumed) resuming.delete(name);
      for (const [slot, entry] of prepared.entries) add(slot, prepared.view.at, entry);
      moves.push(...changes.flatMap(moveOf));
      changed ||= prepared.publications.size !== publications.size || changes.some(({ before, after }) => before?.status !== after.status);
      changed ||= !isSameValue([...view.refused], [...prepared.view.refused]);
      ({ publications, published, view } = prepared);
      return view;
    },
    /** Statuses as of the last plan, and the entries since the last call; undefined when nothing changed. */
    report(now: number): Report | undefined {
      if (!changed && pending.length === 0) return undefined;
      const since = { entries: pending, moves, caused };
      pending = [];
      caused = [];
      moves = [];
      changed = false;
      return { at: now, statuses: [...publications.values()].map(({ status }) => status), refused: view.refused, ...since };
    },
    begun(action: Action, now: number): void {
      const { slot, because } = action;
      if (changesWorld(action)) resuming.delete(slot);
      if (changesWorld(action)) add(slot, now, { kind: 'action', message: beginText(action), cause: because.reason });
      if (action.name === 'noteCrash' && action.args.failure !== undefined)
        add(slot, now, { kind: 'failure', message: action.args.failure.message, cause: action.args.failure.reason });
      if (action.name === 'stop' && action.args.failure !== undefined) {
        const { kind, reason, message } = action.args.failure;
        add(slot, now, { kind: kind === 'drift' ? 'drift' : 'failure', message, cause: reason });
      }
    },
    ended(action: Action, outcome: Outcome, now: number): void {
      const { slot, because, causedBy } = action;
      if (!changesWorld(action) || outcome.kind === 'none') return;
      if (outcome.kind === 'done' && causedBy !== undefined)
        caused.push({ slot, caller: causedBy, what: action.name === 'stop' ? 'evictions' : 'loads' });
      if (outcome.kind === 'done') add(slot, now, { kind: 'action', message: doneText(action), cause: because.reason });
      else add(slot, now, { kind: 'failure', message: outcome.failure.message, cause: outcome.failure.reason });
    },
    /** The next report contains everything again, because the sinks may have missed what came before. */
    renew: () => void (changed = true),
    note: (slot: SlotName, entry: NewEntry, now: number) => add(slot, now, entry),
  };
}

interface Pass {
  readonly plan: Plan;
  readonly desired: Pick<Desired, 'slots' | 'refused'>;
  readonly observed: Observed;
  readonly now: number;
  readonly resuming: Map<SlotName, EarlierStatus>;
}

/** What a pass published of a slot in place of what was published before. */
interface PublicationChange {
  readonly before: Publication | undefined;
  readonly after: Publication;
}

interface MadePublications extends Pick<Prepared, 'publications' | 'changes' | 'entries' | 'resumed'> {
  /** Whether the slots are the same as in the last pass, in the same order. */
  readonly isSameList: boolean;
}

function* publishSlots(
  last: ReadonlyMap<SlotName, Publication>,
  { plan, desired, observed, now, resuming }: Pass,
): Parts<MadePublications> {
  const actions = Map.groupBy(plan.actions, ({ slot }) => slot);
  const seen = observed.runtime.kind === 'reachable';
  const publications = new Map<SlotName, Publication>();
  const changes: PublicationChange[] = [];
  const entries: (readonly [SlotName, NewEntry])[] = [];
  // Should it be declared again, it is another slot.
  const resumed = [...resuming.keys()].filter((name) => !desired.slots.has(name) && !desired.refused.has(name));
  const names = last.keys();
  let isSameList = true;
  for (const [name, decision] of plan.decisions) {
    const slot = desired.slots.get(name);
    if (slot === undefined) continue;
    const before = last.get(name);
    const inputs: Inputs = {
      slot,
      decision,
      facts: statusFacts(slot, decision, observed),
      actions: actions.get(name) ?? NO_ACTIONS,
      seen: seen || before?.seen === true,
    };
    const earlier = resuming.get(name);
    const publication = publishSlot(before, inputs, earlier, now);
    // While the runtime has never answered, nothing is known of the slot, and so it was perhaps before.
    if (earlier !== undefined && publication.seen && hasResumed(publication.conditions, earlier)) resumed.push(name);
    isSameList &&= names.next().value === name;
    publications.set(name, publication);
    if (publications.size % PIECES_PER_PART === 0) yield;
    if (publication === before) continue;
    changes.push({ before, after: publication });
    for (const entry of [...describeChanges(publication, before?.seen === true ? before : undefined), ...publication.swapEntries])
      entries.push([name, entry]);
  }
  return { publications, changes, entries, resumed, isSameList: isSameList && publications.size === last.size };
}

/** Returns the board and the publications after these changes. */
function nextBoard(
  last: Pick<Prepared, 'published' | 'view'>,
  { publications, changes, isSameList }: MadePublications,
  { refused, now }: Pick<BoardView, 'refused'> & { readonly now: number },
): Pick<Prepared, 'published' | 'view'> {
  const present = { version: last.view.version + 1, at: now, refused };
  if (changes.length === 0 && isSameList) return { published: last.published, view: { ...last.view, ...present } };
  const renewed = isSameList ? changes.map(({ after }) => after) : [...publications.values()];
  const kept = isSameList ? last : undefined;
  const seen = renewed.filter((each) => each.seen);
  const published = new Map([...(kept?.published ?? []), ...seen.map((each) => [each.decision.name, each] as const)]);
  const slots = new Map([...(kept?.view.slots ?? []), ...renewed.map(({ board }) => [board.name, board] as const)]);
  const names = isSameList && changes.every(hasSameNames) ? last.view.names : namesOf(slots);
  return { published, view: { ...present, slots, names } };
}

/** The same object while its inputs are the same by value. */
function publishSlot(last: Publication | undefined, inputs: Inputs, earlier: EarlierStatus | undefined, now: number): Publication {
  const { seen } = inputs;
  if (last !== undefined && isMadeOfSame(last.inputs, inputs)) return last;
  if (last !== undefined && isSameExcept(last.inputs, inputs, 'decision')) {
    const isSame = isSameValue(last.inputs.decision, inputs.decision);
    // The next inputs are most likely made of the same objects, which are compared faster.
    if (isSame) last.inputs = inputs;
    if (isSame) return last;
    if (seen && earlier === undefined && isSameExcept(last.inputs.decision, inputs.decision, 'memory')) return withMemory(last, inputs);
  }
  const before = last?.seen === true ? last : undefined;
  const decision = { ...inputs.decision, targets: reuse(before?.decision.targets, inputs.decision.targets) };
  const { state, generation } = decision;
  const stamped = {
    state,
    since: before?.decision.state === state ? before.since : now,
    conditions: stampConditions(decision.conditions, before?.conditions ?? [], generation, now),
  };
  const { since, conditions } = resumeTimes(stamped, { earlier, before }, now);
  const published: PublishedSlot = { decision, since, conditions: reuse(before?.conditions, conditions) };
  const recorded = recordFailures(inputs.facts.failures, last?.recorded ?? [], now);
  const failures = recorded.map(({ failure }) => failure);
  const model = { now: inputs.facts.model, wanted: inputs.slot.spec.model.default };
  const { progress: swap, entries: swapEntries } = followSwap(last?.swap ?? NO_SWAP, inputs.decision, model);
  const status = reuse(last?.status, statusOf(inputs.slot, inputs.facts, published, failures));
  return { ...published, inputs, seen, swap, swapEntries, recorded, status, board: boardSlot(inputs, published, status) };
}

/** The same objects, as nearly all are: a comparison that costs next to nothing. */
function isMadeOfSame({ slot, decision, facts, actions, seen }: Inputs, present: Inputs): boolean {
  if (slot !== present.slot || decision !== present.decision || actions !== present.actions || seen !== present.seen) return false;
  const { model, restarts, failures } = present.facts;
  return facts.model === model && facts.restarts === restarts && facts.failures === failures;
}

/** Where memory was only shared out in another order, there is nothing else to tell of a slot. */
function withMemory(last: Publication, inputs: Inputs): Publication {
  const decision = { ...last.decision, memory: inputs.decision.memory };
  return { ...last, inputs, decision, swapEntries: [], board: boardSlot(inputs, { ...last, decision }, last.status) };
}

function moveOf({ before, after: { decision } }: PublicationChange): StateMove | readonly never[] {
  const from = before?.seen === true ? before.decision.state : undefined;
  return from === undefined || from === decision.state ? [] : { slot: decision.name, from, to: decision.state };
}

/** Whether requests name the slot as before: what `namesOf` looks at. */
function hasSameNames({ before, after }: PublicationChange): boolean {
  const { status, spec } = after.board;
  return before !== undefined && before.board.status.model === status.model && isSameValue(before.board.spec.model, spec.model);
}
