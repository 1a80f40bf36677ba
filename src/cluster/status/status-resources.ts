/**
 * Statuses into the `status` of their SlotSpecs, by the replica that leads: each written only where the server has another one, the newest one
 * only, and no faster than somebody could read them.
 */
import type { KubeApi, KubeObject, Leadership, Reflector } from '../client/ports.ts';
import { SLOT_SPECS } from '../client/resource-types.ts';
import type { Clock, Report, StatusSink } from '../../reconciler/ports.ts';
import type { Failure } from '../../schema/failure.ts';
import type { Reason } from '../../schema/reasons.ts';
import type { SlotName } from '../../schema/names.ts';
import { FIELD_MANAGER } from '../../schema/object-labels.ts';
import { SLOT_RESOURCE, type SlotResourceStatus } from '../../schema/slot-resource.ts';
import type { SpecProblem } from '../../schema/slot-spec.ts';
import type { SlotStatus } from '../../schema/slot-status.ts';
import { describeRefusal, describeStatus, isSameStatus, isSetback, isTransitional, isUrgent } from './decide/slot-resource-status.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { SourceLog } from '../../platform/log.ts';
import { createWriteTurns } from './write-turns.ts';

export interface StatusResources extends StatusSink {
  /** Looks again whenever the copy of the SlotSpecs or the leadership changes, until the signal aborts: somebody may have altered a status, or made a slot anew. */
  start(signal: AbortSignal): void;
  /** Resolves when everything given so far is written, or has failed once. */
  flush(): Promise<void>;
}

interface StatusResourcesOptions {
  readonly api: Pick<KubeApi, 'apply' | 'namespace'>;
  readonly slots: Pick<Reflector, 'items' | 'noteWritten' | 'changes'>;
  readonly leadership: Pick<Leadership, 'leads' | 'term' | 'changes'>;
  /** The generation whose text was refused; `SlotResources` knows. */
  readonly generationOf: (slot: SlotName) => number | undefined;
  readonly clock: Clock;
  readonly log: SourceLog;
}

/** The API server has more to do than to take statuses. */
const WRITES_AT_ONCE = 4;
const GAP_MS = 200;
/** A difference that nobody waits for: a request began or ended, a counter grew. */
const QUIET_GAP_MS = 10_000;
/** Somebody alters what was written: putting it back faster would only be a fight. */
const REPAIR_GAP_MS = 30_000;
/** While others wait, what will soon be over is written less often: so much for each that waits, up to a limit. */
const GAP_PER_WAITING_MS = 10;
const LONGEST_CROWD_GAP_MS = 5000;
/** A controller that has just started has not asked every workload yet: for so long it does not take back what was written of one that was well. */
const SETTLING_MS = 3000;
/** Changes of the copy within this time are looked at together: most of them are our own writes. */
const LOOK_WITHIN_MS = 1000;
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 60_000;
/** Failures that say nothing about the one status that was to be written. */
const SERVER_REASONS: ReadonlySet<Reason> = new Set(['ApiUnreachable', 'ApiBusy', 'Unauthorized']);

type Wanted =
  | { readonly kind: 'status'; readonly status: SlotStatus }
  | { readonly kind: 'refused'; readonly problems: readonly SpecProblem[]; readonly generation: number; readonly at: number };

/** What is remembered of a slot's writes. */
interface Memory {
  /** When the last one began. */
  readonly writtenAt?: number;
  readonly written?: Wanted;
  /** The resource version that needs nothing: it has what is wanted, or is what the server made of it. */
  readonly settled: string | undefined;
  readonly failures: number;
  /** Of the first status that was given. */
  readonly firstAt: number;
  /** The next attempt after a failure. */
  readonly notBefore: number;
}

