/** Publishes the newest status of each slot on the leader, not faster than anyone could read it. */
import { NO_OBSERVER, type KubeObserver, type Written } from '../client/client-observer.ts';
import type { KubeApi, KubeObject, Leadership, Reflector } from '../client/ports.ts';
import { SLOT_SPECS } from '../client/decide/resource-path.ts';
import type { Clock, Report } from '../../reconciler/ports.ts';
import type { Failure, Result } from '../../schema/words/failure.ts';
import type { Reason } from '../../schema/status/reasons.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { defined, FIELD_MANAGER } from '../../schema/pod/kube-fields.ts';
import { SlotResourceStatus } from '../../schema/slot/slot-resource.ts';
import type { SpecProblem } from '../../schema/slot/slot-spec.ts';
import type { SlotStatus } from '../../schema/status/slot-status.ts';
import * as statuses from './decide/slot-resource-status.ts';
import type { SourceLog } from '../../platform/log.ts';
import { createWriteQueue } from './write-queue.ts';

interface StatusResourcesOptions {
  readonly api: Pick<KubeApi, 'apply' | 'namespace'>;
  readonly slots: Pick<Reflector, 'items' | 'noteWritten' | 'changes'>;
  readonly leadership: Pick<Leadership, 'leads' | 'term' | 'changes'>;
  readonly generationOf: (slot: SlotName) => number | undefined;
  readonly lastGoodOf: (slot: SlotName, uid: string | undefined) => SlotResourceStatus['lastGood'];
  /** Default: no new model is judged. */
  readonly rolloutOf?: (slot: SlotName, uid: string | undefined) => SlotResourceStatus['rollout'];
  readonly clock: Clock;
  readonly log: SourceLog;
  readonly observer?: Pick<KubeObserver, 'publicationEnded'>;
}

const AS_STATUS = { fieldManager: `${FIELD_MANAGER}-status`, subresource: 'status' } as const;
const WRITES_AT_ONCE = 4;
const GAP_MS = 200;
/** Delay for changes without urgency: a request began or ended, a counter grew. */
const QUIET_GAP_MS = 10_000;
/** Gap before a status that another client has changed back: faster writes would only be a fight. */
const REPAIR_GAP_MS = 30_000;
/** A start passes several states within seconds, and none of the first ones is worth a write of its own. */
const STEP_GAP_MS = 2000;
/** A transitional status is written this much later for each pending one, up to a limit. */
const GAP_PER_WAITING_MS = 10;
const LONGEST_CROWD_GAP_MS = 5000;
/** A new leader has not observed every workload yet, so it delays publishing that a ready slot is no longer ready. */
const FIRST_SETBACK_DELAY_MS = 3000;
/** Changes of the copy within this time, mostly our own writes, are compared together. */
const COMPARE_WITHIN_MS = 1000;
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 60_000;
/** Then the definition on the server may have been upgraded. */
const UNDECLARED_FOR_MS = 600_000;
/** Failures of the server or the connection, not of one status. */
const SERVER_REASONS: ReadonlySet<Reason> = new Set(['ApiUnreachable', 'ApiUntrusted', 'ApiBusy', 'Unauthorized']);

type Wanted =
  | { readonly kind: 'status'; readonly status: SlotStatus }
  | { readonly kind: 'refused'; readonly problems: readonly SpecProblem[]; readonly generation: number; readonly at: number };

/** Times are monotonic milliseconds. */
interface Publication {
  readonly wanted: Wanted;
  readonly writtenAt?: number;
  readonly written?: Wanted;
  /** The resource version whose status needs no write. */
  readonly currentVersion: string | undefined;
  readonly failures: number;
  readonly firstAt: number;
  readonly notBefore: number;
}

interface Write {
  readonly name: SlotName;
  readonly publication: Publication;
  readonly next: SlotResourceStatus;
  readonly object: KubeObject;
}

export type StatusResources = ReturnType<typeof createStatusResources>;

