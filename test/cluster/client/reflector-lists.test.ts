/** How a reflector reads all objects: from which versions of API servers, how old they may be, and how often. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createReflector, type RefreshableReflector, type ReflectorOptions } from '../../../src/cluster/client/reflector.ts';
import { CONFIG_MAPS } from '../../../src/cluster/client/decide/resource-path.ts';
import { ok } from '../../../src/schema/words/failure.ts';
import { startFakeKubeApi, type FakeKubeApi, type FakeKubeOptions } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { createFastClock } from '../../support/kube/fast-clock.ts';
import { eventually } from '../../support/eventually.ts';

let fake: FakeKubeApi;
let own: AbortController;

beforeEach(() => {
  own = new AbortController();
});
afterEach(async () => {
  own.abort();
  await fake.close();
});

const put = (name: string, value = '1') => fake.put(CONFIG_MAPS, 'default', { metadata: { name }, data: { value } });

async function follow(
  server: FakeKubeOptions,
  names: readonly string[],
  options: Partial<ReflectorOptions> = {},
): Promise<RefreshableReflector> {
  fake = await startFakeKubeApi(server);
  for (const name of names) put(name);
  const copy = createReflector({ api: await connectToFake(fake), type: CONFIG_MAPS, random: () => 0.01, ...options });
  copy.start(own.signal);
  await eventually('the first list', () => copy.health().kind === 'current', 30_000);
  return copy;
}

/** The requests for all objects: their verbs and what they say about versions. */
const reads = (): readonly string[] =>
  fake.faults.requests
    .map(({ verb, url }) => ({ verb, query: new URL(url, 'http://fake').searchParams }))
    .filter(({ verb, query }) => verb === 'list' || query.get('sendInitialEvents') === 'true')
    .map(({ verb, query }) => `${verb} ${query.get('resourceVersion') ?? 'newest'}`);

const namesIn = (copy: RefreshableReflector): readonly string[] => [...copy.items().keys()].toSorted();

describe('The lists of a reflector', () => {
  test.each<[string, FakeKubeOptions['streamedLists'], readonly string[]]>([
    ['are streamed by a server that can', 'served', ['watch newest']],
    ['come from the cache of a server that refuses to stream', 'refused', ['watch newest', 'list 0']],
    ['come from the cache of a server whose storage cannot stream', 'failed', ['watch newest', 'list 0']],
    ['come from the cache of a server that does not know the parameters', 'ignored', ['watch newest', 'list 0']],
  ])('%s', async (_name, streamedLists = 'refused', expected) => {
    const copy = await follow({ streamedLists }, ['a', 'b'], { clock: createFastClock(streamedLists === 'ignored' ? 50 : 1) });
    expect([namesIn(copy), reads()]).toEqual([['a', 'b'], expected]);
    put('c');
    await eventually('the copy follows', () => copy.items().has('c'));
    expect(copy.items().get('c')).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' });
  });

  test('come from the cache of a server that accepts the request for a stream and then reports that it cannot send one', async () => {
    fake = await startFakeKubeApi();
    put('a');
    const api = await connectToFake(fake);
    // As a server of 1.34 answers whose etcd cannot report its progress.
    const message = 'a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled';
    const event = { type: 'ERROR', object: { kind: 'Status', status: 'Failure', message, code: 500 } };
    const copy = createReflector({
      api: {
        ...api,
        stream: async (type, options, signal) =>
          options.query['sendInitialEvents'] === 'true'
            ? ok(Readable.from([Buffer.from(`${JSON.stringify(event)}\n`)]))
            : await api.stream(type, options, signal),
      },
      type: CONFIG_MAPS,
      random: () => 0.01,
    });
    copy.start(own.signal);
    await eventually('the first list', () => copy.health().kind === 'current');
    expect([namesIn(copy), reads()]).toEqual([['a'], ['list 0']]);
  });

  test.each(['served', 'refused'] as const)('never go back in time, whatever a cache contains: %s', async (streamedLists) => {
    const copy = await follow({ streamedLists }, ['a']);
    fake.lists.freezeCache();
    put('b');
    await eventually('the copy has seen the change', () => copy.items().has('b'));
    const seen: string[] = [];
    copy.changes(() => void seen.push(namesIn(copy).join(' ')), own.signal);
    fake.faults.clearLog();
    fake.watches.expire();
    put('c');
    await eventually('the copy was read again', () => copy.items().has('c'));
    expect(seen.filter((names) => !names.includes('b'))).toEqual([]);
    const version = copy.items().get('b')?.metadata.resourceVersion ?? '';
    expect(reads()).toEqual(streamedLists === 'served' ? [`watch ${version}`] : [`list ${version}`, 'list newest']);
  });

  test('are of the newest state where it is asked for, even if the cache lags behind', async () => {
    fake = await startFakeKubeApi();
    put('a');
    fake.lists.freezeCache();
    put('b');
    const copy = createReflector({ api: await connectToFake(fake), type: CONFIG_MAPS, random: () => 0.01, clock: createFastClock(1000) });
    copy.start(own.signal);
    fake.watches.silence(true);
    await eventually('the first list', () => copy.health().kind === 'current');
    expect(namesIn(copy)).toEqual(['a']);
    await copy.refresh(own.signal);
    expect(namesIn(copy)).toEqual(['a', 'b']);
    expect(reads().at(-1)).toBe('list newest');
  });

  test('that are asked for while the server fails come when it has recovered, and the wait ends with its signal', async () => {
    const copy = await follow({}, ['a']);
    const stop = fake.faults.answer({ verb: 'list' }, { status: 500 });
    const ended = new AbortController();
    const first = copy.refresh(ended.signal);
    const second = copy.refresh(own.signal);
    await eventually('a list has failed', () => copy.health().kind === 'unreachable');
    ended.abort();
    await first;
    stop();
    await second;
    expect(copy.health().kind).toBe('current');
  });

  test('are rare while watches send bookmarks, which show that they are alive, and otherwise come every ten minutes', async () => {
    const count = async (bookmarkMs: number): Promise<number> => {
      const copy = await follow({ bookmarkMs }, ['a'], { clock: createFastClock(1000) });
      fake.faults.clearLog();
      // An hour.
      await sleep(3600);
      expect(copy.health().kind).toBe('current');
      const lists = reads().length;
      own.abort();
      await fake.close();
      own = new AbortController();
      return lists;
    };
    expect(await count(60)).toBe(0);
    expect(await count(1_000_000)).toBeGreaterThanOrEqual(5);
  });
});
