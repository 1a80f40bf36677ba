/**
 * Derives the desired state from the SlotSpecs of a namespace. The resource's name is the slot's name. A resource that is being deleted is no longer desired;
 * an invalid one keeps its last valid spec. Each read covers the whole copy, but parses only what changed.
 */
import type { KubeObject, OwnerReference, Reflector } from '../client/ports.ts';
import { parseOnce } from '../client/term-copies.ts';
import type { DesiredSlot, DesiredState, SlotSource } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { SlotName } from '../../schema/words/names.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { SLOT_RESOURCE } from '../../schema/slot/slot-resource.ts';
import type { SpecProblem } from '../../schema/slot/slot-spec.ts';
import type { SlotStatus } from '../../schema/status/slot-status.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import { parseSlotResource, recordLastGood, type LastGoodRecord, type ParsedResource } from './decide/parse-slot-resource.ts';
import { parseResourceStatus } from '../status/decide/slot-resource-status.ts';
import type { SourceLog } from '../../platform/log.ts';

export interface SlotResources extends SlotSource {
  /** Returns the owner of every object of the slot; undefined if there is no such resource or it is being deleted. */
  ownerOf(slot: SlotName): OwnerReference | undefined;
  /** Returns the generation at the last read, also of a refused slot. */
  generationOf(slot: SlotName): number | undefined;
  /** Returns the text that was in force at the last read, to be recorded in the status of the object with this uid; undefined if that object has none. */
  lastGoodOf(slot: SlotName, uid: string | undefined): LastGoodRecord | undefined;
  /** Returns the statuses that the leader published, without incomplete ones. */
  statuses(): ReadonlyMap<SlotName, SlotStatus>;
}

interface SlotResourcesOptions {
  readonly slots: Pick<Reflector, 'items' | 'health' | 'changes'>;
  readonly log: SourceLog;
  /** Monotonic milliseconds, on the clock of the reflectors. Default: those of the process. */
  readonly now?: () => number;
}

/** An older copy may be far from the truth. Until then a restart of the API server goes unnoticed. */
const STALE_AFTER_MS = 60_000;

/** One resource: a slot, or the reason why it cannot be one. */
interface Entry {
  readonly object: KubeObject;
  readonly parsed: ParsedResource | undefined;
  readonly problem: SpecProblem | undefined;
}

export function createSlotResources(options: SlotResourcesOptions): SlotResources {
  const { slots, log } = options;
  const now = options.now ?? (() => performance.now());
  let entries: ReadonlyMap<string, Entry> = new Map();
  let state: DesiredState = { slots: new Map(), refused: new Map(), problems: [] };
  let loggedLines: ReadonlySet<string> = new Set();
  const publishedStatus = parseOnce(({ metadata, status }) => {
    const slot = SlotName.safeParse(metadata.name);
    return slot.success ? parseResourceStatus(slot.data, status) : undefined;
  });

  const derive = (): DesiredState => {
    const items = slots.items();
    const next = new Map<string, Entry>();
    let changed = items.size !== entries.size;
    for (const [name, object] of items) {
      const before = entries.get(name);
      const entry = before?.object === object ? before : updateEntry(name, object, before);
      changed ||= !isSameEntry(before, entry);
      next.set(name, entry);
    }
    entries = next;
    if (changed) {
      state = gather(next.values());
      const lines = linesOf(state);
      for (const line of lines) if (!loggedLines.has(line)) log.warn({}, line);
      loggedLines = lines;
    }
    return state;
  };

  return {
    async read() {
      return findStale(slots.health(), now()) ?? ok(derive());
    },
    changes: (wake, signal) => slots.changes(wake, signal),
    ownerOf(slot) {
      const object = slots.items().get(slot);
      return object === undefined ? undefined : ownerReference(object);
    },
    generationOf: (slot) => entries.get(slot)?.parsed?.generation,
    lastGoodOf(slot, uid) {
      const parsed = entries.get(slot)?.parsed;
      return parsed?.lastGood === undefined || parsed.uid !== uid ? undefined : recordLastGood(parsed.lastGood);
    },
    statuses() {
      const statuses = [...slots.items().values()].flatMap((object) => publishedStatus(object) ?? []);
      return new Map(statuses.map((status) => [status.name, status]));
    },
  };
}

function updateEntry(name: string, object: KubeObject, before: Entry | undefined): Entry {
  if (object.metadata.deletionTimestamp !== undefined) return { object, parsed: undefined, problem: undefined };
  const slot = SlotName.safeParse(name);
  if (slot.success) return { object, parsed: parseSlotResource(slot.data, object, before?.parsed), problem: undefined };
  const message = `Delete this SlotSpec and create it under another name. ${slot.error.issues[0]?.message ?? ''}`;
  return { object, parsed: undefined, problem: { path: [], file: `${SLOT_RESOURCE.kind}/${name}`, message } };
}

function isSameEntry(before: Entry | undefined, after: Entry): boolean {
  return before === after || (before !== undefined && before.parsed === after.parsed && isSameValue(before.problem, after.problem));
}

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

/** Returns one log line for each problem. */
function linesOf(state: DesiredState): ReadonlySet<string> {
  const invalid = [...[...state.slots.values()].map(({ name, problems }) => [name, problems] as const), ...state.refused];
  const lines = invalid.flatMap(([name, problems]) =>
    problems.map((problem) => `${SLOT_RESOURCE.kind}/${name}: ${formatProblem(problem)}`),
  );
  return new Set([...lines, ...(state.problems ?? []).map((problem) => formatProblem(problem))]);
}

function findStale(health: ReturnType<Reflector['health']>, now: number): Result<never> | undefined {
  if (health.kind === 'starting') return fail('retry', 'SlotsUnreadable', 'Wait for the first list of SlotSpecs: it has not arrived yet');
  if (health.kind !== 'unreachable') return undefined;
  // Until then nobody knows which slots there are. That there are none would be the reason to stop every workload.
  if (!health.listed) {
    return fail(
      'retry',
      'SlotsUnreadable',
      `Restore the connection to the API server: SlotSpecs have never been listed (${health.message})`,
    );
  }
  const awayMs = now - health.sinceMs;
  if (awayMs < STALE_AFTER_MS) return undefined;
  const message = `Restore the connection to the API server: SlotSpecs have not been read for ${Math.round(awayMs / 1000)} s (${health.message})`;
  return fail('retry', 'SlotsUnreadable', message);
}

function ownerReference({ metadata }: KubeObject): OwnerReference | undefined {
  if (metadata.uid === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  // Without "blockOwnerDeletion", which requires permission to update finalizers: deletion need not wait for the slot's objects.
  return { apiVersion: SLOT_RESOURCE.apiVersion, kind: SLOT_RESOURCE.kind, name: metadata.name, uid: metadata.uid, controller: true };
}
