/**
 * Lines of the timeline as Events of the SlotSpecs, told by the replica that leads. They are the first thing to go without: a server that is busy or
 * away, a slot that tells too much, and nobody misses anything but words.
 */
import type { KubeApi, Leadership, OwnerReference } from '../client/ports.ts';
import { EVENTS } from '../client/resource-types.ts';
import type { Clock, StatusSink } from '../../reconciler/ports.ts';
import type { Failure } from '../../schema/failure.ts';
import type { SlotName } from '../../schema/names.ts';
import {
  correlate,
  eventManifest,
  eventPatch,
  newRecord,
  similarKey,
  takeToken,
  tellAgain,
  type Bucket,
  type EventRecord,
  type EventReporter,
  type Wordings,
} from './decide/event-record.ts';
import { eventOf, type SlotEvent } from './decide/slot-event.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { SourceLog } from '../../platform/log.ts';
import { createWriteTurns } from './write-turns.ts';

export interface ResourceEvents extends StatusSink {
  /** Resolves when all that may be told now is told, or has failed once. */
  flush(): Promise<void>;
}

interface ResourceEventsOptions {
  readonly api: Pick<KubeApi, 'create' | 'mergePatch' | 'namespace'>;
  readonly ownerOf: (slot: SlotName) => OwnerReference | undefined;
  readonly leadership: Pick<Leadership, 'leads' | 'term'>;
  readonly reporter: EventReporter;
  readonly clock: Clock;
  readonly log: SourceLog;
}

/** Of all Events together; the API server's own limit for one namespace is about the same. */
const GLOBAL_BUCKET = { burst: 50, perSecond: 10 };
/** Of one slot: a few loads and unloads at once, then one word a minute. */
const SLOT_BUCKET = { burst: 25, perSecond: 1 / 60 };
/** What is told again and again is counted on the server no faster than this. */
const COUNT_GAP_MS = 10_000;
const MOST_WAITING = 1000;
/** Beyond this the oldest is forgotten, and begins to count anew. */
const MOST_REMEMBERED = 4096;
const RETRY_MS = 5000;
const MOST_ATTEMPTS = 3;

/** An Event, and what the server has of it. */
interface Told {
  readonly record: EventRecord;
  readonly writtenCount: number;
  readonly writtenAt: number | undefined;
  readonly attempts: number;
}

