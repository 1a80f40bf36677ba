/**
 * Selects the timeline entries that become Events, and limits their number: equal ones become one with a count, ones
 * that differ only in their messages are combined, and token buckets limit the rest. Pure.
 */
import { createHash } from 'node:crypto';
import type { KubeManifest, OwnerReference } from '../../client/ports.ts';
import { FIELD_MANAGER } from '../../../schema/pod/kube-fields.ts';
import { kubeTime } from '../../client/decide/object-fields.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { parseReason, type Reason } from '../../../schema/status/reasons.ts';
import type { SlotState, TimelineEntry } from '../../../schema/status/slot-status.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';

export interface EventRecord {
  readonly name: string;
  readonly owner: OwnerReference;
  readonly event: SlotEvent;
  readonly count: number;
  /** Unix milliseconds. */
  readonly firstAt: number;
  readonly lastAt: number;
}

export interface RecentMessages {
  readonly messages: readonly string[];
  readonly lastAt: number;
}

/** More distinct messages than this within the time are combined into one Event. */
const MOST_MESSAGES = 10;
const MESSAGES_MS = 600_000;
/** Servers keep Events for an hour. */
const RECORD_MS = 3_000_000;

/** The key of the Event that counts this one, and the event to write. `similar`: its `similarKey`. */
export function correlate(event: SlotEvent, similar: string, recent: RecentMessages | undefined) {
  const known = recent !== undefined && event.at - recent.lastAt <= MESSAGES_MS ? recent.messages : [];
  const messages = known.includes(event.message) ? known : [...known, event.message].slice(-MOST_MESSAGES);
  const updated = { messages, lastAt: event.at };
  if (messages.length < MOST_MESSAGES) return { key: `${similar}/${event.message}`, event, recent: updated };
  return { key: similar, event: { ...event, message: `(one of many similar events) ${event.message}` }, recent: updated };
}

/** The same for events that differ only in their messages. */
export const similarKey = (event: SlotEvent, owner: OwnerReference): string => `${owner.uid}/${event.type}/${event.reason}`;

export function countOccurrence(key: string, event: SlotEvent, owner: OwnerReference, before: EventRecord | undefined): EventRecord {
  if (before === undefined || event.at - before.lastAt > RECORD_MS) return newRecord(key, event, owner);
  return { ...before, event, count: before.count + 1, lastAt: Math.max(before.lastAt, event.at) };
}

/** The name contains the time, so that a record that replaces a deleted Event has another name. */
export function newRecord(key: string, event: SlotEvent, owner: OwnerReference): EventRecord {
  const hash = createHash('sha256').update(`${key}/${event.at}`).digest('hex').slice(0, 16);
  return { name: `${event.slot}.${hash}`, owner, event, count: 1, firstAt: event.at, lastAt: event.at };
}

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

export function eventPatch({ event, count, lastAt }: EventRecord): Readonly<Record<string, unknown>> {
  return { message: event.message, count, lastTimestamp: kubeTime(lastAt) };
}

export interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

interface BucketSize {
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

type EventReason = Reason | Capitalize<SlotState>;

export interface SlotEvent {
  readonly slot: SlotName;
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  readonly message: string;
  readonly at: number;
}

/** The API server takes 1,024 characters, and a message that has been cut ends with one more. */
const LONGEST_MESSAGE = 1023;

const STATE_REASONS = {
  offline: 'Offline',
  pulling: 'Pulling',
  starting: 'Starting',
  warming: 'Warming',
  ready: 'Ready',
  serving: 'Serving',
  idle: 'Idle',
  unloading: 'Unloading',
} as const satisfies Record<SlotState, EventReason>;

/** Undefined for actions and edits, which show in their effects, and for requests, which are too frequent. */
export function toSlotEvent(entry: TimelineEntry): SlotEvent | undefined {
  switch (entry.kind) {
    case 'state':
      return stateEvent(entry);
    case 'drift':
      return eventWith(entry, 'Warning', 'WorkloadAltered', withoutCondition(entry.message).message);
    case 'swap':
      return eventWith(entry, 'Normal', parseReason(entry.cause) ?? 'Unknown', entry.message);
    case 'failure':
      return eventWith(entry, 'Warning', parseReason(entry.cause) ?? 'Failed', entry.message);
    case 'condition':
      return conditionEvent(entry);
    case 'spec':
    case 'action':
    case 'edit':
      return undefined;
  }
  return entry.kind satisfies never;
}

/** A state without a previous one was only found by a new controller, and is not a change. */
function stateEvent(entry: TimelineEntry): SlotEvent | undefined {
  const { from, to } = entry;
  if (from === undefined || to === undefined || to === 'serving' || to === 'idle') return undefined;
  if (to === 'ready' && (from === 'serving' || from === 'idle')) return undefined;
  // The cause is a reason and its sentence; users read the sentence only.
  const why = entry.cause === undefined ? '' : `: ${entry.cause.replace(/^[a-zA-Z]+: /, '')}`;
  return eventWith(entry, 'Normal', STATE_REASONS[to], `From "${from}" to "${to}"${why}`);
}

function conditionEvent(entry: TimelineEntry): SlotEvent {
  const { condition, message } = withoutCondition(entry.message);
  const bad = condition === 'Stalled=True' || condition === 'SpecValid=False' || condition === 'DriftDetected=True';
  return eventWith(entry, bad ? 'Warning' : 'Normal', parseReason(entry.cause) ?? 'Unknown', message);
}

function withoutCondition(text: string): { readonly condition: string | undefined; readonly message: string } {
  const [whole, type, status] = /^([A-Z]\w*) is (True|False|Unknown): /.exec(text) ?? [];
  return whole === undefined
    ? { condition: undefined, message: text }
    : { condition: `${type}=${status}`, message: text.slice(whole.length) };
}

function eventWith({ slot, at }: TimelineEntry, type: SlotEvent['type'], reason: EventReason, message: string): SlotEvent {
  return { slot, type, reason, message: shorten(message, LONGEST_MESSAGE), at };
}
