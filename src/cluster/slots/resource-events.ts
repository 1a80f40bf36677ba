/**
 * Publishes timeline entries as Events on the leader, at best effort: they are dropped while the server is busy or
 * unreachable, or if a slot has too many. The timeline has all of them.
 */
import { NO_OBSERVER, type KubeObserver } from '../client/client-observer.ts';
import type { KubeApi, Leadership, OwnerReference } from '../client/ports.ts';
import { EVENTS } from '../client/decide/resource-path.ts';
import type { Clock, Report } from '../../reconciler/ports.ts';
import type { Failure } from '../../schema/words/failure.ts';
import type { SlotName } from '../../schema/words/names.ts';
import * as events from './decide/event-record.ts';
import type { SourceLog } from '../../platform/log.ts';
import { createWriteQueue } from './write-queue.ts';

interface ResourceEventsOptions {
  readonly api: Pick<KubeApi, 'create' | 'mergePatch' | 'namespace'>;
  readonly ownerOf: (slot: SlotName) => OwnerReference | undefined;
  readonly leadership: Pick<Leadership, 'leads' | 'term'>;
  readonly instance: string;
  readonly clock: Clock;
  readonly log: SourceLog;
  readonly observer?: Pick<KubeObserver, 'publicationEnded'>;
}

/** Limit for all Events, about the API server's own limit for one namespace. */
const GLOBAL_BUCKET = { burst: 50, perSecond: 10 };
/** Limit for one slot and type: a burst, then one Event a minute. Normal Events never displace a warning. */
const SLOT_BUCKET = { burst: 25, perSecond: 1 / 60 };
/** The count of a repeated Event is updated on the server no faster than this. */
const COUNT_GAP_MS = 10_000;
const MOST_WAITING = 1000;
/** The oldest record beyond this number is forgotten, and its count begins again. */
const MOST_REMEMBERED = 4096;
const RETRY_MS = 5000;
const MOST_ATTEMPTS = 3;

interface Publication {
  readonly record: events.EventRecord;
  readonly writtenCount: number;
  /** Monotonic milliseconds; undefined: not created yet. */
  readonly writtenAt: number | undefined;
  readonly attempts: number;
}

export type ResourceEvents = ReturnType<typeof createResourceEvents>;

export function createResourceEvents(options: ResourceEventsOptions) {
  const { ownerOf, leadership, clock, log, observer = NO_OBSERVER } = options;
  const publications = new Map<string, Publication>();
  const waiting = new Set<string>();
  const recentMessages = new Map<string, events.RecentMessages>();
  const slotBuckets = new Map<string, events.Bucket>();
  let globalBucket: events.Bucket | undefined;
  let dropping = false;
  let failing = false;
  let term: AbortSignal | undefined;

  const queue = createWriteQueue<string>({
    clock,
    concurrency: 1,
    write(key) {
      const publication = publications.get(key);
      if (publication === undefined || !waiting.has(key) || !leadership.leads()) return undefined;
      const earliest = publication.writtenAt === undefined ? 0 : publication.writtenAt + COUNT_GAP_MS;
      if (clock.now() < earliest) return earliest;
      const token = events.takeToken(globalBucket, GLOBAL_BUCKET, clock.now());
      globalBucket = token.bucket;
      if (token.taken) return write(key, publication);
      queue.pauseUntil(token.nextAt);
      return token.nextAt;
    },
  });

  const write = async (key: string, publication: Publication): Promise<number | undefined> => {
    const writtenAt = clock.now();
    const { count } = publication.record;
    const failure = await writeEvent(options, publication);
    if (failure?.reason !== 'Aborted') observer.publicationEnded({ what: 'event', result: failure === undefined ? 'done' : 'failed' });
    const present = publications.get(key);
    if (present === undefined) return undefined;
    if (failure !== undefined) return onFailure(key, present, failure);
    failing = false;
    remember(publications, key, { ...present, writtenCount: count, writtenAt, attempts: 0 });
    if (present.record.count > count) return writtenAt + COUNT_GAP_MS;
    waiting.delete(key);
    if (waiting.size === 0) dropping = false;
    return undefined;
  };

  const onFailure = (key: string, present: Publication, failure: Failure): number | undefined => {
    const { record } = present;
    const attempts = present.attempts + 1;
    if (failure.reason === 'NotFound' && present.writtenAt !== undefined) {
      // The server has deleted the Event: a new one counts the occurrences since.
      const renewed = { ...events.newRecord(key, record.event, record.owner), count: record.count - present.writtenCount };
      remember(publications, key, { record: renewed, writtenCount: 0, writtenAt: undefined, attempts });
      return clock.now();
    }
    if (!failing && failure.reason !== 'Aborted') {
      log.warn({ slot: record.event.slot, reason: failure.reason, error: failure.message }, 'Writing Events failed; some are missing');
      failing = true;
    }
    if (failure.kind === 'stalled' || failure.reason === 'Aborted' || attempts >= MOST_ATTEMPTS) {
      waiting.delete(key);
      publications.delete(key);
      return undefined;
    }
    remember(publications, key, { ...present, attempts });
    queue.pauseUntil(clock.now() + RETRY_MS * attempts);
    return clock.now();
  };

  const publish = (event: events.SlotEvent): void => {
    const owner = ownerOf(event.slot);
    if (owner === undefined) return;
    const bucket = `${event.slot}/${event.type}`;
    const token = events.takeToken(slotBuckets.get(bucket), SLOT_BUCKET, clock.now());
    remember(slotBuckets, bucket, token.bucket);
    if (!token.taken) return;
    const similar = events.similarKey(event, owner);
    const correlated = events.correlate(event, similar, recentMessages.get(similar));
    remember(recentMessages, similar, correlated.recent);
    const { key } = correlated;
    const before = publications.get(key);
    const record = events.countOccurrence(key, correlated.event, owner, before?.record);
    const known = before?.record.name === record.name ? before : { writtenCount: 0, writtenAt: undefined };
    remember(publications, key, { ...known, record, attempts: 0 });
    waiting.add(key);
    if (waiting.size > MOST_WAITING) dropOldest();
    queue.enqueue(key);
  };

  const dropOldest = (): void => {
    const [oldest] = waiting;
    if (oldest === undefined) return;
    waiting.delete(oldest);
    publications.delete(oldest);
    if (!dropping) log.warn({}, `More than ${MOST_WAITING} Events are pending; the oldest are dropped, but the timeline has all of them`);
    dropping = true;
  };

  const dropAll = (): void => {
    waiting.clear();
    queue.clear();
  };

  return {
    write(report: Report): void {
      if (!leadership.leads()) return;
      const present = leadership.term();
      if (present !== term) present.addEventListener('abort', dropAll, { once: true });
      term = present;
      for (const entry of report.entries) {
        const event = events.toSlotEvent(entry);
        if (event !== undefined) publish(event);
      }
    },
    waitingCount: queue.waitingCount,
  };
}

async function writeEvent(options: ResourceEventsOptions, { record, writtenAt }: Publication): Promise<Failure | undefined> {
  const { api, instance, leadership } = options;
  const signal = leadership.term();
  const result =
    writtenAt === undefined
      ? await api.create(EVENTS, events.eventManifest(record, instance, api.namespace), signal)
      : await api.mergePatch(EVENTS, record.name, events.eventPatch(record), signal);
  // The name is derived from content and time, so an existing Event is our own, whose response was lost.
  return result.ok || result.failure.reason === 'AlreadyExists' ? undefined : result.failure;
}

function remember<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MOST_REMEMBERED) return;
  const oldest = map.keys().next();
  if (oldest.done !== true) map.delete(oldest.value);
}
