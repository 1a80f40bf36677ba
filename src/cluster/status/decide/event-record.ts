/**
 * Limits how many Events are written: equal ones become one with a count, ones that differ only in their messages are combined, and token buckets limit the
 * rest. The API server keeps Events for an hour by default. Pure.
 */
import { createHash } from 'node:crypto';
import type { KubeManifest, OwnerReference } from '../../client/ports.ts';
import { FIELD_MANAGER } from '../../../schema/object-labels.ts';
import { kubeTime } from '../../client/decide/kube-values.ts';
import type { SlotEvent } from './slot-event.ts';

/** One Event as it is, or will be, on the server. */
export interface EventRecord {
  readonly name: string;
  readonly owner: OwnerReference;
  readonly event: SlotEvent;
  readonly count: number;
  /** Unix milliseconds, both. */
  readonly firstAt: number;
  readonly lastAt: number;
}

/** The distinct messages of similar Events lately. */
export interface RecentMessages {
  readonly messages: readonly string[];
  readonly lastAt: number;
}

/** More distinct messages than this within the time are combined into one Event. */
const MOST_MESSAGES = 10;
const MESSAGES_MS = 600_000;
/** An older Event may have been deleted by the server. */
const RECORD_MS = 3_000_000;

/** Returns the key of the Event in which to count this one, and the event with the message to write. `similar`: its `similarKey`. */
export function correlate(
  event: SlotEvent,
  similar: string,
  recent: RecentMessages | undefined,
): { readonly key: string; readonly event: SlotEvent; readonly recent: RecentMessages } {
  const known = recent !== undefined && event.at - recent.lastAt <= MESSAGES_MS ? recent.messages : [];
  const messages = known.includes(event.message) ? known : [...known, event.message].slice(-MOST_MESSAGES);
  const updated = { messages, lastAt: event.at };
  if (messages.length < MOST_MESSAGES) return { key: `${similar}/${event.message}`, event, recent: updated };
  return { key: similar, event: { ...event, message: `(one of many similar events) ${event.message}` }, recent: updated };
}

/** The same for events that differ only in their messages. */
export function similarKey(event: SlotEvent, owner: OwnerReference): string {
  return `${owner.uid}/${event.type}/${event.reason}`;
}

/** Counts one more occurrence, in the Event of `before` if the server still has it. */
export function countOccurrence(key: string, event: SlotEvent, owner: OwnerReference, before: EventRecord | undefined): EventRecord {
  if (before === undefined || event.at - before.lastAt > RECORD_MS) return newRecord(key, event, owner);
  return { ...before, event, count: before.count + 1, lastAt: Math.max(before.lastAt, event.at) };
}

/** The name contains the time, so that a record that replaces a deleted Event has another name. */
export function newRecord(key: string, event: SlotEvent, owner: OwnerReference): EventRecord {
  const hash = createHash('sha256').update(`${key}/${event.at}`).digest('hex').slice(0, 16);
  return { name: `${event.slot}.${hash}`, owner, event, count: 1, firstAt: event.at, lastAt: event.at };
}

/** `instance`: name of the replica that writes the Event. */
export function eventManifest(record: EventRecord, instance: string, namespace: string): KubeManifest {
  const { name, owner, event } = record;
  return {
    metadata: { name },
    involvedObject: { apiVersion: owner.apiVersion, kind: owner.kind, namespace, name: owner.name, uid: owner.uid },
    type: event.type,
    reason: event.reason,
    source: { component: FIELD_MANAGER, host: instance },
    reportingComponent: FIELD_MANAGER,
    reportingInstance: instance,
    firstTimestamp: kubeTime(record.firstAt),
    ...eventPatch(record),
  };
}

/** The fields that change with another occurrence. */
export function eventPatch({ event, count, lastAt }: EventRecord): Readonly<Record<string, unknown>> {
  return { message: event.message, count, lastTimestamp: kubeTime(lastAt) };
}

// ---- token buckets ----

export interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

export interface BucketSize {
  readonly burst: number;
  readonly perSecond: number;
}

/** A bucket that is undefined is full. `nextAt`: when there is a token again. */
export function takeToken(
  bucket: Bucket | undefined,
  { burst, perSecond }: BucketSize,
  now: number,
): { readonly bucket: Bucket; readonly taken: true } | { readonly bucket: Bucket; readonly taken: false; readonly nextAt: number } {
  const refilled = bucket === undefined ? burst : bucket.tokens + (Math.max(0, now - bucket.at) / 1000) * perSecond;
  const tokens = Math.min(burst, refilled);
  // Fractions of a token do not add up exactly.
  if (tokens > 0.999) return { bucket: { tokens: tokens - 1, at: now }, taken: true };
  return { bucket: { tokens, at: now }, taken: false, nextAt: Math.ceil(now + ((1 - tokens) / perSecond) * 1000) };
}
