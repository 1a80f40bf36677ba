import { describe, expect, test } from '@jest/globals';
import {
  correlate,
  eventManifest,
  takeToken,
  tellAgain,
  type Bucket,
  type Wordings,
} from '../../../../src/cluster/status/decide/event-record.ts';
import { eventOf, type SlotEvent } from '../../../../src/cluster/status/decide/slot-event.ts';
import type { TimelineEntry } from '../../../../src/schema/slot-status.ts';
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

describe('eventOf()', () => {
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
      { kind: 'condition', cause: 'NotStalled', message: 'Stalled is False: Nobody has to act' },
      { type: 'Normal', reason: 'NotStalled' },
    ],
  ])('%j becomes %j', (said, expected) => {
    expect(eventOf(entry(said))).toMatchObject(expected);
  });

  test.each<Partial<TimelineEntry>>([
    { to: 'ready', message: 'Found "ready"' },
    { from: 'ready', to: 'serving' },
    { from: 'serving', to: 'idle' },
    { from: 'idle', to: 'ready' },
    { kind: 'action', message: 'Begins to start' },
    { kind: 'spec', message: 'Generation 2 is in force' },
  ])('%j is no news for a cluster', (said) => {
    expect(eventOf(entry(said))).toBeUndefined();
  });

  test('a message is as long as the server takes it', () => {
    expect(eventOf(entry({ kind: 'failure', message: 'x'.repeat(5000) }))?.message).toHaveLength(1024);
  });
});

describe('Events', () => {
  test('are about the very object, with whole seconds and a name of their own', () => {
    const record = tellAgain('key', event(), owner, undefined);
    const manifest = eventManifest(record, { component: 'svc-controller', instance: 'svc-0' }, 'demo');
    expect(manifest).toMatchObject({
      metadata: { name: expect.stringMatching(/^primary\.[0-9a-f]{16}$/), namespace: 'demo' },
      involvedObject: { apiVersion: owner.apiVersion, kind: 'SlotSpec', namespace: 'demo', name: 'primary', uid: 'u-1' },
      source: { component: 'svc-controller', host: 'svc-0' },
      firstTimestamp: '2026-01-31T12:00:00Z',
      lastTimestamp: '2026-01-31T12:00:00Z',
      count: 1,
    });
  });

  test('that say the same are counted, until the server has forgotten them', () => {
    const first = tellAgain('key', event(), owner, undefined);
    const again = tellAgain('key', event({ at: AT + 1000 }), owner, first);
    expect(again).toMatchObject({ name: first.name, count: 2, firstAt: AT, lastAt: AT + 1000 });
    const late = tellAgain('key', event({ at: AT + 4_000_000 }), owner, again);
    expect(late).toMatchObject({ count: 1 });
    expect(late.name).not.toBe(first.name);
  });

  test('that differ only in their words become one after ten within ten minutes', () => {
    let known: Wordings | undefined;
    const keys = new Set<string>();
    for (let index = 0; index < 40; index++) {
      const said = correlate(event({ message: `Exit code ${index}`, at: AT + index }), owner, known);
      known = said.wordings;
      keys.add(said.key);
      if (index > 10) expect(said.event.message).toBe(`(one of many alike) Exit code ${index}`);
    }
    expect(keys.size).toBe(10);
    expect(known?.messages.length).toBeLessThanOrEqual(10);
    const later = correlate(event({ message: 'Exit code 99', at: AT + 700_000 }), owner, known);
    expect(later.event.message).toBe('Exit code 99');
  });

  test('a bucket gives its burst, then so many a second, and says when there is the next one', () => {
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
