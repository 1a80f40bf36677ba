/**
 * Events that say the same are one, with a count; many that differ only in their words become one too; and nobody may tell more than so many.
 * The API server keeps Events for an hour by default. Pure.
 */
import { createHash } from 'node:crypto';
import type { KubeManifest, OwnerReference } from '../../client/ports.ts';
import type { SlotEvent } from './slot-event.ts';

/** Who tells it. */
export interface EventReporter {
  readonly component: string;
  /** The replica. */
  readonly instance: string;
}

/** One Event, as it is or shall be on the server. */
export interface EventRecord {
  /** What makes two tellings the same. */
  readonly key: string;
  readonly name: string;
  readonly owner: OwnerReference;
  readonly event: SlotEvent;
  readonly count: number;
  /** Unix milliseconds, both. */
  readonly firstAt: number;
  readonly lastAt: number;
}

/** The different words in which something was told of a slot lately. */
export interface Wordings {
  readonly messages: readonly string[];
  readonly lastAt: number;
}

/** More than this within the time, and they are told as one. */
const MOST_WORDINGS = 10;
const WORDINGS_MS = 600_000;
/** Over this the server may have thrown the Event away. */
const RECORD_MS = 3_000_000;

/** Under which key something is told, and in which words. */
export function correlate(
  event: SlotEvent,
  owner: OwnerReference,
  known: Wordings | undefined,
): { readonly key: string; readonly event: SlotEvent; readonly wordings: Wordings } {
  const fresh = known !== undefined && event.at - known.lastAt <= WORDINGS_MS ? known.messages : [];
  const messages = fresh.includes(event.message) ? fresh : [...fresh, event.message].slice(-MOST_WORDINGS);
  const wordings = { messages, lastAt: event.at };
  const similar = similarKey(event, owner);
  if (messages.length < MOST_WORDINGS) return { key: `${similar}/${event.message}`, event, wordings };
  return { key: similar, event: { ...event, message: `(one of many alike) ${event.message}` }, wordings };
}

/** What Events have in common that differ only in their words. */
export function similarKey(event: SlotEvent, owner: OwnerReference): string {
  return `${owner.uid}/${event.type}/${event.reason}`;
}

/** Told once more, or for the first time. */
export function tellAgain(key: string, event: SlotEvent, owner: OwnerReference, before: EventRecord | undefined): EventRecord {
  if (before === undefined || event.at - before.lastAt > RECORD_MS) return newRecord(key, event, owner);
  return { ...before, event, count: before.count + 1, lastAt: Math.max(before.lastAt, event.at) };
}

/** The same under another name: the server no longer has the old one. */
export function newRecord(key: string, event: SlotEvent, owner: OwnerReference): EventRecord {
  const hash = createHash('sha256').update(`${key}/${event.at}`).digest('hex').slice(0, 16);
  return { key, name: `${event.slot}.${hash}`, owner, event, count: 1, firstAt: event.at, lastAt: event.at };
}

export function eventManifest(record: EventRecord, reporter: EventReporter, namespace: string): KubeManifest {
  const { name, owner, event } = record;
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace },
    involvedObject: { apiVersion: owner.apiVersion, kind: owner.kind, namespace, name: owner.name, uid: owner.uid },
    type: event.type,
    reason: event.reason,
    source: { component: reporter.component, host: reporter.instance },
    reportingComponent: reporter.component,
    reportingInstance: reporter.instance,
    firstTimestamp: timeText(record.firstAt),
    ...eventPatch(record),
  };
}

/** What changes when it is told again. */
export function eventPatch({ event, count, lastAt }: EventRecord): Readonly<Record<string, unknown>> {
  return { message: event.message, count, lastTimestamp: timeText(lastAt) };
}

// ---- how much may be told ----

/** Undefined is a full one. */
export interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

export interface BucketSize {
  readonly burst: number;
  readonly perSecond: number;
}

/** `nextAt`: when there is a token again, where there is none. */
export function takeToken(
  bucket: Bucket | undefined,
  { burst, perSecond }: BucketSize,
  now: number,
): { readonly bucket: Bucket; readonly taken: true } | { readonly bucket: Bucket; readonly taken: false; readonly nextAt: number } {
  const grown = bucket === undefined ? burst : bucket.tokens + (Math.max(0, now - bucket.at) / 1000) * perSecond;
  const tokens = Math.min(burst, grown);
  // Fractions of a token do not add up exactly.
  if (tokens > 0.999) return { bucket: { tokens: tokens - 1, at: now }, taken: true };
  return { bucket: { tokens, at: now }, taken: false, nextAt: Math.ceil(now + ((1 - tokens) / perSecond) * 1000) };
}

function timeText(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}
