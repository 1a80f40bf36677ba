/** From a plan to what people and requests see: statuses, the timeline, the board. Remembers the last one to tell what changed. */
import type { ModelId, SlotName } from '../schema/names.ts';
import { isSameValue } from '../schema/same-value.ts';
import type { SlotStatus, TimelineEntry } from '../schema/slot-status.ts';
import type { BoardSlot, BoardView } from './board.ts';
import { namesOf } from './decide/outcome/board-names.ts';
import { actionText, explainSlot } from './decide/outcome/explain.ts';
import { stampConditions } from './decide/outcome/conditions.ts';
import { changesWorld, type Action } from './decide/facts/actions.ts';
import type { Decision, Desired, Observed, Plan, PreviousDecision } from './decide/facts/facts.ts';
import type { Outcome } from './execute.ts';
import type { DesiredSlot, Report } from './ports.ts';

export interface Reporter {
  readonly previous: ReadonlyMap<SlotName, PreviousDecision>;
  /** Takes a plan in; answers the board to publish. */
  take(plan: Plan, desired: Desired, observed: Observed, now: number): BoardView;
  /** Statuses as of the last plan, and the entries since the last call; undefined when nothing changed. */
  report(now: number): Report | undefined;
  begun(action: Action, now: number): void;
  ended(action: Action, outcome: Outcome, now: number): void;
  /** The next report tells everything again: whoever listens may have missed what came before. */
  renew(): void;
  note(slot: SlotName, kind: TimelineEntry['kind'], message: string, now: number): void;
}

type NewEntry = Omit<TimelineEntry, 'seq'>;

/** `lastSeq`: of the newest timeline entry of an earlier life. */
export function createReporter(lastSeq: number): Reporter {
  let seq = lastSeq;
  let version = 0;
  let told = NOTHING_TOLD;
  let pending: TimelineEntry[] = [];
  let changed = false;
  let refused: Report['refused'] = new Map();
  const add = (entry: NewEntry): void => {
    seq += 1;
    pending.push({ seq, ...entry });
  };
  return {
    get previous() {
      return told.previous;
    },
    take(plan, desired, observed, now) {
      const last = told;
      told = retell(last, plan, desired, observed, now, add);
      changed ||= (told !== last && !isSameStatuses(last.told, told.told)) || !isSameValue([...refused], [...desired.refused]);
      refused = desired.refused;
      version += 1;
      return { version, at: now, slots: told.slots, names: told.names, refused: desired.refused };
    },
    report(now) {
      if (!changed && pending.length === 0) return undefined;
      const entries = pending;
      pending = [];
      changed = false;
      return { at: now, statuses: [...told.told.values()].map(({ status }) => status), refused, entries };
    },
    begun(action, now) {
      if (changesWorld(action))
        add({ at: now, slot: action.slot, kind: 'action', message: `Begins to ${actionText(action)}`, cause: action.because.reason });
      if (action.name === 'noteCrash' && action.args.failure !== undefined)
        add({ at: now, slot: action.slot, kind: 'failure', message: action.args.failure.message, cause: action.args.failure.reason });
      if (action.name === 'stop' && action.args.failure !== undefined) {
        const { kind, reason, message } = action.args.failure;
        add({ at: now, slot: action.slot, kind: kind === 'drift' ? 'drift' : 'failure', message, cause: reason });
      }
    },
    ended(action, outcome, now) {
      if (!changesWorld(action) || outcome.kind === 'none') return;
      if (outcome.kind === 'done') {
        add({ at: now, slot: action.slot, kind: 'action', message: `Done: ${actionText(action)}`, cause: action.because.reason });
      } else {
        add({ at: now, slot: action.slot, kind: 'failure', message: outcome.failure.message, cause: outcome.failure.reason });
      }
    },
    renew: () => void (changed = true),
    note: (slot, kind, message, now) => add({ at: now, slot, kind, message }),
  };
}

/** What was told of one slot. */
interface SlotTold {
  readonly decision: Decision;
  readonly slot: DesiredSlot;
  /** Nothing was to be done. */
  readonly calm: boolean;
  /** Undefined while the slot was never seen: the first look then finds it in any state. */
  readonly previous: PreviousDecision | undefined;
  readonly status: SlotStatus;
  readonly board: BoardSlot;
}

