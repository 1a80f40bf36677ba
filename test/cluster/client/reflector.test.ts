import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { CopyObserver } from '../../../src/cluster/client/object-copy.ts';
import { NO_OBSERVER, type ObservedCopy } from '../../../src/cluster/client/client-observer.ts';
import type { KubeApi, Reflector } from '../../../src/cluster/client/ports.ts';
import { createReflector, type ReflectorOptions } from '../../../src/cluster/client/reflector.ts';
import { CONFIG_MAPS } from '../../../src/cluster/client/decide/resource-path.ts';
import type { Clock } from '../../../src/reconciler/ports.ts';
import { createClock } from '../../../src/platform/clock.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { eventually } from '../../support/eventually.ts';
import { valueOf } from '../../support/kube/kube-api-contract.ts';

let fake: FakeKubeApi;
let api: KubeApi;
let own: AbortController;

beforeEach(async () => {
  fake = await startFakeKubeApi({ bookmarkMs: 40 });
  api = await connectToFake(fake);
  own = new AbortController();
});
afterEach(async () => {
  own.abort();
  await fake.close();
});

const put = (name: string, value = '1') => fake.put(CONFIG_MAPS, 'default', { metadata: { name }, data: { value } });
const remove = (name: string): void => fake.remove(CONFIG_MAPS, 'default', name);

/** Name to value, on the server and in the copy. */
const onServer = (): unknown => Object.fromEntries(fake.objects(CONFIG_MAPS).map((object) => [object.metadata.name, object['data']]));
const inCopy = (copy: Reflector): unknown =>
  Object.fromEntries(
    [...copy.items()].map(([name, object]) => [name, object['data']] as const).toSorted(([left], [right]) => (left < right ? -1 : 1)),
  );
const agrees = (copy: Reflector) => (): boolean => JSON.stringify(inCopy(copy)) === JSON.stringify(onServer());

async function follow(options: Partial<ReflectorOptions> = {}): Promise<{ readonly copy: Reflector; readonly wakes: () => number }> {
  let wakes = 0;
  const copy = createReflector({ api, type: CONFIG_MAPS, ...options });
  copy.changes(() => void (wakes += 1), own.signal);
  copy.start(own.signal);
  await eventually('the first list', () => copy.health().kind === 'current');
  await eventually('the watch is open', () => fake.watches.count() > 0);
  return { copy, wakes: () => wakes };
}