export function createStatusResources(options: StatusResourcesOptions) {
  const { api, slots, leadership, clock, observer = NO_OBSERVER } = options;
  const publications = new Map<SlotName, Publication>();
  const undeclared = createUndeclaredFields(options);
  let serverFailures = 0;
  let cancelCompare: (() => void) | undefined;
  let term: AbortSignal | undefined;

  const update = (name: SlotName, changes: Partial<Publication>): void => {
    const present = publications.get(name);
    if (present !== undefined) publications.set(name, { ...present, ...changes });
  };
  const queue = createWriteQueue<SlotName>({
    clock,
    concurrency: WRITES_AT_ONCE,
    write(name, flushing) {
      const publication = publications.get(name);
      const object = slots.items().get(name);
      if (!leadership.leads() || publication === undefined || object === undefined) return undefined;
      if (object.metadata.deletionTimestamp !== undefined) return undefined;
      // A status that does not match the schema is replaced.
      const present = SlotResourceStatus.safeParse(object['status']).data;
      const { uid } = object.metadata;
      const texts = defined({ lastGood: options.lastGoodOf(name, uid), rollout: options.rolloutOf?.(name, uid) });
      const next = undeclared.leaveOut({ ...render(name, publication.wanted, api.namespace, present), ...texts });
      if (statuses.isSameStatus(next, present)) {
        update(name, { currentVersion: object.metadata.resourceVersion });
        return undefined;
      }
      const earliest = earliestWrite(publication, next, present, queue.readyCount());
      if (!flushing && clock.now() < earliest) return earliest;
      return write({ name, publication, next, object });
    },
  });

  /**
   * The resource version, a precondition, protects an object created again under this name, and the status of the
   * present leader. The API server ignores a uid here.
   */
  const write = async (writing: Write): Promise<number | undefined> => {
    const { name, publication, next, object } = writing;
    const writtenAt = clock.now();
    const { resourceVersion } = object.metadata;
    const manifest = { metadata: defined({ name, resourceVersion }), status: next };
    const result = await api.apply(SLOT_SPECS, manifest, AS_STATUS, leadership.term());
    const written = writtenAs(result);
    if (written !== undefined) observer.publicationEnded({ what: 'status', result: written });
    if (!result.ok) return onFailure(writing, writtenAt, result.failure);
    serverFailures = 0;
    slots.noteWritten(result.value);
    const currentVersion = result.value.metadata.resourceVersion;
    update(name, { writtenAt, written: publication.wanted, currentVersion, failures: 0, notBefore: 0 });
    return publications.get(name)?.wanted === publication.wanted ? undefined : clock.now();
  };
  const onFailure = ({ name, publication, object, next }: Write, writtenAt: number, failure: Failure): number | undefined => {
    if (failure.reason === 'Aborted') return undefined;
    if (failure.reason === 'NotFound') {
      update(name, { currentVersion: object.metadata.resourceVersion });
      return undefined;
    }
    if (undeclared.learn(failure, next)) return clock.now();
    if (SERVER_REASONS.has(failure.reason)) {
      if (serverFailures === 0) logFailure(options.log, name, failure);
      serverFailures += 1;
      queue.pauseUntil(clock.now() + delayAfter(serverFailures));
      return clock.now();
    }
    // After a conflict the next version of the object enters the copy and leads to another write.
    if (publication.failures === 0 && failure.reason !== 'Conflict') logFailure(options.log, name, failure);
    const failures = publication.failures + 1;
    const notBefore = clock.now() + delayAfter(failures);
    update(name, { writtenAt, failures, notBefore });
    return notBefore;
  };

  const publish = (name: SlotName, wanted: Wanted): void => {
    const before = publications.get(name) ?? { failures: 0, notBefore: 0, firstAt: clock.now() };
    publications.set(name, { ...before, wanted, currentVersion: undefined });
    enqueue(name);
  };
  const enqueue = (name: SlotName): void => {
    if (!leadership.leads()) return;
    const present = leadership.term();
    // The next term begins by comparing every status.
    if (present !== term) present.addEventListener('abort', queue.clear, { once: true });
    term = present;
    queue.enqueue(name);
  };
  const compareAll = (): void => {
    cancelCompare?.();
    cancelCompare = undefined;
    if (!leadership.leads()) return;
    const items = slots.items();
    for (const [name, { currentVersion }] of publications) {
      const object = items.get(name);
      if (object !== undefined && currentVersion !== object.metadata.resourceVersion) enqueue(name);
    }
  };

  return {
    write(report: Report): void {
      forgetAbsent(report, publications);
      for (const status of report.statuses) {
        const before = publications.get(status.name)?.wanted;
        if (before?.kind !== 'status' || before.status !== status) publish(status.name, { kind: 'status', status });
      }
      for (const [name, problems] of report.refused) {
        const generation = options.generationOf(name) ?? slots.items().get(name)?.metadata.generation ?? 0;
        const before = publications.get(name)?.wanted;
        if (before?.kind === 'refused' && before.problems === problems && before.generation === generation) continue;
        publish(name, { kind: 'refused', problems, generation, at: report.at });
      }
    },
    /** Also compares after changes of the SlotSpecs or the leadership: a status may have been edited. */
    start(signal: AbortSignal): void {
      leadership.changes(compareAll, signal);
      slots.changes(() => {
        cancelCompare ??= clock.at(clock.now() + COMPARE_WITHIN_MS, compareAll);
      }, signal);
      signal.addEventListener('abort', () => cancelCompare?.(), { once: true });
    },
    /** Something was settled of this slot, which its next leader must know. */
    compare: (name: SlotName): void => (publications.has(name) ? enqueue(name) : undefined),
    flush: queue.flush,
    waitingCount: queue.waitingCount,
  };
}

