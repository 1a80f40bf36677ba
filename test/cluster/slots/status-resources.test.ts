import { beforeEach, describe, expect, test } from '@jest/globals';
import { createStatusResources, type StatusResources } from '../../../src/cluster/slots/status-resources.ts';
import { isTable } from '../../../src/schema/words/key-case.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { SlotStatus } from '../../../src/schema/status/slot-status.ts';
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
  /** By slot and uid. */
  let lastGood: Map<string, { readonly generation: number; readonly spec: Readonly<Record<string, unknown>> }>;
  /** Creates the sink of a restarted controller. */
  const create = () => {
    running.abort();
    running = new AbortController();
    const created = createStatusResources({
      ...kube,
      generationOf: () => undefined,
      lastGoodOf: (name, uid) => lastGood.get(`${name}/${uid}`),
    });
    created.start(running.signal);
    return created;
  };
  beforeEach(() => {
    kube = createInMemoryKube();
    lastGood = new Map();
    kube.behaviour.latencyMs = 5;
    sink = create();
  });
  const report = (...statuses: readonly SlotStatus[]) => sink.write({ at: kube.clock.now(), statuses, refused: new Map(), entries: [] });
  const slot = (index: number, changes: Partial<SlotStatus> = {}) => slotStatus({ ...changes, name: nameOf(index) });
  const createSlots = (count: number) => {
    for (let index = 0; index < count; index++) kube.apply(`s${index}`, { model: { default: 'a.gguf' } });
  };
  const statusOf = (index: number) => kube.find('SlotSpec', `s${index}`)?.['status'];
  const settle = async () => {
    await kube.clock.advance(120_000);
    return kube.requests.length;
  };

  test('writes a status at once, under its own field manager, and only once', async () => {
    createSlots(1);
    report(slot(0));
    await kube.clock.advance(10);
    expect(statusOf(0)).toMatchObject({ state: 'ready', endpoint: 'http://svc-slot-s0.demo.svc:8080' });
    expect(kube.requests).toMatchObject([{ verb: 'apply status SlotSpec', name: 's0', body: { metadata: { resourceVersion: '1' } } }]);
    expect(kube.requests[0]?.body).not.toHaveProperty('spec');
    report(slot(0));
    expect(await settle()).toBe(1);
  });

  test('records the last good spec of this very object, with the next status and without a write of its own', async () => {
    createSlots(1);
    const record = { generation: 1, spec: { model: { default: 'a.gguf' } } };
    lastGood.set('s0/uid-1', record);
    report(slot(0));
    await settle();
    expect(statusOf(0)).toMatchObject({ state: 'ready', lastGood: record });
    // Too large to be recorded, or edited since.
    lastGood.clear();
    report(slot(0, { observedGeneration: 4 }));
    expect(await settle()).toBe(2);
    expect(statusOf(0)).not.toHaveProperty('lastGood');
    lastGood.set('s0/uid-1', record);
    kube.drop('SlotSpec', 's0');
    kube.apply('s0', { model: {} });
    report(slot(0));
    expect(await settle()).toBe(3);
    expect(statusOf(0)).not.toHaveProperty('lastGood');
  });

  test('publishes the rest where an older definition on the server lacks fields, and says what to do', async () => {
    createSlots(2);
    lastGood.set('s0/uid-1', { generation: 1, spec: { model: { default: 'a.gguf' } } });
    const head = 'failed to create typed patch object (demo/s0; inference.svc.dev/v1alpha1, Kind=SlotSpec): ';
    const upgraded = { yet: false };
    kube.behaviour.fault = ({ body: { status } }) => {
      const unknown = ['summary', 'lastGood'].filter((field) => isTable(status) && field in status);
      if (upgraded.yet || unknown.length === 0) return undefined;
      const message = head + unknown.map((field) => `.status.${field}: field not declared in schema`).join('\n');
      return { kind: 'retry', reason: 'ApiFailed', message };
    };
    report(slot(0), slot(1));
    await kube.clock.advance(1000);
    expect([statusOf(0), statusOf(1)]).toMatchObject([{ state: 'ready' }, { state: 'ready' }]);
    expect(kube.warnings).toEqual([
      expect.stringMatching(/^The CustomResourceDefinition on the server is older .*"status\.summary", "status\.lastGood": apply /),
    ]);
    const made = await settle();
    // Writes to one of them go on without the fields, until the definition may have been upgraded.
    report(slot(0, { observedGeneration: 4 }), slot(1));
    expect(await settle()).toBe(made + 1);
    upgraded.yet = true;
    await kube.clock.advance(600_000);
    report(slot(0, { observedGeneration: 5 }), slot(1));
    await settle();
    expect(statusOf(0)).toMatchObject({ observedGeneration: 5, summary: { ready: 'True' }, lastGood: { generation: 1 } });
  });

  test('a new leader writes nothing that is already there', async () => {
    createSlots(5);
    report(...[0, 1, 2, 3, 4].map((index) => slot(index)));
    await settle();
    sink = create();
    report(
      ...[0, 1, 2, 3, 4].map((index) =>
        slot(index, { since: kube.clock.now(), conditions: READY.map((one) => ({ ...one, lastTransitionAt: kube.clock.now() })) }),
      ),
    );
    expect(await settle()).toBe(5);
  });

  test('a controller that has just started does not revoke "Ready" before it has observed the workloads', async () => {
    createSlots(1);
    report(slot(0));
    await settle();
    sink = create();
    report(slot(0, WARMING));
    await kube.clock.advance(1000);
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
    report(slot(0));
    expect(await settle()).toBe(1);
    sink = create();
    report(slot(0, WARMING));
    await settle();
    expect(statusOf(0)).toMatchObject({ state: 'warming' });
  });

  test('writes the newest of many statuses, one at a time and not too often', async () => {
    createSlots(1);
    for (let round = 0; round < 100; round++) {
      report(slot(0, { ...WARMING, restarts: round, observedGeneration: round }));
      await kube.clock.advance(10);
    }
    report(slot(0, { restarts: 100, observedGeneration: 100 }));
    await settle();
    expect(statusOf(0)).toMatchObject({ state: 'ready', restarts: 100 });
    expect(kube.behaviour.most).toBe(1);
    const times = kube.requests.map(({ at }) => at);
    expect(times.slice(1).every((at, index) => at - (times[index] ?? 0) >= 200)).toBe(true);
    expect(times.length).toBeGreaterThan(3);
  });

  test('writes changes by requests, restarts and messages every few seconds at most', async () => {
    createSlots(1);
    report(slot(0, { state: 'idle' }));
    await kube.clock.advance(100);
    for (let round = 0; round < 200; round++) {
      report(slot(0, { state: round % 2 === 0 ? 'serving' : 'idle', restarts: round, since: kube.clock.now() }));
      await kube.clock.advance(100);
    }
    expect(kube.requests.length).toBeGreaterThanOrEqual(2);
    expect(kube.requests.length).toBeLessThanOrEqual(3);
    await settle();
    expect(statusOf(0)).toMatchObject({ state: 'idle', restarts: 199 });
  });

  test('takes about one write for each of 2,000 slots that start at once, four at a time', async () => {
    createSlots(2000);
    const all = Array.from({ length: 2000 }, (_, index) => index);
    for (const state of ['offline', 'starting', 'warming'] as const) {
      report(...all.map((index) => slot(index, { ...WARMING, state })));
      await kube.clock.advance(100);
    }
    report(...all.map((index) => slot(index)));
    await kube.clock.advance(10_000);
    const states = kube.all('SlotSpec').map(({ status }) => judge({ metadata: { generation: 3 }, status }));
    expect(states.filter((state) => state === 'Current')).toHaveLength(2000);
    expect(kube.behaviour.most).toBe(4);
    expect(kube.requests.length).toBeLessThan(2000 * 1.15);
    const writes = kube.requests.length;
    expect(await settle()).toBe(writes);
  });

  test('only the leader writes; the next leader begins with what it knows', async () => {
    createSlots(2);
    kube.endTerm();
    report(slot(0), slot(1));
    expect(await settle()).toBe(0);
    kube.beginTerm();
    await kube.clock.advance(100);
    expect([statusOf(0), statusOf(1)]).toMatchObject([{ state: 'ready' }, { state: 'ready' }]);
    kube.behaviour.latencyMs = 1000;
    report(slot(0, WARMING), slot(1, WARMING));
    await kube.clock.advance(500);
    kube.endTerm();
    await settle();
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
    kube.beginTerm();
    await settle();
    expect([statusOf(0), statusOf(1)]).toMatchObject([{ state: 'warming' }, { state: 'warming' }]);
  });

  test('retries an unreachable server less and less often, logs that once, and writes everything when it is back', async () => {
    createSlots(50);
    kube.behaviour.fault = () => serverAway;
    report(...Array.from({ length: 50 }, (_, index) => slot(index)));
    await kube.clock.advance(300_000);
    expect(kube.requests.length).toBeLessThan(4 * 15);
    expect(kube.warnings).toEqual([expect.stringContaining('out of date')]);
    kube.behaviour.fault = () => undefined;
    await kube.clock.advance(61_000);
    expect(kube.all('SlotSpec').every(({ status }) => judge({ metadata: { generation: 3 }, status }) === 'Current')).toBe(true);
  });

  test('a rejected status does not delay others, and is retried less and less often', async () => {
    createSlots(2);
    kube.behaviour.fault = ({ name }) =>
      name === 's0' ? { kind: 'stalled', reason: 'Invalid', message: 'status.state: Unsupported' } : undefined;
    report(slot(0), slot(1));
    await kube.clock.advance(600_000);
    expect(statusOf(1)).toMatchObject({ state: 'ready' });
    expect(kube.requests.filter(({ name }) => name === 's0').length).toBeLessThan(20);
    expect(kube.warnings).toHaveLength(1);
  });

  test('writes nothing for slots that are gone or being deleted, and continues for one that was created again', async () => {
    createSlots(2);
    kube.behaviour.fault = ({ name }) => (name === 's0' ? { kind: 'stalled', reason: 'NotFound', message: 'gone' } : undefined);
    kube.apply('s1', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    report(slot(0), slot(1), slot(2));
    expect(await settle()).toBe(1);
    expect(kube.warnings).toEqual([]);
    kube.behaviour.fault = () => undefined;
    kube.drop('SlotSpec', 's0');
    kube.apply('s0', { model: { default: 'a.gguf' } });
    expect(await settle()).toBe(2);
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
  });

  test('retries after a conflict with the present object, without a warning', async () => {
    createSlots(1);
    let conflicts = 2;
    kube.behaviour.fault = () => (conflicts-- > 0 ? { kind: 'retry', reason: 'Conflict', message: 'another uid' } : undefined);
    report(slot(0));
    await settle();
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
  });

  test('a write in progress does not overwrite what the next leader wrote', async () => {
    createSlots(1);
    kube.behaviour.latencyMs = 1000;
    report(slot(0, WARMING));
    await kube.clock.advance(500);
    kube.touch('s0', { status: { state: 'idle', observedGeneration: 3 } });
    await kube.clock.advance(600);
    expect(statusOf(0)).toMatchObject({ state: 'idle' });
    expect(kube.warnings).toEqual([]);
  });

  test('restores a status that another client changed, but not in a loop', async () => {
    createSlots(1);
    report(slot(0));
    await settle();
    for (let round = 0; round < 60; round++) {
      kube.touch('s0', { status: { state: 'offline' } });
      await kube.clock.advance(1000);
    }
    expect(kube.requests.length).toBeLessThanOrEqual(4);
    await settle();
    expect(statusOf(0)).toMatchObject({ state: 'ready' });
  });

  test('publishes a refused spec with the refused generation', async () => {
    kube.apply('s0', {});
    kube.apply('s0', {});
    const problems = [{ path: ['model'], message: 'Add the table "model": it is required' }];
    const refusal = { at: kube.clock.now(), statuses: [], refused: new Map([[nameOf(0), problems]]), entries: [] };
    sink.write(refusal);
    sink.write(refusal);
    await settle();
    expect(judge({ metadata: { generation: 2 }, status: statusOf(0) })).toBe('Failed');
    expect(statusOf(0)).toMatchObject({ observedGeneration: 2, state: 'offline' });
    expect(kube.requests).toHaveLength(1);
  });

  test('flush() writes what waits for its time, and gives up if the server is unreachable', async () => {
    createSlots(2);
    kube.behaviour.latencyMs = 0;
    report(slot(0), slot(1));
    await sink.flush();
    report(slot(0, { restarts: 7 }), slot(1));
    await sink.flush();
    expect(statusOf(0)).toMatchObject({ restarts: 7 });
    kube.behaviour.fault = () => ({ kind: 'retry', reason: 'ApiUnreachable', message: 'connection refused' });
    report(slot(0, { restarts: 8 }), slot(1, { restarts: 8 }));
    await sink.flush();
    expect(statusOf(0)).toMatchObject({ restarts: 7 });
    await sink.flush();
  });
});