describe('createReflector()', () => {
  test('reports "starting" until the first list, then "current"', async () => {
    put('a');
    const copy = createReflector({ api, type: CONFIG_MAPS });
    expect([copy.health(), copy.items().size]).toEqual([{ kind: 'starting' }, 0]);
    copy.start(own.signal);
    await eventually('the first list', () => copy.health().kind === 'current');
    expect([copy.health(), inCopy(copy)]).toEqual([{ kind: 'current' }, onServer()]);
  });

  test('reports that it never received a list', async () => {
    await fake.goDown();
    const copy = createReflector({ api, type: CONFIG_MAPS });
    copy.start(own.signal);
    await eventually('it is known to be unreachable', () => copy.health().kind === 'unreachable');
    expect(copy.health()).toMatchObject({ listed: false });
  });

  test('keeps the same objects and wakes nobody if a list contains the same versions', async () => {
    put('a');
    const { copy, wakes } = await follow({ relistMs: 100 });
    const before = copy.items().get('a');
    const woken = wakes();
    await eventually('three more lists were read', () => fake.faults.count({ verb: 'list' }) > 3);
    expect(copy.items().get('a')).toBe(before);
    expect(wakes()).toBe(woken);
  });

  test('transforms only the objects of a repeated list that are new', async () => {
    put('a');
    const made: string[] = [];
    const { copy } = await follow({ relistMs: 100, transform: (object) => (made.push(object.metadata.name), { ...object }) });
    await eventually('three more lists were read', () => fake.faults.count({ verb: 'list' }) > 3);
    expect(made).toEqual(['a']);
    fake.watches.silence();
    put('a', '2');
    await eventually('the copy agrees with the server', agrees(copy));
    expect(made).toEqual(['a', 'a']);
  });

  test('wakes subscribers later for changes that are not urgent, and immediately for removals', async () => {
    put('a');
    const { copy } = await follow({ isUrgent: () => false });
    const wakes: (number | undefined)[] = [];
    copy.changes((withinMs) => void wakes.push(withinMs), own.signal);
    put('a', '2');
    await eventually('the change wakes the subscriber', () => wakes.length === 1);
    remove('a');
    await eventually('the removal wakes the subscriber', () => wakes.length === 2);
    expect(wakes).toEqual([200, 0]);
  });

  test('recovers from a silent watch with the next list', async () => {
    put('a');
    const { copy } = await follow({ relistMs: 400 });
    fake.watches.silence();
    put('a', '2');
    put('b');
    expect(agrees(copy)()).toBe(false);
    await eventually('the copy agrees with the server', agrees(copy));
  });

  test('gives up a watch that falls silent after a bookmark, without a list', async () => {
    const { copy } = await follow({ silentMs: 150 });
    await eventually('the watch is open', () => fake.watches.count() === 1);
    await new Promise((resolve) => setTimeout(resolve, 100));
    fake.watches.silence();
    put('a');
    await eventually('the copy agrees with the server', agrees(copy));
    expect(fake.faults.count({ verb: 'list' })).toBe(1);
  });

  test('lists again when the server no longer has a version, whether it reports that as an event or as a status', async () => {
    const { copy } = await follow({ random: () => 0.01 });
    fake.watches.expire();
    put('a');
    await eventually('the copy agrees after an event', agrees(copy));
    fake.faults.answer({ verb: 'watch' }, { status: 410, reason: 'Expired', message: 'too old resource version' }, 1);
    fake.watches.drop();
    put('b');
    await eventually('the copy agrees after a status', agrees(copy));
    expect(copy.health()).toEqual({ kind: 'current' });
  });

  test('reports since when the server is unreachable, and catches up after a compaction', async () => {
    put('a');
    put('b');
    const { copy, wakes } = await follow({ random: () => 0.05 });
    const woken = wakes();
    const before = performance.now();
    await fake.goDown();
    await eventually('it is known to be unreachable', () => copy.health().kind === 'unreachable');
    expect(copy.health()).toMatchObject({ message: expect.stringContaining(fake.url), listed: true });
    expect(wakes()).toBe(woken + 1);
    expect(copy.items().size).toBe(2);
    const health = copy.health();
    expect('sinceMs' in health ? health.sinceMs : 0).toBeGreaterThanOrEqual(before);
    remove('a');
    put('b', '2');
    put('c');
    fake.compact();
    await fake.comeUp();
    await eventually('the copy agrees with the server', agrees(copy));
    expect(copy.health()).toEqual({ kind: 'current' });
  });

  test('continues a broken watch where it ended, without a list', async () => {
    const { copy } = await follow({ random: () => 0.01 });
    for (let index = 0; index < 5; index += 1) {
      put('a', `before-${index}`);
      fake.watches.drop();
      put('a', `after-${index}`);
      await eventually('the copy agrees with the server', agrees(copy));
    }
    expect(fake.faults.count({ verb: 'list' })).toBe(1);
  });

  test('says how old its copy may be: nothing while a watch works, and the time since the last sign of the server otherwise', async () => {
    put('a');
    const real = createClock();
    let passedMs = 0;
    const clock: Clock = { ...real, now: () => real.now() + passedMs, at: (at, callback) => real.at(at - passedMs, callback) };
    const copies: ObservedCopy[] = [];
    const observer: CopyObserver = { ...NO_OBSERVER, copyStarted: (copy) => void copies.push(copy) };
    const ageMs = (): number => copies[0]?.ageMs() ?? Number.NaN;
    await fake.goDown();
    createReflector({ api, type: CONFIG_MAPS, clock, random: () => 0.01, observer }).start(own.signal);
    expect(copies).toMatchObject([{ resource: 'configmaps' }]);
    passedMs += 4000;
    expect(ageMs()).toBeGreaterThanOrEqual(4000);
    await fake.comeUp();
    await eventually('the first bookmark has arrived', () => ageMs() === 0 && fake.watches.count() === 1);
    fake.watches.silence();
    passedMs += 60_000;
    expect(ageMs()).toBe(0);
    await fake.goDown();
    await eventually('the watch is known to be broken', () => ageMs() > 0);
    passedMs += 30_000;
    expect(ageMs()).toBeGreaterThanOrEqual(30_000);
    fake.watches.silence(false);
    await fake.comeUp();
    await eventually('the copy is current again', () => ageMs() === 0);
  });

  test('reports why it lists, and how its watches end', async () => {
    const seen: string[] = [];
    let ageMs = (): number => Number.NaN;
    const observer: CopyObserver = {
      copyStarted: (copy) => void (ageMs = copy.ageMs),
      copyListed: ({ resource, cause }) => void seen.push(`${resource} listed: ${cause}`),
      copyWatchEnded: ({ resource, result }) => void seen.push(`${resource} watch: ${result}`),
    };
    await follow({ random: () => 0.01, observer });
    const settled = async (what: string, count: number): Promise<void> => {
      await eventually(what, () => seen.length >= count && ageMs() === 0);
      await eventually('the watch is open', () => fake.watches.count() > 0);
    };
    fake.watches.end();
    await settled('the watch has ended', 2);
    fake.watches.drop();
    await settled('the watch is broken', 3);
    fake.watches.expire();
    await settled('events were lost', 5);
    fake.faults.answer({ verb: 'watch' }, { status: 410, reason: 'Expired', message: 'too old resource version' }, 1);
    fake.watches.end();
    await settled('the version had expired', 8);
    own.abort();
    expect(seen).toEqual([
      'configmaps listed: start',
      'configmaps watch: ended',
      'configmaps watch: broken',
      'configmaps watch: lost',
      'configmaps listed: lost',
      'configmaps watch: ended',
      'configmaps watch: expired',
      'configmaps listed: expired',
    ]);
  });

  test('contains our own writes immediately, and older events do not undo them', async () => {
    put('a', 'old');
    const { copy } = await follow();
    fake.watches.silence(true);
    fake.watches.drop();
    put('a', 'theirs');
    const written = valueOf(await api.mergePatch(CONFIG_MAPS, 'a', { data: { value: 'ours' } }, own.signal));
    copy.noteWritten(written);
    expect(inCopy(copy)).toEqual({ a: { value: 'ours' } });
    fake.watches.silence(false);
    fake.watches.drop();
    put('b');
    await eventually('the copy has received the older events', agrees(copy));
    expect(inCopy(copy)).toEqual({ a: { value: 'ours' }, b: { value: '1' } });
    copy.noteWritten({ ...written, metadata: { ...written.metadata, resourceVersion: '1' }, data: { value: 'ancient' } });
    expect(inCopy(copy)).toEqual(onServer());
  });

  test('does not show a removed object again because of older events, but shows its successor with another UID', async () => {
    const uid = put('a').metadata.uid;
    const { copy } = await follow();
    fake.watches.silence(true);
    fake.watches.drop();
    put('a', 'changed');
    remove('a');
    copy.noteRemoved('a', 'another-uid');
    expect(copy.items().size).toBe(1);
    copy.noteRemoved('a', uid);
    expect(copy.items().size).toBe(0);
    const seen: number[] = [];
    copy.changes(() => void seen.push(copy.items().size), own.signal);
    fake.watches.silence(false);
    fake.watches.drop();
    await eventually('the watch is open again', () => fake.watches.count() === 1);
    put('a', 'new');
    await eventually('the copy contains the successor', agrees(copy));
    expect(seen).toEqual([1]);
  });

  test('receives many objects with multi-byte characters intact, and wakes once for events that arrive together', async () => {
    const { copy, wakes } = await follow();
    const woken = wakes();
    for (let index = 0; index < 300; index += 1) put(`c-${index}`, `${'ü€😀'.repeat(200)}${index}`);
    await eventually('the copy agrees with the server', agrees(copy));
    expect(wakes() - woken).toBeLessThan(300);
  });
});