function createUndeclaredFields({ clock, log }: Pick<StatusResourcesOptions, 'clock' | 'log'>) {
  const known = new Map<string, number>();
  const present = (): ReadonlySet<string> => {
    for (const [field, until] of known) if (clock.now() >= until) known.delete(field);
    return new Set(known.keys());
  };
  return {
    leaveOut: (status: SlotResourceStatus): SlotResourceStatus => statuses.withoutFields(status, present()),
    /** Returns whether the server rejected the status for such fields, so that it can be written without them. */
    learn(failure: Failure, sent: SlotResourceStatus): boolean {
      const fields = statuses.findUndeclared(failure).filter((field) => Object.hasOwn(sent, field));
      const before = present();
      const found = fields.filter((field) => !before.has(field));
      for (const field of found) known.set(field, clock.now() + UNDECLARED_FOR_MS);
      if (found.length > 0) log.warn({}, statuses.describeOlder(found.map((field) => `status.${field}`)));
      return fields.length > 0;
    },
  };
}

function forgetAbsent(report: Report, publications: Map<SlotName, Publication>): void {
  const present = new Set(report.statuses.map(({ name }) => name));
  for (const name of publications.keys()) if (!present.has(name) && !report.refused.has(name)) publications.delete(name);
}

function render(name: SlotName, wanted: Wanted, namespace: string, present: SlotResourceStatus | undefined): SlotResourceStatus {
  return wanted.kind === 'status'
    ? statuses.toResourceStatus(wanted.status, namespace, present)
    : statuses.refusedResourceStatus({ name, ...wanted }, present);
}

function earliestWrite(publication: Publication, next: SlotResourceStatus, present: SlotResourceStatus | undefined, waiting: number) {
  const { wanted, written, writtenAt, firstAt, notBefore } = publication;
  if (writtenAt === undefined) return statuses.isSetback(next, present) ? firstAt + FIRST_SETBACK_DELAY_MS : notBefore;
  const crowdGapMs = statuses.isTransitional(next) ? Math.min(waiting * GAP_PER_WAITING_MS, LONGEST_CROWD_GAP_MS) : 0;
  const stepGapMs = statuses.isFurtherStep(next, present) ? STEP_GAP_MS : GAP_MS;
  const gapMs = written === wanted ? REPAIR_GAP_MS : statuses.isUrgent(next, present) ? Math.max(stepGapMs, crowdGapMs) : QUIET_GAP_MS;
  return Math.max(notBefore, writtenAt + gapMs);
}

const delayAfter = (failures: number): number => Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 20), LONGEST_DELAY_MS);

/** Undefined for an aborted write or a missing object: neither is a failure. */
function writtenAs(result: Result<unknown>): Written | undefined {
  if (result.ok) return 'done';
  const { reason } = result.failure;
  if (reason === 'Aborted' || reason === 'NotFound') return undefined;
  return reason === 'Conflict' ? 'conflict' : 'failed';
}

/** Logs only the first failure: an unreachable API server often stays so for a while. */
function logFailure(log: SourceLog, slot: SlotName, { reason, message }: Failure): void {
  log.warn({ slot, reason, error: message }, `Writing the status of slot "${slot}" failed; the status in the cluster is out of date`);
}