export function createStatusResources(options: StatusResourcesOptions): StatusResources {
  const { api, slots, leadership, clock } = options;
  const wanted = new Map<SlotName, Wanted>();
  const memories = new Map<SlotName, Memory>();
  let serverFailures = 0;
  let cancelLook: (() => void) | undefined;
  let term: AbortSignal | undefined;

  const turns = createWriteTurns<SlotName>({
    clock,
    concurrency: WRITES_AT_ONCE,
    turn(name, hurry) {
      const want = wanted.get(name);
      const memory = memories.get(name);
      const object = slots.items().get(name);
      // Gone, or going: nobody reads its status any more.
      if (!leadership.leads() || want === undefined || memory === undefined || object === undefined) return undefined;
      if (object.metadata.deletionTimestamp !== undefined) return undefined;
      const next = describe(name, want, api.namespace, object['status']);
      if (isSameStatus(next, object['status'])) {
        memories.set(name, { ...memory, settled: object.metadata.resourceVersion });
        return undefined;
      }
      const earliest = earliestWrite(memory, want, next, object['status'], turns.backlog());
      if (!hurry && clock.now() < earliest) return earliest;
      return write(name, want, next, object, memory);
    },
  });

  const write = async (
    name: SlotName,
    want: Wanted,
    next: SlotResourceStatus,
    object: KubeObject,
    memory: Memory,
  ): Promise<number | undefined> => {
    const writtenAt = clock.now();
    const remember = (changes: Partial<Memory>): void => {
      const present = memories.get(name);
      if (present !== undefined) memories.set(name, { ...present, ...changes });
    };
    const result = await sendStatus(api, name, next, object, leadership.term());
    if (result.ok) {
      serverFailures = 0;
      slots.noteWritten(result.value);
      remember({ writtenAt, written: want, settled: result.value.metadata.resourceVersion, failures: 0, notBefore: 0 });
      return wanted.get(name) === want ? undefined : clock.now();
    }
    const { failure } = result;
    if (failure.reason === 'Aborted') return undefined;
    if (failure.reason === 'NotFound') {
      remember({ settled: object.metadata.resourceVersion });
      return undefined;
    }
    if (SERVER_REASONS.has(failure.reason)) {
      if (serverFailures === 0) say(options.log, name, failure);
      serverFailures += 1;
      turns.pauseUntil(clock.now() + delayAfter(serverFailures));
      return clock.now();
    }
    // The copy is a moment behind; its next version brings another turn.
    if (memory.failures === 0 && failure.reason !== 'Conflict') say(options.log, name, failure);
    const failures = memory.failures + 1;
    remember({ writtenAt, failures, notBefore: clock.now() + delayAfter(failures) });
    return clock.now() + delayAfter(failures);
  };

  const want = (name: SlotName, next: Wanted): void => {
    wanted.set(name, next);
    const first: Memory = { settled: undefined, failures: 0, notBefore: 0, firstAt: clock.now() };
    memories.set(name, { ...(memories.get(name) ?? first), settled: undefined });
    ask(name);
  };
  const ask = (name: SlotName): void => {
    if (!leadership.leads()) return;
    const present = leadership.term();
    // The next term begins with a look at everything.
    if (present !== term) present.addEventListener('abort', turns.clear, { once: true });
    term = present;
    turns.ask(name);
  };
  const look = (): void => {
    cancelLook?.();
    cancelLook = undefined;
    if (!leadership.leads()) return;
    const items = slots.items();
    for (const name of wanted.keys()) {
      const object = items.get(name);
      if (object !== undefined && memories.get(name)?.settled !== object.metadata.resourceVersion) ask(name);
    }
  };

  return {
    write(report) {
      forgetAbsent(report, wanted, memories);
      for (const status of report.statuses) {
        const before = wanted.get(status.name);
        if (before?.kind !== 'status' || before.status !== status) want(status.name, { kind: 'status', status });
      }
      for (const [name, problems] of report.refused) {
        const generation = options.generationOf(name) ?? slots.items().get(name)?.metadata.generation ?? 0;
        const before = wanted.get(name);
        if (before?.kind === 'refused' && before.problems === problems && before.generation === generation) continue;
        want(name, { kind: 'refused', problems, generation, at: report.at });
      }
    },
    start(signal) {
      leadership.changes(look, signal);
      slots.changes(() => {
        cancelLook ??= clock.at(clock.now() + LOOK_WITHIN_MS, look);
      }, signal);
      signal.addEventListener('abort', () => cancelLook?.(), { once: true });
    },
    flush: async () => await turns.flush(),
  };
}

function forgetAbsent(report: Report, wanted: Map<SlotName, Wanted>, memories: Map<SlotName, Memory>): void {
  const present = new Set(report.statuses.map(({ name }) => name));
  for (const name of wanted.keys()) {
    if (present.has(name) || report.refused.has(name)) continue;
    wanted.delete(name);
    memories.delete(name);
  }
}

function describe(name: SlotName, want: Wanted, namespace: string, present: unknown): SlotResourceStatus {
  if (want.kind === 'status') return describeStatus(want.status, namespace, present);
  return describeRefusal({ name, generation: want.generation, problems: want.problems }, present, want.at);
}

function earliestWrite(memory: Memory, want: Wanted, next: SlotResourceStatus, present: unknown, waiting: number): number {
  if (memory.writtenAt === undefined) return isSetback(next, present) ? memory.firstAt + SETTLING_MS : memory.notBefore;
  const crowd = isTransitional(next) ? Math.min(waiting * GAP_PER_WAITING_MS, LONGEST_CROWD_GAP_MS) : 0;
  const gap = memory.written === want ? REPAIR_GAP_MS : isUrgent(next, present) ? Math.max(GAP_MS, crowd) : QUIET_GAP_MS;
  return Math.max(memory.notBefore, memory.writtenAt + gap);
}

/**
 * Never throws. Only while the object is as it was seen: another one of its name has a status of its own, and a replica that no longer leads must not
 * write over what the next one says. The server heeds no uid here, but the version.
 */
async function sendStatus(
  api: StatusResourcesOptions['api'],
  name: SlotName,
  status: SlotResourceStatus,
  { metadata: { resourceVersion } }: KubeObject,
  signal: AbortSignal,
): ReturnType<KubeApi['apply']> {
  const { apiVersion, kind } = SLOT_RESOURCE;
  const manifest = {
    apiVersion,
    kind,
    metadata: { name, namespace: api.namespace, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    status,
  };
  try {
    return await api.apply(SLOT_SPECS, manifest, { fieldManager: `${FIELD_MANAGER}-status`, subresource: 'status' }, signal);
  } catch (error) {
    return { ok: false, failure: { kind: 'retry', reason: 'ApiUnreachable', message: messageOf(error) } };
  }
}

function delayAfter(failures: number): number {
  return Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 20), LONGEST_DELAY_MS);
}

/** Once, not with each attempt: an API server that is away stays away for a while. */
function say(log: SourceLog, slot: SlotName, { reason, message }: Failure): void {
  log.warn({ slot, reason, error: message }, `Writing the status of slot "${slot}" failed; what the cluster says of it is out of date`);
}
