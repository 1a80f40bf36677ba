import { beforeEach, describe, expect, test } from '@jest/globals';
import { createResourceEvents, type ResourceEvents } from '../../../src/cluster/slots/resource-events.ts';
import { createSlotResources } from '../../../src/cluster/slots/slot-resources.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { TimelineEntry } from '../../../src/schema/status/slot-status.ts';
import { createInMemoryKube, type MemoryKube } from '../../support/kube/in-memory-kube.ts';

describe('createResourceEvents()', () => {
  let kube: MemoryKube;
  let sink: ResourceEvents;
  let ended: string[] = [];
  const observer = { publicationEnded: ({ what, result }: Record<'what' | 'result', string>) => void ended.push(`${what} ${result}`) };
  beforeEach(() => {
    kube = createInMemoryKube();
    kube.apply('img', {});
    const { ownerOf } = createSlotResources({ slots: kube.slots, log: kube.log, now: kube.clock.now });
    sink = createResourceEvents({ ...kube, ownerOf, instance: 'svc-0', observer });
    ended = [];
  });
  const report = (message: string, slot = 'img', changes: Partial<TimelineEntry> = {}) => {
    const entry: TimelineEntry = {
      seq: 1,
      at: kube.clock.now(),
      slot: SlotName.parse(slot),
      kind: 'failure',
      cause: 'Crashed',
      message,
      ...changes,
    };
    sink.write({ at: kube.clock.now(), statuses: [], refused: new Map(), entries: [entry] });
  };
  const events = () => kube.all('Event');

  test('publishes a failure at once, about the very SlotSpec', async () => {
    report('It ended');
    await kube.clock.advance(1);
    expect(events()).toMatchObject([
      {
        type: 'Warning',
        reason: 'Crashed',
        message: 'It ended',
        count: 1,
        involvedObject: { kind: 'SlotSpec', name: 'img', uid: 'uid-1' },
      },
    ]);
  });

  test('counts repetitions in one Event, every ten seconds at most', async () => {
    for (let round = 0; round < 20; round++) {
      report('It ended');
      await kube.clock.advance(1000);
    }
    await kube.clock.advance(60_000);
    expect(events()).toMatchObject([{ count: 20 }]);
    expect(events()[0]?.['lastTimestamp']).not.toBe(events()[0]?.['firstTimestamp']);
    expect(kube.requests.length).toBeLessThanOrEqual(4);
  });

  test('creates another Event when the server has deleted the first one', async () => {
    report('It ended');
    await kube.clock.advance(20_000);
    const [old] = events();
    kube.drop('Event', old?.metadata.name ?? '');
    report('It ended');
    report('It ended');
    await kube.clock.advance(20_000);
    expect(events()).toMatchObject([{ count: 2 }]);
    expect(events()[0]?.metadata.name).not.toBe(old?.metadata.name);
  });

  test('limits the Events of one slot', async () => {
    for (let round = 0; round < 500; round++) {
      report(`Exit code ${round}`);
      await kube.clock.advance(100);
    }
    await kube.clock.advance(60_000);
    expect(events().length).toBeLessThanOrEqual(10);
    expect(kube.requests.length).toBeLessThanOrEqual(26);
  });

  test('publishes a warning about a slot that was edited and swapped many times before', async () => {
    for (let round = 0; round < 40; round++) {
      report(`Model "${round}" answers now`, 'img', { kind: 'swap', cause: 'SwapFinished' });
      await kube.clock.advance(1000);
    }
    report('It ended');
    await kube.clock.advance(1000);
    expect(events().filter(({ type }) => type === 'Warning')).toMatchObject([{ reason: 'Crashed', message: 'It ended' }]);
  });

  test('limits all slots together to a burst of 50 and then ten Events a second, drops the oldest, and logs that once', async () => {
    for (let index = 0; index < 2000; index++) {
      kube.apply(`s${index}`, {});
      report('It ended', `s${index}`);
    }
    await kube.clock.advance(1000);
    expect(events().length).toBeLessThanOrEqual(61);
    expect(events().length).toBeGreaterThanOrEqual(55);
    expect(kube.warnings).toEqual([expect.stringContaining('the oldest are dropped')]);
    await kube.clock.advance(120_000);
    expect(events().map(({ metadata }) => metadata.name.split('.')[0])).toContain('s1999');
    expect(events().length).toBeLessThan(1100);
    expect(kube.behaviour.most).toBe(1);
  });

  test('publishes nothing while another replica is the leader, and nothing about slots that are gone', async () => {
    report('It ended', 'gone');
    kube.endTerm();
    report('It ended');
    await kube.clock.advance(60_000);
    kube.beginTerm();
    await kube.clock.advance(60_000);
    expect(kube.requests).toEqual([]);
    report('It ended');
    await kube.clock.advance(60_000);
    expect(events()).toMatchObject([{ count: 1 }]);
  });

  test('retries a few times while the server is unreachable, then drops the Event', async () => {
    kube.behaviour.fault = () => ({ kind: 'retry', reason: 'ApiUnreachable', message: 'connection refused' });
    report('It ended');
    await kube.clock.advance(600_000);
    expect(kube.requests).toHaveLength(3);
    expect(kube.warnings).toHaveLength(1);
    expect([ended, sink.waitingCount()]).toEqual([['event failed', 'event failed', 'event failed'], 0]);
    kube.behaviour.fault = () => undefined;
    report('It ended');
    expect(sink.waitingCount()).toBe(1);
    await kube.clock.advance(60_000);
    expect(events()).toMatchObject([{ count: 1 }]);
    expect([ended.at(-1), sink.waitingCount()]).toEqual(['event done', 0]);
  });

  test('does not retry without permission', async () => {
    kube.behaviour.fault = () => ({ kind: 'stalled', reason: 'Forbidden', message: 'cannot create events' });
    report('It ended');
    await kube.clock.advance(600_000);
    expect(kube.requests).toHaveLength(1);
  });
});
