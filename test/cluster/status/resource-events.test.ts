import { beforeEach, describe, expect, test } from '@jest/globals';
import { createResourceEvents, type ResourceEvents } from '../../../src/cluster/status/resource-events.ts';
import { createSlotResources } from '../../../src/cluster/slots/slot-resources.ts';
import { SlotName } from '../../../src/schema/names.ts';
import type { TimelineEntry } from '../../../src/schema/slot-status.ts';
import { createInMemoryKube, type MemoryKube } from '../../support/kube/in-memory-kube.ts';

const reporter = { component: 'svc-controller', instance: 'svc-0' };

describe('createResourceEvents()', () => {
  let kube: MemoryKube;
  let sink: ResourceEvents;
  beforeEach(() => {
    kube = createInMemoryKube();
    kube.apply('img', {});
    const { ownerOf } = createSlotResources({ slots: kube.slots, log: kube.log, now: kube.clock.now });
    sink = createResourceEvents({ ...kube, ownerOf, reporter });
  });
  const tell = (message: string, slot = 'img', changes: Partial<TimelineEntry> = {}) => {
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

  test('tells a failure at once, about the very SlotSpec', async () => {
    tell('It ended');
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

  test('counts what is told again on the one Event, every ten seconds at the most', async () => {
    for (let round = 0; round < 20; round++) {
      tell('It ended');
      await kube.clock.advance(1000);
    }
    await kube.clock.advance(60_000);
    expect(events()).toMatchObject([{ count: 20 }]);
    expect(events()[0]?.['lastTimestamp']).not.toBe(events()[0]?.['firstTimestamp']);
    expect(kube.requests.length).toBeLessThanOrEqual(4);
  });

  test('tells it anew when the server has thrown the Event away', async () => {
    tell('It ended');
    await kube.clock.advance(20_000);
    const [old] = events();
    kube.drop('Event', old?.metadata.name ?? '');
    tell('It ended');
    tell('It ended');
    await kube.clock.advance(20_000);
    expect(events()).toMatchObject([{ count: 2 }]);
    expect(events()[0]?.metadata.name).not.toBe(old?.metadata.name);
  });

  test('a slot that tells without end has its share and no more', async () => {
    for (let round = 0; round < 500; round++) {
      tell(`Exit code ${round}`);
      await kube.clock.advance(100);
    }
    await kube.clock.advance(60_000);
    expect(events().length).toBeLessThanOrEqual(10);
    expect(kube.requests.length).toBeLessThanOrEqual(26);
  });

  test('all slots together do not take more of the server than 50 and then ten a second; the oldest are dropped, and it says so once', async () => {
    for (let index = 0; index < 2000; index++) {
      kube.apply(`s${index}`, {});
      tell('It ended', `s${index}`);
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

  test('says nothing while another replica leads, and nothing of slots that are gone', async () => {
    tell('It ended', 'gone');
    kube.endTerm();
    tell('It ended');
    await kube.clock.advance(60_000);
    kube.beginTerm();
    await kube.clock.advance(60_000);
    expect(kube.requests).toEqual([]);
  });

  test('tries a few times where the server is away, then lets it be', async () => {
    kube.behaviour.fault = () => ({ kind: 'retry', reason: 'ApiUnreachable', message: 'connection refused' });
    tell('It ended');
    await kube.clock.advance(600_000);
    expect(kube.requests).toHaveLength(3);
    expect(kube.warnings).toHaveLength(1);
    kube.behaviour.fault = () => undefined;
    tell('It ended');
    await kube.clock.advance(60_000);
    expect(events()).toMatchObject([{ count: 1 }]);
  });

  test('does not ask again for what it may not do', async () => {
    kube.behaviour.fault = () => ({ kind: 'stalled', reason: 'Forbidden', message: 'cannot create events' });
    tell('It ended');
    await kube.clock.advance(600_000);
    expect(kube.requests).toHaveLength(1);
  });

  test('flush() tells what may be told now, counts included', async () => {
    tell('It ended');
    await sink.flush();
    tell('It ended');
    await sink.flush();
    expect(events()).toMatchObject([{ count: 2 }]);
    kube.behaviour.fault = () => 'throw';
    tell('It ended again');
    await sink.flush();
    expect(events()).toHaveLength(1);
  });
});
