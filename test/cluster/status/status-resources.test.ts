import { beforeEach, describe, expect, test } from '@jest/globals';
import { createStatusResources, type StatusResources } from '../../../src/cluster/status/status-resources.ts';
import { SlotName } from '../../../src/schema/names.ts';
import type { SlotStatus } from '../../../src/schema/slot-status.ts';
import { judge } from './decide/kstatus.ts';
import { condition, READY, slotStatus } from './decide/status-fixture.ts';
import { createInMemoryKube, type MemoryKube } from '../../support/kube/in-memory-kube.ts';

const nameOf = (index: number) => SlotName.parse(`s${index}`);
const WARMING = { state: 'warming', conditions: [condition('Ready', 'False', 'Warming'), condition('Reconciling', 'True')] } as const;
const serverAway = { kind: 'retry', reason: 'ApiUnreachable', message: 'connection refused' } as const;

describe('createStatusResources()', () => {
  let kube: MemoryKube;
  let sink: StatusResources;
  let running = new AbortController();
  /** As if the controller had ended and begun again. */
  const create = () => {
    running.abort();
    running = new AbortController();
    const made = createStatusResources({ ...kube, generationOf: () => undefined });
    made.start(running.signal);
    return made;
  };
  beforeEach(() => {
    kube = createInMemoryKube();
    kube.behaviour.latencyMs = 5;
    sink = create();
  });
  const give = (...statuses: readonly SlotStatus[]) => sink.write({ at: kube.clock.now(), statuses, refused: new Map(), entries: [] });
  const slot = (index: number, changes: Partial<SlotStatus> = {}) => slotStatus({ ...changes, name: nameOf(index) });
  const make = (count: number) => {
    for (let index = 0; index < count; index++) kube.apply(`s${index}`, { model: { default: 'a.gguf' } });
  };
  const statusOf = (index: number) => kube.find('SlotSpec', `s${index}`)?.['status'];
  const rest = async () => {
    await kube.clock.advance(120_000);
    return kube.requests.length;
  };

  test('writes a status at once, under a manager of its own, and only once', async () => {
    make(1);
    give(slot(0));
    await kube.clock.advance(10);
    expect(statusOf(0)).toMatchObject({ state: 'ready', endpoint: 'http://svc-slot-s0.demo.svc:8080' });
    expect(kube.requests).toMatchObject([
      { verb: 'apply status SlotSpec', name: 's0', body: { metadata: { resourceVersion: '1', namespace: 'demo' } } },
    ]);
    expect(kube.requests[0]?.body).not.toHaveProperty('spec');
    give(slot(0));
    expect(await rest()).toBe(1);
  });

  test('a new leader writes nothing that is there already', async () => {
    make(5);
    give(...[0, 1, 2, 3, 4].map((index) => slot(index)));
    await rest();
    sink = create();
    give(
      ...[0, 1, 2, 3, 4].map((index) =>
        slot(index, { since: kube.clock.now(), conditions: READY.map((one) => ({ ...one, lastTransitionAt: kube.clock.now() })) }),
      ),
    );
    expect(await rest()).toBe(5);
  });

  test('a controller that has just started does not take back what is well before it has looked', async () => {
    make(1);
    give(slot(0));
    await rest();
    sink = create();
    give(slot(0, WARMING));
    await kube.clock.advance(1000);
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
    give(slot(0));
    expect(await rest()).toBe(1);
    sink = create();
    give(slot(0, WARMING));
    await rest();
    expect(statusOf(0)).toMatchObject({ state: 'warming' });
  });

  test('of many statuses in a row the newest is written, one write at a time and not too often', async () => {
    make(1);
    for (let round = 0; round < 100; round++) {
      give(slot(0, { ...WARMING, restarts: round, observedGeneration: round }));
      await kube.clock.advance(10);
    }
    give(slot(0, { restarts: 100, observedGeneration: 100 }));
    await rest();
    expect(statusOf(0)).toMatchObject({ state: 'ready', restarts: 100 });
    expect(kube.behaviour.most).toBe(1);
    const times = kube.requests.map(({ at }) => at);
    expect(times.slice(1).every((at, index) => at - (times[index] ?? 0) >= 200)).toBe(true);
    expect(times.length).toBeGreaterThan(3);
  });

  test('requests, restarts and wordings are written every few seconds at the most', async () => {
    make(1);
    give(slot(0, { state: 'idle' }));
    await kube.clock.advance(100);
    for (let round = 0; round < 200; round++) {
      give(slot(0, { state: round % 2 === 0 ? 'serving' : 'idle', restarts: round, since: kube.clock.now() }));
      await kube.clock.advance(100);
    }
    expect(kube.requests.length).toBeGreaterThanOrEqual(2);
    expect(kube.requests.length).toBeLessThanOrEqual(3);
    await rest();
    expect(statusOf(0)).toMatchObject({ state: 'idle', restarts: 199 });
  });

  test('2,000 slots that all come up at once take about one write each, four at a time', async () => {
    make(2000);
    const all = Array.from({ length: 2000 }, (_, index) => index);
    for (const state of ['offline', 'starting', 'warming'] as const) {
      give(...all.map((index) => slot(index, { ...WARMING, state })));
      await kube.clock.advance(100);
    }
    give(...all.map((index) => slot(index)));
    await kube.clock.advance(10_000);
    const states = kube.all('SlotSpec').map(({ status }) => judge(3, status));
    expect(states.filter((state) => state === 'Current')).toHaveLength(2000);
    expect(kube.behaviour.most).toBe(4);
    expect(kube.requests.length).toBeLessThan(2000 * 1.15);
    const writes = kube.requests.length;
    expect(await rest()).toBe(writes);
  });

  test('only the replica that leads writes; the next one begins with what it knows', async () => {
    make(2);
    kube.endTerm();
    give(slot(0), slot(1));
    expect(await rest()).toBe(0);
    kube.beginTerm();
    await kube.clock.advance(100);
    expect([statusOf(0), statusOf(1)]).toMatchObject([{ state: 'ready' }, { state: 'ready' }]);
    kube.behaviour.latencyMs = 1000;
    give(slot(0, WARMING), slot(1, WARMING));
    await kube.clock.advance(500);
    kube.endTerm();
    await rest();
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
    kube.beginTerm();
    await rest();
    expect([statusOf(0), statusOf(1)]).toMatchObject([{ state: 'warming' }, { state: 'warming' }]);
  });

  test('a server that is away is asked less and less often, said once, and gets everything when it is back', async () => {
    make(50);
    kube.behaviour.fault = () => serverAway;
    give(...Array.from({ length: 50 }, (_, index) => slot(index)));
    await kube.clock.advance(300_000);
    expect(kube.requests.length).toBeLessThan(4 * 15);
    expect(kube.warnings).toEqual([expect.stringContaining('out of date')]);
    kube.behaviour.fault = () => undefined;
    await kube.clock.advance(61_000);
    expect(kube.all('SlotSpec').every(({ status }) => judge(3, status) === 'Current')).toBe(true);
  });

  test('one that is refused holds up nobody else, and is tried again ever later', async () => {
    make(2);
    kube.behaviour.fault = ({ name }) =>
      name === 's0' ? { kind: 'stalled', reason: 'Invalid', message: 'status.state: Unsupported' } : undefined;
    give(slot(0), slot(1));
    await kube.clock.advance(600_000);
    expect(statusOf(1)).toMatchObject({ state: 'ready' });
    expect(kube.requests.filter(({ name }) => name === 's0').length).toBeLessThan(20);
    expect(kube.warnings).toHaveLength(1);
  });

  test('gives up on slots that are gone or going, and serves one that was made anew', async () => {
    make(2);
    kube.behaviour.fault = ({ name }) => (name === 's0' ? { kind: 'stalled', reason: 'NotFound', message: 'gone' } : undefined);
    kube.apply('s1', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    give(slot(0), slot(1), slot(2));
    expect(await rest()).toBe(1);
    expect(kube.warnings).toEqual([]);
    kube.behaviour.fault = () => undefined;
    kube.drop('SlotSpec', 's0');
    kube.apply('s0', { model: { default: 'a.gguf' } });
    expect(await rest()).toBe(2);
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
  });

  test('a conflict is no waitingReason: the next attempt looks at what is there then', async () => {
    make(1);
    let conflicts = 2;
    kube.behaviour.fault = () => (conflicts-- > 0 ? { kind: 'retry', reason: 'Conflict', message: 'another uid' } : undefined);
    give(slot(0));
    await rest();
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
  });

  test('a write that was under way when the next leader wrote changes nothing', async () => {
    make(1);
    kube.behaviour.latencyMs = 1000;
    give(slot(0, WARMING));
    await kube.clock.advance(500);
    kube.touch('s0', { status: { state: 'idle', observedGeneration: 3 } });
    await kube.clock.advance(600);
    expect(statusOf(0)).toMatchObject({ state: 'idle' });
    expect(kube.warnings).toEqual([]);
  });

  test('puts back what somebody altered, without a fight', async () => {
    make(1);
    give(slot(0));
    await rest();
    for (let round = 0; round < 60; round++) {
      kube.touch('s0', { status: { state: 'offline' } });
      await kube.clock.advance(1000);
    }
    expect(kube.requests.length).toBeLessThanOrEqual(4);
    await rest();
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
  });

  test('a refused slot says so, with the generation that was refused', async () => {
    kube.apply('s0', {});
    kube.apply('s0', {});
    const problems = [{ path: ['model'], message: 'Add the table "model": it is required' }];
    const report = { at: kube.clock.now(), statuses: [], refused: new Map([[nameOf(0), problems]]), entries: [] };
    sink.write(report);
    sink.write(report);
    await rest();
    expect(judge(2, statusOf(0))).toBe('Failed');
    expect(statusOf(0)).toMatchObject({ observedGeneration: 2, state: 'offline' });
    expect(kube.requests).toHaveLength(1);
  });

  test('flush() writes what waits for its time, and gives up on a server that is away', async () => {
    make(2);
    kube.behaviour.latencyMs = 0;
    give(slot(0), slot(1));
    await sink.flush();
    give(slot(0, { restarts: 7 }), slot(1));
    await sink.flush();
    expect(statusOf(0)).toMatchObject({ restarts: 7 });
    kube.behaviour.fault = () => 'throw';
    give(slot(0, { restarts: 8 }), slot(1, { restarts: 8 }));
    await sink.flush();
    expect(statusOf(0)).toMatchObject({ restarts: 7 });
    await sink.flush();
  });
});