/** As of one plan. */
interface Told {
  readonly told: ReadonlyMap<SlotName, SlotTold>;
  readonly slots: ReadonlyMap<SlotName, BoardSlot>;
  readonly previous: ReadonlyMap<SlotName, PreviousDecision>;
  readonly names: BoardView['names'];
}

const NOTHING_TOLD: Told = { told: new Map(), slots: new Map(), previous: new Map(), names: new Map() };
const NO_ACTIONS: readonly Action[] = [];

/** What is the same stays the same object, down to the whole: of thousands of slots few change at a time. */
function retell(last: Told, plan: Plan, desired: Desired, observed: Observed, now: number, add: (entry: NewEntry) => void): Told {
  const actions = Map.groupBy(plan.actions, ({ slot }) => slot);
  const fresh = new Map<SlotName, SlotTold>();
  let before = 0;
  for (const [name, decision] of plan.decisions) {
    const slot = desired.slots.get(name);
    if (slot === undefined) continue;
    const old = last.told.get(name);
    const own = actions.get(name) ?? NO_ACTIONS;
    if (old !== undefined) before += 1;
    if (old?.decision === decision && old.slot === slot && old.calm && own.length === 0) continue;
    fresh.set(name, tellSlot(old, slot, decision, own, observed, now, add));
  }
  const same = before === last.told.size && before === plan.decisions.size;
  if (same && fresh.size === 0) return last;
  const told = same ? new Map(last.told) : new Map<SlotName, SlotTold>();
  for (const name of same ? fresh.keys() : plan.decisions.keys()) {
    const each = fresh.get(name) ?? last.told.get(name);
    if (each !== undefined) told.set(name, each);
  }
  return assemble(last, told, same ? fresh : told, same);
}

function assemble(last: Told, told: Told['told'], changed: Told['told'], same: boolean): Told {
  const slots = same ? new Map(last.slots) : new Map<SlotName, BoardSlot>();
  const previous = same ? new Map(last.previous) : new Map<SlotName, PreviousDecision>();
  let renamed = !same;
  for (const [name, each] of changed) {
    slots.set(name, each.board);
    if (each.previous !== undefined) previous.set(name, each.previous);
    renamed ||= !isNamedAlike(last.slots.get(name), each.board);
  }
  return { told, slots, previous, names: renamed ? namesOf(slots) : last.names };
}

function isNamedAlike(before: BoardSlot | undefined, after: BoardSlot): boolean {
  return before?.model === after.model && before.status.model === after.status.model && before.aliases === after.aliases;
}

function tellSlot(
  old: SlotTold | undefined,
  slot: DesiredSlot,
  decision: Decision,
  actions: readonly Action[],
  observed: Observed,
  now: number,
  add: (entry: NewEntry) => void,
): SlotTold {
  const next = follow(decision, old?.previous, now);
  for (const entry of changes(decision, next, old?.previous, now)) add(entry);
  const status = keepEqual(old?.status, statusOf(slot, decision, next, observed));
  const seen = old?.previous !== undefined || observed.runtime.kind === 'reachable';
  const board = boardSlot(slot, decision, status, actions, now);
  return { decision, slot, calm: actions.length === 0, previous: seen ? next : undefined, status, board };
}

function isSameStatuses(before: Told['told'], after: Told['told']): boolean {
  if (before.size !== after.size) return false;
  for (const [name, { status }] of after) if (before.get(name)?.status !== status) return false;
  return true;
}

function follow(decision: Decision, last: PreviousDecision | undefined, now: number): PreviousDecision {
  return {
    state: decision.state,
    since: last?.state === decision.state ? last.since : now,
    admission: decision.admission,
    targets: decision.targets,
    serving: decision.serving,
    conditions: stampConditions(decision.conditions, last?.conditions ?? [], decision.generation, now),
    capabilities: decision.capabilities,
    generation: decision.generation,
    wanted: decision.wanted,
    waitingReason: decision.waitingReason,
  };
}

