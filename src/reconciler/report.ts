/** From a plan to what people and requests see: statuses, the timeline, the board. Remembers the last one to tell what changed. */
import type { ModelId, SlotName } from '../spec/names.ts';
import { isSameValue } from '../spec/same-value.ts';
import type { SlotStatus, TimelineEntry } from '../spec/slot-status.ts';
import type { BoardSlot, BoardView } from './board.ts';
import { namesOf } from './decide/board-names.ts';
import { actionText, explainSlot } from './decide/explain.ts';
import { stampConditions } from './decide/conditions.ts';
import type { Action } from './decide/actions.ts';
import type { Decision, Desired, Observed, Plan, PreviousDecision } from './decide/facts.ts';
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
  let told: Told = { slots: new Map(), previous: new Map(), statuses: new Map(), names: new Map(), decisions: new Map() };
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
      changed ||= told.statuses !== last.statuses || !isSameValue([...refused], [...desired.refused]);
      refused = desired.refused;
      version += 1;
      return { version, at: now, slots: told.slots, names: told.names, refused: desired.refused };
    },
    report(now) {
      if (!changed && pending.length === 0) return undefined;
      const entries = pending;
      pending = [];
      changed = false;
      return { at: now, statuses: [...told.statuses.values()], refused, entries };
    },
    begun(action, now) {
      if (action.name === 'probe') return;
      add({ at: now, slot: action.slot, kind: 'action', message: `Begins to ${actionText(action)}`, cause: action.because.name });
      if (action.name === 'stop' && action.args.failure !== undefined) {
        const { kind, message } = action.args.failure;
        add({ at: now, slot: action.slot, kind: kind === 'drift' ? 'drift' : 'failure', message, cause: kind });
      }
    },
    ended(action, outcome, now) {
      if (action.name === 'probe' || outcome.kind === 'none') return;
      if (outcome.kind === 'done') {
        add({ at: now, slot: action.slot, kind: 'action', message: `Done: ${actionText(action)}`, cause: action.because.name });
      } else {
        add({ at: now, slot: action.slot, kind: 'failure', message: outcome.failure.message, cause: outcome.failure.reason });
      }
    },
    renew: () => void (changed = true),
    note: (slot, kind, message, now) => add({ at: now, slot, kind, message }),
  };
}

/** As of one plan. */
interface Told {
  readonly slots: ReadonlyMap<SlotName, BoardSlot>;
  readonly previous: ReadonlyMap<SlotName, PreviousDecision>;
  /** The same map while no status has changed. */
  readonly statuses: ReadonlyMap<SlotName, SlotStatus>;
  readonly names: BoardView['names'];
  readonly decisions: ReadonlyMap<SlotName, { readonly decision: Decision; readonly slot: DesiredSlot; readonly calm: boolean }>;
}

/** What is the same stays the same object, down to the maps. */
function retell(last: Told, plan: Plan, desired: Desired, observed: Observed, now: number, add: (entry: NewEntry) => void): Told {
  const actions = Map.groupBy(plan.actions, ({ slot }) => slot);
  const next = {
    slots: new Map<SlotName, BoardSlot>(),
    previous: new Map<SlotName, PreviousDecision>(),
    statuses: new Map<SlotName, SlotStatus>(),
  };
  const decisions = new Map<SlotName, { decision: Decision; slot: DesiredSlot; calm: boolean }>();
  let same = true;
  let sameStatuses = true;
  for (const [name, decision] of plan.decisions) {
    const slot = desired.slots.get(name);
    if (slot === undefined) continue;
    const before = last.decisions.get(name);
    const own = actions.get(name) ?? NO_ACTIONS;
    decisions.set(name, { decision, slot, calm: own.length === 0 });
    const old = { previous: last.previous.get(name), status: last.statuses.get(name), board: last.slots.get(name) };
    if (
      before?.decision === decision &&
      before.slot === slot &&
      before.calm &&
      own.length === 0 &&
      old.previous &&
      old.status &&
      old.board
    ) {
      next.previous.set(name, old.previous);
      next.statuses.set(name, old.status);
      next.slots.set(name, old.board);
      continue;
    }
    same = false;
    const following = follow(decision, old.previous, now);
    // What was never seen was not decided either: the first look then finds it in any state.
    if (old.previous !== undefined || observed.runtime.kind === 'reachable') next.previous.set(name, following);
    for (const entry of changes(decision, following, old.previous, now)) add(entry);
    const status = keepEqual(old.status, statusOf(slot, decision, following, observed));
    sameStatuses &&= status === old.status;
    next.statuses.set(name, status);
    next.slots.set(name, boardSlot(slot, decision, status, own, now));
  }
  if (next.slots.size !== last.slots.size) return { ...next, names: namesOf(next.slots), decisions };
  if (same) return last;
  const statuses = sameStatuses ? last.statuses : next.statuses;
  return { ...next, statuses, names: isNamedAlike(last.slots, next.slots) ? last.names : namesOf(next.slots), decisions };
}

function isNamedAlike(before: Told['slots'], after: Told['slots']): boolean {
  for (const [name, slot] of after) {
    const old = before.get(name);
    if (old === slot) continue;
    if (old?.model !== slot.model || old.status.model !== slot.status.model || old.aliases !== slot.aliases) return false;
  }
  return true;
}

const NO_ACTIONS: readonly Action[] = [];

function follow(decision: Decision, last: PreviousDecision | undefined, now: number): PreviousDecision {
  return {
    state: decision.state,
    since: last?.state === decision.state ? last.since : now,
    admission: decision.admission,
    targets: decision.targets,
    answering: decision.answering,
    conditions: stampConditions(decision.conditions, last?.conditions ?? [], decision.generation, now),
    capabilities: decision.capabilities,
    generation: decision.generation,
    wanted: decision.wanted,
    trouble: decision.trouble,
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
    const cause = finding === undefined ? {} : { cause: `${finding.name}: ${finding.message}` };
    const from = last?.state;
    const message = from === undefined ? `Found "${next.state}"` : `"${from}" to "${next.state}"`;
    found.push({ at: now, slot, kind: 'state', message, to: next.state, ...(from === undefined ? {} : { from }), ...cause });
  }
  const { trouble } = decision;
  if (trouble !== undefined && trouble.kind !== last?.trouble?.kind) {
    found.push({ at: now, slot, kind: 'failure', message: trouble.message, cause: trouble.reason });
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

function answeringModel({ spec }: DesiredSlot, { answering }: Decision, observed: Observed): ModelId {
  const origin = answering === undefined ? undefined : observed.acquaintances.get(answering)?.origin;
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
