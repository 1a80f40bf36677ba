/** Derives the desired state from the SlotSpecs of a namespace. An invalid one keeps its last valid spec. */
import type { KubeObject, OwnerReference, Reflector } from '../client/ports.ts';
import { parseOnce, type IsUrgent } from '../client/object-copy.ts';
import { storedRollout, type Settlement } from '../../evaluation/decide/rollout-state.ts';
import type { DesiredSlot, DesiredState, SlotSource } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { SlotName } from '../../schema/words/names.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { canRollBack } from '../../schema/slot/scaling.ts';
import { SLOT_RESOURCE } from '../../schema/slot/slot-resource.ts';
import type { SpecProblem } from '../../schema/slot/slot-spec.ts';
import type { SlotStatus } from '../../schema/status/slot-status.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import type { CheckMaps } from './check-maps.ts';
import {
  isDesiredChange,
  parseSlotResource,
  recordLastGood,
  settleResource,
  type Judging,
  type LastGoodRecord,
  type ParsedResource,
} from './decide/parse-slot-resource.ts';
import { parseResourceStatus } from './decide/slot-resource-status.ts';
import type { SourceLog } from '../../platform/log.ts';

interface SlotResourcesOptions {
  readonly slots: Pick<Reflector, 'items' | 'health' | 'changes'>;
  readonly log: SourceLog;
  /** Only the leader logs problems of specs. Default: always. */
  readonly leads?: () => boolean;
  /** The present term of the leader, in which it alone judges new models. Default: one that never ends. */
  readonly term?: () => object;
  /** Default: no slot has cases. */
  readonly checks?: CheckMaps;
  /** Called for each slot of which something was settled. */
  readonly settled?: (slot: SlotName) => void;
  /** The clock of the reflectors. */
  readonly now?: () => number;
}

/** An older copy may be far from the truth. Until then, a restart of the API server goes unnoticed. */
const STALE_AFTER_MS = 60_000;

interface Entry {
  readonly object: KubeObject;
  readonly parsed: ParsedResource | undefined;
  readonly problem: SpecProblem | undefined;
}

export type SlotResources = ReturnType<typeof createSlotResources>;

export function createSlotResources(options: SlotResourcesOptions) {
  const { slots, log, leads = () => true, term = () => options, checks, now = () => performance.now() } = options;
  let entries: ReadonlyMap<string, Entry> = new Map();
  let state: DesiredState = { slots: new Map(), refused: new Map(), problems: [] };
  let isSettled = false;
  let logged: { readonly of?: DesiredState; readonly lines: ReadonlySet<string> } = { lines: new Set() };
  const publishedStatus = parseOnce(({ metadata, status }) => {
    const slot = SlotName.safeParse(metadata.name);
    return slot.success ? parseResourceStatus(slot.data, status) : undefined;
  });

  const derive = (): DesiredState => {
    const items = slots.items();
    const next = new Map<string, Entry>();
    let changed = items.size !== entries.size || isSettled;
    isSettled = false;
    const judging: Judging = leads() ? { term: term(), checksOf: checks?.of } : { term: undefined };
    for (const [name, object] of items) {
      const before = entries.get(name);
      // A rollout also depends on its cases, and on who leads.
      const isKnown = before?.object === object && !canRollBack(before.parsed?.newest?.spec.rollout);
      const entry = isKnown ? before : updateEntry(name, object, before, judging);
      changed ||= !isSameEntry(before, entry);
      next.set(name, entry);
    }
    entries = next;
    if (changed) state = gather(next.values());
    if (logged.of !== state && leads()) {
      const lines = linesOf(state);
      for (const line of lines) if (!logged.lines.has(line)) log.warn({}, line);
      logged = { of: state, lines };
    }
    return state;
  };

  const source: SlotSource = {
    async read() {
      const stale = findStale(slots.health(), now());
      if (stale !== undefined) return stale;
      if (leads())
        await checks?.prepare(
          slots
            .items()
            .values()
            .map((object) => object['spec']),
        );
      return ok(derive());
    },
    changes(wake, signal) {
      slots.changes(wake, signal);
      checks?.changes(wake, signal);
    },
    settle(slot: SlotName, settlement: Settlement) {
      const entry = entries.get(slot);
      const parsed = entry?.parsed && leads() ? settleResource(entry.parsed, settlement) : entry?.parsed;
      if (entry === undefined || parsed === entry.parsed) return;
      entries = new Map(entries).set(slot, { ...entry, parsed });
      isSettled = true;
      options.settled?.(slot);
    },
  };

  return {
    ...source,
    /** Undefined if there is no such resource or it is being deleted. */
    ownerOf(slot: SlotName): OwnerReference | undefined {
      const object = slots.items().get(slot);
      return object === undefined ? undefined : ownerReference(object);
    },
    /** The generation at the last read, also of a refused slot. */
    generationOf: (slot: SlotName): number | undefined => entries.get(slot)?.parsed?.generation,
    /** The text in force of the object with this uid. */
    lastGoodOf(slot: SlotName, uid: string | undefined): LastGoodRecord | undefined {
      const parsed = entries.get(slot)?.parsed;
      return parsed?.lastGood === undefined || parsed.uid !== uid ? undefined : recordLastGood(parsed.lastGood);
    },
    /** What the next leader must know of the rollout of the object with this uid. */
    rolloutOf(slot: SlotName, uid: string | undefined): Readonly<Record<string, unknown>> | undefined {
      const parsed = entries.get(slot)?.parsed;
      return parsed?.rollout?.accepted === undefined || parsed.uid !== uid ? undefined : storedRollout(parsed.rollout);
    },
    /** The text in force, or one that was rolled back. */
    revisionOf(slot: SlotName, uid: string | undefined): LastGoodRecord | undefined {
      const parsed = entries.get(slot)?.parsed;
      if (parsed === undefined || parsed.uid !== uid) return undefined;
      const text = parsed.rollout?.rolledBack === undefined ? parsed.lastGood : parsed.newest;
      return text && recordLastGood(text);
    },
    /** The statuses that the leader published, without incomplete ones. */
    statuses(): ReadonlyMap<SlotName, SlotStatus> {
      const statuses = [...slots.items().values()].flatMap((object) => publishedStatus(object) ?? []);
      return new Map(statuses.map((status) => [status.name, status]));
    },
  };
}