function changes(decision: Decision, next: PreviousDecision, last: PreviousDecision | undefined, now: number): readonly NewEntry[] {
  const slot = decision.name;
  const found: NewEntry[] = [];
  if (last?.generation !== decision.generation) {
    found.push({ at: now, slot, kind: 'spec', message: `Generation ${decision.generation} is in force` });
  }
  if (last?.state !== next.state) {
    const finding = decision.findings[0];
    const cause = finding === undefined ? {} : { cause: `${finding.reason}: ${finding.message}` };
    const from = last?.state;
    const message = from === undefined ? `Found "${next.state}"` : `"${from}" to "${next.state}"`;
    found.push({ at: now, slot, kind: 'state', message, to: next.state, ...(from === undefined ? {} : { from }), ...cause });
  }
  const { waitingReason } = decision;
  if (waitingReason !== undefined && waitingReason.kind !== last?.waitingReason?.kind) {
    found.push({ at: now, slot, kind: 'failure', message: waitingReason.message, cause: waitingReason.reason });
  }
  for (const condition of next.conditions) {
    const before = last?.conditions.find(({ type }) => type === condition.type);
    const told = condition.type === 'Stalled' || condition.type === 'SpecValid' || condition.type === 'DriftDetected';
    const worthIt =
      condition.status !== before?.status && (before !== undefined || (condition.status === 'True') !== (condition.type === 'SpecValid'));
    if (!told || !worthIt) continue;
    const kind = condition.type === 'DriftDetected' && condition.status === 'True' ? 'drift' : 'condition';
    found.push({ at: now, slot, kind, message: `${condition.type} is ${condition.status}: ${condition.message}`, cause: condition.reason });
  }
  return found;
}

function statusOf(slot: DesiredSlot, decision: Decision, next: PreviousDecision, observed: Observed): SlotStatus {
  const target = decision.targets[0];
  const starts = observed.attempts.get(slot.name)?.starts ?? 0;
  return {
    name: slot.name,
    state: decision.state,
    conditions: next.conditions,
    observedGeneration: slot.generation,
    provider: slot.spec.provider,
    backend: slot.spec.backend,
    model: answeringModel(slot, decision, observed),
    ...(target === undefined ? {} : { endpoint: `http://${target.endpoint.host}:${target.endpoint.port}` }),
    ...(decision.replicas === undefined ? {} : { replicas: decision.replicas }),
    ...(decision.memoryBytes === undefined ? {} : { memoryBytes: decision.memoryBytes }),
    restarts: Math.max(0, starts - 1),
    since: next.since,
    ...(decision.progress === undefined ? {} : { progress: decision.progress }),
  };
}

function answeringModel({ spec }: DesiredSlot, { serving }: Decision, observed: Observed): ModelId {
  const origin = serving === undefined ? undefined : observed.histories.get(serving)?.origin;
  return origin?.model.id ?? spec.model.default;
}

function boardSlot(slot: DesiredSlot, decision: Decision, status: SlotStatus, actions: readonly Action[], now: number): BoardSlot {
  let text: string | undefined;
  return {
    name: slot.name,
    state: decision.state,
    provider: slot.spec.provider,
    capabilities: decision.capabilities,
    model: slot.spec.model.default,
    aliases: slot.spec.model.aliases,
    admission: decision.admission,
    targets: decision.targets,
    status,
    spec: slot.spec,
    generation: slot.generation,
    problems: slot.problems,
    // Written when somebody asks: most views are replaced unread.
    get explanation() {
      text ??= explainSlot(decision, actions, now);
      return text;
    },
  };
}

/** The old object where nothing in it changed, so that nobody takes it for news. */
function keepEqual(before: SlotStatus | undefined, after: SlotStatus): SlotStatus {
  if (before === undefined) return after;
  const { conditions, progress, replicas, ...rest } = after;
  const same =
    Object.entries(rest).every(([key, value]) => Reflect.get(before, key) === value) &&
    (before.endpoint === undefined) === (after.endpoint === undefined) &&
    before.progress?.doneBytes === progress?.doneBytes &&
    isSameValue(before.replicas, replicas) &&
    conditions.every((condition, index) => condition === before.conditions[index]);
  return same ? before : after;
}
