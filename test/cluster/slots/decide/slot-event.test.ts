import { describe, expect, test } from '@jest/globals';
import {
  correlate,
  eventManifest,
  takeToken,
  countOccurrence,
  toSlotEvent,
  type Bucket,
  type RecentMessages,
  type SlotEvent,
} from '../../../../src/cluster/slots/decide/event-record.ts';
import type { TimelineEntry } from '../../../../src/schema/status/slot-status.ts';
import { AT, primary } from './status-fixture.ts';

const entry = (changes: Partial<TimelineEntry>): TimelineEntry => ({
  seq: 1,
  at: AT,
  slot: primary,
  kind: 'state',
  message: '',
  ...changes,
});
const owner = { apiVersion: 'inference.svc.dev/v1alpha1', kind: 'SlotSpec', name: 'primary', uid: 'u-1', controller: true };
const event = (changes: Partial<SlotEvent> = {}): SlotEvent => ({
  slot: primary,
  type: 'Warning',
  reason: 'Crashed',
  message: 'It ended',
  at: AT,
  ...changes,
});

describe('toSlotEvent()', () => {
  test.each<[Partial<TimelineEntry>, Partial<SlotEvent>]>([
    [
      { from: 'warming', to: 'ready' },
      { type: 'Normal', reason: 'Ready', message: 'From "warming" to "ready"' },
    ],
    [
      { from: 'idle', to: 'unloading', cause: 'IdleTimedOut: No request for 900 s; the next one loads the slot again' },
      {
        type: 'Normal',
        reason: 'Unloading',
        message: 'From "idle" to "unloading": No request for 900 s; the next one loads the slot again',
      },
    ],
    [
      { kind: 'failure', cause: 'ImagePullBackOff', message: 'Image "x" cannot be fetched' },
      { type: 'Warning', reason: 'ImagePullBackOff', message: 'Image "x" cannot be fetched' },
    ],
    [
      { kind: 'failure', cause: 'Crashed', message: 'It ended' },
      { type: 'Warning', reason: 'Crashed' },
    ],
    [
      { kind: 'failure', cause: 'StartTimeout', message: 'Too late' },
      { type: 'Warning', reason: 'StartTimeout' },
    ],
    [
      { kind: 'failure', message: 'Its workload is gone' },
      { type: 'Warning', reason: 'Failed' },
    ],
    [
      { kind: 'drift', cause: 'WorkloadAltered', message: 'DriftDetected is True: replicas 0 instead of 2' },
      { type: 'Warning', reason: 'WorkloadAltered', message: 'replicas 0 instead of 2' },
    ],
    [
      { kind: 'condition', cause: 'CrashLoop', message: 'Stalled is True: Edit it' },
      { type: 'Warning', reason: 'CrashLoop', message: 'Edit it' },
    ],
    [
      { kind: 'condition', cause: 'SpecInvalid', message: 'SpecValid is False: model: Add it' },
      { type: 'Warning', reason: 'SpecInvalid', message: 'model: Add it' },
    ],
    [
      { kind: 'swap', cause: 'SwapStarted', message: 'Model "b" replaces model "a"' },
      { type: 'Normal', reason: 'SwapStarted', message: 'Model "b" replaces model "a"' },
    ],
    [
      { kind: 'condition', cause: 'NotStalled', message: 'Stalled is False: No action needed' },
      { type: 'Normal', reason: 'NotStalled' },
    ],
  ])('%j becomes %j', (changes, expected) => {
    expect(toSlotEvent(entry(changes))).toMatchObject(expected);
  });

  test.each<Partial<TimelineEntry>>([
    { to: 'ready', message: 'The slot is "ready"' },
    { from: 'ready', to: 'serving' },
    { from: 'serving', to: 'idle' },
    { from: 'idle', to: 'ready' },
    { kind: 'action', message: 'Starting "w"' },
    { kind: 'spec', message: 'Change applied (generation 2)' },
  ])('%j does not become an Event', (changes) => {
    expect(toSlotEvent(entry(changes))).toBeUndefined();
  });

  test('truncates a message to the limit of the server', () => {
    expect(toSlotEvent(entry({ kind: 'failure', message: 'x'.repeat(5000) }))?.message).toHaveLength(1024);
  });
});

describe('Events', () => {
  test('refer to the very object, with times in whole seconds and a unique name', () => {
    const record = countOccurrence('key', event(), owner, undefined);
    const manifest = eventManifest(record, 'svc-0', 'demo');
    expect(manifest).toMatchObject({
      metadata: { name: expect.stringMatching(/^primary\.[0-9a-f]{16}$/) },
      involvedObject: { apiVersion: owner.apiVersion, kind: 'SlotSpec', namespace: 'demo', name: 'primary', uid: 'u-1' },
      source: { component: 'svc-controller', host: 'svc-0' },
      firstTimestamp: '2026-01-31T12:00:00Z',
      lastTimestamp: '2026-01-31T12:00:00Z',
      count: 1,
    });
  });

  test('that are equal are counted, until the server may have deleted the Event', () => {
    const first = countOccurrence('key', event(), owner, undefined);
    const again = countOccurrence('key', event({ at: AT + 1000 }), owner, first);
    expect(again).toMatchObject({ name: first.name, count: 2, firstAt: AT, lastAt: AT + 1000 });
    const late = countOccurrence('key', event({ at: AT + 4_000_000 }), owner, again);
    expect(late).toMatchObject({ count: 1 });
    expect(late.name).not.toBe(first.name);
  });

  test('that differ only in their messages are combined after ten messages within ten minutes', () => {
    let known: RecentMessages | undefined;
    const keys = new Set<string>();
    for (let index = 0; index < 40; index++) {
      const correlated = correlate(event({ message: `Exit code ${index}`, at: AT + index }), 'similar', known);
      known = correlated.recent;
      keys.add(correlated.key);
      if (index > 10) expect(correlated.event.message).toBe(`(one of many similar events) Exit code ${index}`);
    }
    expect(keys.size).toBe(10);
    expect(known?.messages.length).toBeLessThanOrEqual(10);
    const later = correlate(event({ message: 'Exit code 99', at: AT + 700_000 }), 'similar', known);
    expect(later.event.message).toBe('Exit code 99');
  });

  test('a bucket allows its burst, then its rate, and returns when there is the next token', () => {
    const size = { burst: 3, perSecond: 2 };
    let bucket: Bucket | undefined;
    let now = AT;
    const take = () => {
      const token = takeToken(bucket, size, now);
      bucket = token.bucket;
      return token;
    };
    expect([take().taken, take().taken, take().taken]).toEqual([true, true, true]);
    expect(take()).toMatchObject({ taken: false, nextAt: AT + 500 });
    now = AT + 500;
    expect([take().taken, take().taken]).toEqual([true, false]);
    now = AT + 60_000;
    expect([take().taken, take().taken, take().taken, take().taken]).toEqual([true, true, true, false]);
  });
});
