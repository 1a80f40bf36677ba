import { beforeEach, describe, expect, test } from '@jest/globals';
import type { DesiredState } from '../../../src/reconciler/ports.ts';
import { createSlotResources, createSlotUrgency, type SlotResources } from '../../../src/cluster/slots/slot-resources.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { createInMemoryKube, type MemoryKube } from '../../support/kube/in-memory-kube.ts';

const primary = SlotName.parse('primary');
const embed = SlotName.parse('embed');
const model = (name: string) => ({ model: { default: name } });
const signal = new AbortController().signal;

describe('createSlotResources()', () => {
  let kube: MemoryKube;
  let source: SlotResources;
  beforeEach(() => {
    kube = createInMemoryKube();
    source = createSlotResources({ slots: kube.slots, log: kube.log, now: kube.clock.now });
  });
  const read = async (): Promise<DesiredState> => {
    const result = await source.read(signal);
    if (!result.ok) throw new Error(result.failure.message);
    return result.value;
  };

  test('every SlotSpec is a slot, with the generation of the resource', async () => {
    kube.apply('primary', model('a.gguf'));
    kube.apply('primary', model('b.gguf'));
    kube.apply('embed', { ...model('e.gguf'), lifecycle: { idleTimeout: '15m' } });
    const state = await read();
    expect(state.slots.get(primary)).toMatchObject({ generation: 2, problems: [], spec: { model: { default: 'b.gguf' } } });
    expect(state.slots.get(embed)).toMatchObject({ generation: 1, spec: { lifecycle: { idleTimeoutMs: 900_000 } } });
    expect(state.refused.size).toBe(0);
    expect(source.generationOf(primary)).toBe(2);
  });

  test('a published status changes nothing: the slot and the state are the same objects', async () => {
    kube.apply('primary', model('a.gguf'));
    const before = await read();
    kube.touch('primary', { status: { state: 'ready' } });
    const after = await read();
    expect(after.slots.get(primary)).toBe(before.slots.get(primary));
    expect(after).toBe(before);
  });

  test('an edit without effect is a new generation of the same spec', async () => {
    kube.apply('primary', model('a.gguf'));
    const before = await read();
    kube.apply('primary', model('a.gguf'));
    const after = await read();
    expect(after.slots.get(primary)?.generation).toBe(2);
    expect(after.slots.get(primary)?.spec).toBe(before.slots.get(primary)?.spec);
  });

  test('only the leader logs what is wrong with a spec, and a new leader what is wrong now', async () => {
    let leads = false;
    source = createSlotResources({ slots: kube.slots, log: kube.log, now: kube.clock.now, leads: () => leads });
    kube.apply('mine', model('a-model-of-a-later-catalogue'));
    kube.apply('primary', { model: {} });
    await read();
    expect(kube.warnings).toEqual([]);
    kube.apply('primary', model('a.gguf'));
    await read();
    leads = true;
    for (const _ of [1, 2]) await read();
    expect(kube.warnings).toEqual([expect.stringMatching(/^SlotSpec\/mine: provider: Set "provider"/)]);
  });

  test('an invalid edit keeps the last valid spec, and its problems name the field as the resource does', async () => {
    kube.apply('primary', model('a.gguf'));
    await read();
    kube.apply('primary', { ...model('b.gguf'), lifecycle: { idleTimeout: 'soon' }, enbaled: true });
    const state = await read();
    const slot = state.slots.get(primary);
    expect(slot).toMatchObject({ generation: 2, spec: { model: { default: 'a.gguf' } } });
    const lines = slot?.problems.map((problem) => formatProblem(problem)) ?? [];
    expect(lines).toEqual([
      expect.stringMatching(/^lifecycle\.idleTimeout: .*"15m"/),
      expect.stringMatching(/^enbaled: .*did you mean "enabled"/),
    ]);
    expect(kube.warnings).toEqual(lines.map((line) => `SlotSpec/primary: ${line}`));
    await read();
    kube.touch('primary', { status: {} });
    await read();
    expect(kube.warnings).toHaveLength(2);
    kube.apply('primary', model('c.gguf'));
    expect((await read()).slots.get(primary)).toMatchObject({ generation: 3, problems: [], spec: { model: { default: 'c.gguf' } } });
  });

  describe('after a restart, while the text has a mistake', () => {
    const record = (generation: number, name = 'a.gguf', more: object = {}) => ({
      observedGeneration: generation + 1,
      lastGood: { generation, spec: { ...model(name), ...more } },
    });
    const edit = async (status: object) => {
      kube.apply('primary', model('a.gguf'));
      kube.apply('primary', { ...model('b.gguf'), enbaled: true });
      kube.touch('primary', { status });
      return await read();
    };

    test('the last good spec is the one that the leader recorded in the status', async () => {
      const state = await edit(record(1));
      expect(state.refused.size).toBe(0);
      expect(state.slots.get(primary)).toMatchObject({
        generation: 2,
        spec: { model: { default: 'a.gguf' } },
        problems: [{ path: ['enbaled'] }],
      });
      expect(source.lastGoodOf(primary, 'uid-1')).toEqual({ generation: 1, spec: model('a.gguf') });
      // A status of its own changes nothing.
      kube.touch('primary', { status: { ...record(1), state: 'ready' } });
      expect((await read()).slots.get(primary)).toBe(state.slots.get(primary));
    });

    test('a record of another object of this name is never used, nor given to one', async () => {
      const before = await edit(record(1));
      expect(before.slots.size).toBe(1);
      kube.drop('SlotSpec', 'primary');
      kube.apply('primary', { model: {} });
      expect((await read()).slots.size).toBe(0);
      expect(source.lastGoodOf(primary, 'uid-1')).toBeUndefined();
      expect(source.lastGoodOf(primary, 'uid-2')).toBeUndefined();
    });

    test.each<[string, object]>([
      ['is invalid itself', record(1, 'a.gguf', { enbaled: true })],
      ['claims the present generation', record(2)],
      ['claims a later generation', record(7)],
      ['has no generation', { observedGeneration: 2, lastGood: { spec: model('a.gguf') } }],
      ['is no table', { observedGeneration: 2, lastGood: 'a.gguf' }],
    ])('a record is ignored that %s', async (_, status) => {
      const state = await edit(status);
      expect([state.slots.size, state.refused.size]).toEqual([0, 1]);
      expect(source.lastGoodOf(primary, 'uid-1')).toBeUndefined();
    });

    test('two replicas agree, whether or not they saw the valid text themselves', async () => {
      kube.apply('primary', model('a.gguf'));
      kube.apply('primary', model('b.gguf'));
      await read();
      kube.apply('primary', { ...model('c.gguf'), enbaled: true });
      kube.touch('primary', { status: { observedGeneration: 1, lastGood: { generation: 1, spec: model('a.gguf') } } });
      const modelOf = async () => (await read()).slots.get(primary)?.spec.model.default;
      // The leader has not looked at this text yet: what this replica saw itself is newer.
      expect(await modelOf()).toBe('b.gguf');
      // The leader did not see generation 2, and has put generation 1 in force again.
      kube.touch('primary', { status: { observedGeneration: 3, lastGood: { generation: 1, spec: model('a.gguf') } } });
      expect(await modelOf()).toBe('a.gguf');
      source = createSlotResources({ slots: kube.slots, log: kube.log, now: kube.clock.now });
      expect(await modelOf()).toBe('a.gguf');
      // A record that somebody removed is still known.
      kube.touch('primary', { status: { observedGeneration: 3 } });
      expect(await modelOf()).toBe('a.gguf');
    });
  });

  test('a resource that was never valid is refused, as is another object of the same name', async () => {
    kube.apply('mine', model('unheard-of'));
    const mine = SlotName.parse('mine');
    expect((await read()).refused.get(mine)?.[0]).toMatchObject({ path: ['provider'] });
    expect(source.generationOf(mine)).toBe(1);
    kube.apply('primary', model('a.gguf'));
    await read();
    kube.drop('SlotSpec', 'primary');
    kube.apply('primary', { model: {} });
    const state = await read();
    expect(state.slots.size).toBe(0);
    expect([...state.refused.keys()].toSorted()).toEqual(['mine', 'primary']);
  });

  test('a name that is not a valid slot name is a problem of the source', async () => {
    kube.apply('a.b', model('a.gguf'));
    const state = await read();
    expect([state.slots.size, state.refused.size]).toEqual([0, 0]);
    expect(state.problems?.map((problem) => formatProblem(problem))).toEqual([
      expect.stringMatching(/^SlotSpec\/a\.b: The name .*single hyphens/),
    ]);
    kube.drop('SlotSpec', 'a.b');
    expect((await read()).problems).toEqual([]);
  });

  test('a resource that is gone or being deleted is not desired, and owns nothing', async () => {
    kube.apply('primary', model('a.gguf'));
    kube.apply('embed', model('e.gguf'));
    expect((await read()).slots.size).toBe(2);
    expect(source.ownerOf(primary)).toEqual({
      apiVersion: 'inference.svc.dev/v1alpha1',
      kind: 'SlotSpec',
      name: 'primary',
      uid: 'uid-1',
      controller: true,
    });
    kube.apply('primary', model('a.gguf'), { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(source.ownerOf(primary)).toBeUndefined();
    expect([...(await read()).slots.keys()]).toEqual(['embed']);
    kube.drop('SlotSpec', 'embed');
    expect((await read()).slots.size).toBe(0);
    expect(source.ownerOf(embed)).toBeUndefined();
  });

  test('fails before the first list, and after the server has been unreachable for long', async () => {
    kube.apply('primary', model('a.gguf'));
    kube.setHealth({ kind: 'starting' });
    expect(await source.read(signal)).toMatchObject({ ok: false, failure: { reason: 'SlotsUnreadable' } });
    // A server that is away from the start has not said yet which slots there are: an empty copy is no desired state.
    kube.setHealth({ kind: 'unreachable', sinceMs: kube.clock.now(), message: 'connection refused', listed: false });
    expect(await source.read(signal)).toMatchObject({
      ok: false,
      failure: { kind: 'retry', reason: 'SlotsUnreadable', message: expect.stringContaining('connection refused') },
    });
    kube.setHealth({ kind: 'unreachable', sinceMs: kube.clock.now(), message: 'connection refused', listed: true });
    expect((await read()).slots.size).toBe(1);
    await kube.clock.advance(61_000);
    const late = await source.read(signal);
    expect(late).toMatchObject({ ok: false, failure: { kind: 'retry', message: expect.stringContaining('61 s: connection refused') } });
    kube.setHealth({ kind: 'current' });
    expect((await read()).slots.size).toBe(1);
  });

  test('returns the status that the leader published, and ignores any other', async () => {
    kube.apply('primary', model('a.gguf'));
    kube.apply('embed', model('e.gguf'));
    kube.touch('embed', { status: { state: 'flying', provider: 'gguf' } });
    kube.touch('primary', {
      status: {
        state: 'ready',
        provider: 'gguf',
        backend: 'cpu',
        model: 'a.gguf',
        restarts: 2,
        since: '2026-01-01T00:00:00Z',
        replicas: 3,
      },
    });
    expect([...source.statuses()].map(([name]) => name)).toEqual(['primary']);
    const status = source.statuses().get(primary);
    expect(status).toMatchObject({
      name: 'primary',
      state: 'ready',
      restarts: 2,
      replicas: { present: 3, ready: 0 },
      since: Date.UTC(2026, 0),
    });
    expect(source.statuses().get(primary)).toBe(status);
    expect(source.statuses().get(embed)).toBeUndefined();
  });

  test('does not parse 2,000 unchanged SlotSpecs again', async () => {
    for (let index = 0; index < 2000; index++) kube.apply(`s${index}`, { ...model('a.gguf'), provider: 'gguf' });
    const items = kube.slots.items();
    source = createSlotResources({ slots: { ...kube.slots, items: () => items }, log: kube.log, now: kube.clock.now });
    const timed = async () => {
      const began = performance.now();
      const state = await read();
      return { state, ms: performance.now() - began };
    };
    const first = await timed();
    expect(first.state.slots.size).toBe(2000);
    const later: { readonly state: DesiredState; readonly ms: number }[] = [];
    for (let pass = 0; pass < 50; pass++) later.push(await timed());
    expect(later.every(({ state }) => state === first.state)).toBe(true);
    const medianMs = later.map(({ ms }) => ms).toSorted((a, b) => a - b)[25] ?? Number.NaN;
    if (process.env['SVC_TEST_SHOW'] !== undefined)
      process.stderr.write(`first ${first.ms.toFixed(1)} ms, then ${medianMs.toFixed(3)} ms\n`);
    expect(medianMs).toBeLessThan(first.ms / 10);
  });
});

test('each edit wakes the loop at once, and of new slots that come together only the first', () => {
  let now = 0;
  const isUrgent = createSlotUrgency(() => now);
  const slotSpec = (name: string, generation = 1) => ({ apiVersion: 'v1', kind: 'SlotSpec', metadata: { name, generation } });
  const created = Array.from({ length: 500 }, (_, index) => {
    now += 20;
    return isUrgent(undefined, slotSpec(`new-${index}`));
  });
  expect(created.filter((urgent) => urgent)).toHaveLength(1);
  expect(created[0]).toBe(true);
  expect(isUrgent(slotSpec('edited'), slotSpec('edited', 2))).toBe(true);
  expect(isUrgent(slotSpec('edited', 2), slotSpec('edited', 2))).toBe(false);
  now += 2000;
  expect(isUrgent(undefined, slotSpec('alone'))).toBe(true);
});