export function createResourceEvents(options: ResourceEventsOptions): ResourceEvents {
  const { api, ownerOf, leadership, reporter, clock, log } = options;
  const told = new Map<string, Told>();
  /** Keys of `told` that the server does not have as they are. */
  const waiting = new Set<string>();
  const wordings = new Map<string, Wordings>();
  const slotBuckets = new Map<SlotName, Bucket>();
  let globalBucket: Bucket | undefined;
  let dropping = false;
  let failing = false;
  let term: AbortSignal | undefined;

  const turns = createWriteTurns<string>({
    clock,
    concurrency: 1,
    turn(key, hurry) {
      const present = told.get(key);
      if (present === undefined || !waiting.has(key)) return undefined;
      if (!leadership.leads()) return undefined;
      const earliest = present.writtenAt === undefined ? 0 : present.writtenAt + COUNT_GAP_MS;
      if (!hurry && clock.now() < earliest) return earliest;
      const token = takeToken(globalBucket, GLOBAL_BUCKET, clock.now());
      globalBucket = token.bucket;
      if (token.taken) return write(key, present);
      turns.pauseUntil(token.nextAt);
      return token.nextAt;
    },
  });

  const write = async (key: string, { record, writtenAt: before }: Told): Promise<number | undefined> => {
    const writtenAt = clock.now();
    const failure = await send(api, record, reporter, before === undefined, leadership.term());
    const present = told.get(key);
    if (present === undefined) return undefined;
    if (failure === undefined) {
      failing = false;
      remember(told, key, { ...present, writtenCount: record.count, writtenAt, attempts: 0 });
      if (present.record.count > record.count) return writtenAt + COUNT_GAP_MS;
      waiting.delete(key);
      if (waiting.size === 0) dropping = false;
      return undefined;
    }
    return onFailure(key, present, failure);
  };

  const onFailure = (key: string, present: Told, failure: Failure): number | undefined => {
    const { record } = present;
    if (failure.reason === 'NotFound' && present.writtenAt !== undefined) {
      // The server has thrown it away: what has come since is told anew.
      const anew = { ...newRecord(key, record.event, record.owner), count: record.count - present.writtenCount };
      remember(told, key, { record: anew, writtenCount: 0, writtenAt: undefined, attempts: present.attempts + 1 });
      return clock.now();
    }
    if (!failing && failure.reason !== 'Aborted') {
      log.warn({ slot: record.event.slot, reason: failure.reason, error: failure.message }, 'Writing Events failed; some are missing');
      failing = true;
    }
    const attempts = present.attempts + 1;
    if (failure.kind === 'stalled' || failure.reason === 'Aborted' || attempts >= MOST_ATTEMPTS) {
      waiting.delete(key);
      told.delete(key);
      return undefined;
    }
    remember(told, key, { ...present, attempts });
    turns.pauseUntil(clock.now() + RETRY_MS * attempts);
    return clock.now();
  };

  const tell = (event: SlotEvent): void => {
    const owner = ownerOf(event.slot);
    if (owner === undefined) return;
    const token = takeToken(slotBuckets.get(event.slot), SLOT_BUCKET, clock.now());
    remember(slotBuckets, event.slot, token.bucket);
    if (!token.taken) return;
    const similar = similarKey(event, owner);
    const said = correlate(event, owner, wordings.get(similar));
    remember(wordings, similar, said.wordings);
    const before = told.get(said.key);
    const record = tellAgain(said.key, said.event, owner, before?.record);
    const known = before !== undefined && before.record.name === record.name ? before : undefined;
    remember(told, said.key, { record, writtenCount: known?.writtenCount ?? 0, writtenAt: known?.writtenAt, attempts: 0 });
    waiting.add(said.key);
    if (waiting.size > MOST_WAITING) dropOldest();
    turns.ask(said.key);
  };

  /** What has not been told is not told by a replica that no longer leads. */
  const letGo = (): void => {
    waiting.clear();
    turns.clear();
  };

  const dropOldest = (): void => {
    const [oldest] = waiting;
    if (oldest === undefined) return;
    waiting.delete(oldest);
    told.delete(oldest);
    if (!dropping)
      log.warn({}, `More than ${MOST_WAITING} Events wait to be written; the oldest are dropped, and the timeline has them all`);
    dropping = true;
  };

  return {
    write(report) {
      if (!leadership.leads()) return;
      const present = leadership.term();
      if (present !== term) present.addEventListener('abort', letGo, { once: true });
      term = present;
      for (const entry of report.entries) {
        const event = eventOf(entry);
        if (event !== undefined) tell(event);
      }
    },
    flush: async () => await turns.flush(),
  };
}

/** Undefined: done. Never throws. */
async function send(
  api: ResourceEventsOptions['api'],
  record: EventRecord,
  reporter: EventReporter,
  first: boolean,
  signal: AbortSignal,
): Promise<Failure | undefined> {
  try {
    const result = first
      ? await api.create(EVENTS, eventManifest(record, reporter, api.namespace), signal)
      : await api.mergePatch(EVENTS, record.name, eventPatch(record), signal);
    // Its name is made of what it says and when: it is there because an answer was lost.
    return result.ok || result.failure.reason === 'AlreadyExists' ? undefined : result.failure;
  } catch (error) {
    return { kind: 'retry', reason: 'ApiUnreachable', message: messageOf(error) };
  }
}

/** The newest last. */
function remember<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MOST_REMEMBERED) return;
  const oldest = map.keys().next();
  if (oldest.done !== true) map.delete(oldest.value);
}