/** New slots follow one another within this time where somebody applies many. */
const CALM_MS = 1000;

/** Whether a change wakes the loop at once: each edit and the first new slot do; those that follow it share passes. */
export function createSlotUrgency(now: () => number = () => performance.now()): IsUrgent {
  let createdAt = Number.NEGATIVE_INFINITY;
  return (before, after) => {
    if (before !== undefined) return isDesiredChange(before, after);
    const isFirst = now() - createdAt > CALM_MS;
    createdAt = now();
    return isFirst;
  };
}

function updateEntry(name: string, object: KubeObject, before: Entry | undefined, judging: Judging): Entry {
  if (object.metadata.deletionTimestamp !== undefined) return { object, parsed: undefined, problem: undefined };
  const slot = SlotName.safeParse(name);
  if (slot.success) return { object, parsed: parseSlotResource(slot.data, object, before?.parsed, judging), problem: undefined };
  const message = `The name of this SlotSpec is not valid: delete it and create it under another name. ${slot.error.issues[0]?.message ?? ''}`;
  return { object, parsed: undefined, problem: { path: [], file: `${SLOT_RESOURCE.kind}/${name}`, message } };
}

const isSameEntry = (before: Entry | undefined, after: Entry): boolean =>
  before === after || (before !== undefined && before.parsed === after.parsed && isSameValue(before.problem, after.problem));

function gather(entries: Iterable<Entry>): DesiredState {
  const slots = new Map<SlotName, DesiredSlot>();
  const refused = new Map<SlotName, readonly SpecProblem[]>();
  const problems: SpecProblem[] = [];
  for (const { parsed, problem } of entries) {
    if (problem !== undefined) problems.push(problem);
    if (parsed?.slot !== undefined) slots.set(parsed.name, parsed.slot);
    else if (parsed !== undefined) refused.set(parsed.name, parsed.problems);
  }
  return { slots, refused, problems };
}

function linesOf({ slots, refused, problems: others = [] }: DesiredState): ReadonlySet<string> {
  const invalid = [...[...slots.values()].map(({ name, problems }) => [name, problems] as const), ...refused];
  const lines = invalid.flatMap(([name, problems]) => problems.map((each) => `${SLOT_RESOURCE.kind}/${name}: ${formatProblem(each)}`));
  return new Set([...lines, ...others.map((problem) => formatProblem(problem))]);
}

function findStale(health: ReturnType<Reflector['health']>, now: number): Result<never> | undefined {
  const unreadable = (message: string): Result<never> => fail('retry', 'SlotsUnreadable', message);
  if (health.kind === 'starting') return unreadable('The first list of SlotSpecs has not arrived yet: wait for it');
  if (health.kind !== 'unreachable') return undefined;
  // Nobody knows which slots there are. An empty set would stop every workload.
  if (!health.listed) return unreadable(`SlotSpecs have never been listed: ${health.message}`);
  const awayMs = now - health.sinceMs;
  return awayMs < STALE_AFTER_MS
    ? undefined
    : unreadable(`SlotSpecs have not been read for ${Math.round(awayMs / 1000)} s: ${health.message}`);
}

function ownerReference({ metadata }: KubeObject): OwnerReference | undefined {
  if (metadata.uid === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  // No "blockOwnerDeletion", which requires permission to update finalizers: deletion need not wait for these objects.
  return { apiVersion: SLOT_RESOURCE.apiVersion, kind: SLOT_RESOURCE.kind, name: metadata.name, uid: metadata.uid, controller: true };
}
