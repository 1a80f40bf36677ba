import { afterEach, describe, expect, test } from '@jest/globals';
import { CONFIG_MAPS, DEPLOYMENTS, DEVICE_CLASSES, PODS } from '../../../src/cluster/client/decide/resource-path.ts';
import { startFakeKubeApi, type FakeKubeApi, type FakeKubeOptions } from '../../support/kube/fake-kube-api.ts';
import { startStallingProxy } from '../../support/live-cluster/stalling-proxy.ts';
import { createKubeApi } from '../../../src/cluster/client/api-client.ts';
import type { EndedRequest } from '../../../src/cluster/client/client-observer.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import type { KubeApi, Transform } from '../../../src/cluster/client/ports.ts';
import { eventually } from '../../support/eventually.ts';
import { describeKubeApi, reasonOf, valueOf } from '../../support/kube/kube-api-contract.ts';

const SIGNAL = new AbortController().signal;
const WATCH = { query: { watch: 'true' } };
const servers: FakeKubeApi[] = [];

async function start(options: FakeKubeOptions = {}): Promise<FakeKubeApi> {
  const fake = await startFakeKubeApi(options);
  servers.push(fake);
  return fake;
}

afterEach(async () => {
  for (const fake of servers.splice(0)) await fake.close();
});

const shared = await startFakeKubeApi();
const sharedApi: KubeApi = await connectToFake(shared, 'contract');

describe('the fake API server, which behaves like a real one', () => {
  describeKubeApi(() => sharedApi);
  test('is unreachable once it is closed', async () => {
    await shared.close();
    expect(reasonOf(await sharedApi.get(CONFIG_MAPS, 'x', SIGNAL))).toBe('ApiUnreachable');
  });
});

describe('createKubeApi()', () => {
  test('reads long lists page by page as one consistent snapshot', async () => {
    const fake = await start();
    const api = await connectToFake(fake);
    for (let index = 0; index < 1200; index += 1) fake.put(CONFIG_MAPS, 'default', { metadata: { name: `c-${index}` } });
    const { items } = valueOf(await api.list(CONFIG_MAPS, {}, SIGNAL));
    expect([new Set(items.map(({ metadata }) => metadata.name)).size, items.length]).toEqual([1200, 1200]);
    expect(fake.faults.count({ verb: 'list' })).toBe(3);
  });

  test('reads the whole list again when it expired between two pages', async () => {
    const fake = await start();
    const api = await connectToFake(fake);
    for (let index = 0; index < 700; index += 1) fake.put(CONFIG_MAPS, 'default', { metadata: { name: `c-${index}` } });
    const transform: Transform = (object) => {
      if (fake.faults.count({ verb: 'list' }) === 1) {
        fake.put(CONFIG_MAPS, 'default', { metadata: { name: 'late' } });
        fake.compact();
      }
      return object;
    };
    const { items } = valueOf(await api.list(CONFIG_MAPS, { transform }, SIGNAL));
    expect(new Set(items.map(({ metadata }) => metadata.name)).size).toBe(701);
    expect(items).toHaveLength(701);
  });

  test('explains what each error response means, and what to do', async () => {
    const fake = await start();
    const api = await connectToFake(fake, 'demo');
    const refusal = async (status: number, reason: string, message: string, retryAfterSeconds?: number) => {
      fake.faults.answer({}, { status, reason, message, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) }, 1);
      const result = await api.apply(DEPLOYMENTS, { metadata: { name: 'x' } }, { fieldManager: 'm' }, SIGNAL);
      return result.ok ? undefined : result.failure;
    };
    const denied =
      'deployments.apps "x" is forbidden: User "system:serviceaccount:demo:svc" cannot patch resource "deployments" in API group "apps" in the namespace "demo"';
    expect(await refusal(403, 'Forbidden', denied)).toEqual({
      kind: 'stalled',
      reason: 'Forbidden',
      message:
        '"system:serviceaccount:demo:svc" may not "patch" the resource "deployments.apps" in namespace "demo": add the verb to its role',
    });
    const quota = 'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5';
    expect(await refusal(403, 'Forbidden', quota)).toMatchObject({
      kind: 'stalled',
      reason: 'Forbidden',
      message: expect.stringContaining(quota),
    });
    const invalid = 'Deployment.apps "x" is invalid: spec.selector: Required value';
    expect(await refusal(422, 'Invalid', invalid)).toMatchObject({
      kind: 'stalled',
      reason: 'Invalid',
      message: expect.stringContaining(invalid),
    });
    expect(await refusal(409, 'Conflict', 'changed')).toMatchObject({ kind: 'retry', reason: 'Conflict' });
    expect(await refusal(410, 'Expired', 'old')).toMatchObject({ kind: 'retry', reason: 'Expired' });
    expect(await refusal(500, 'InternalError', 'etcd')).toMatchObject({ kind: 'retry', reason: 'ApiFailed' });
    expect(await refusal(503, 'ServiceUnavailable', 'starting')).toMatchObject({ kind: 'retry', reason: 'ApiBusy' });
    const before = performance.now();
    const busy = await refusal(429, 'TooManyRequests', 'slow down', 7);
    expect(busy).toMatchObject({ kind: 'waiting', reason: 'ApiBusy' });
    expect(busy?.until).toBeGreaterThanOrEqual(before + 7000);
    expect(await refusal(404, 'NotFound', 'namespaces "demo" not found')).toMatchObject({
      message: 'The namespace "demo" does not exist: create it',
    });
    expect(await refusal(404, 'NotFound', 'the server could not find the requested resource')).toMatchObject({
      reason: 'NotFound',
      message: expect.stringContaining('does not serve "deployments.apps"'),
    });
  });

  test('limits the number of simultaneous requests, keeps their order, and does not count streams', async () => {
    const fake = await start();
    const api = await connectToFake(fake, 'default', { concurrency: 2 });
    const stop = new AbortController();
    const watches = [1, 2, 3].map(async () => await api.stream(PODS, WATCH, stop.signal));
    expect((await Promise.all(watches)).map(reasonOf)).toEqual(['ok', 'ok', 'ok']);
    fake.faults.delay({ verb: 'get' }, 30);
    let most = 0;
    const sampling = setInterval(() => {
      most = Math.max(most, fake.faults.requests.filter(({ verb, status }) => verb === 'get' && status === 0).length);
    }, 2);
    await Promise.all(Array.from({ length: 8 }, async (_, index) => await api.get(CONFIG_MAPS, `c-${index}`, SIGNAL)));
    clearInterval(sampling);
    stop.abort();
    expect(most).toBe(2);
    expect(fake.faults.requests.filter(({ verb }) => verb === 'get').map(({ name }) => name)).toEqual(
      Array.from({ length: 8 }, (_, index) => `c-${index}`),
    );
  });

  test('a queued request leaves the queue when it is aborted', async () => {
    const fake = await start();
    const api = await connectToFake(fake, 'default', { concurrency: 1 });
    fake.faults.delay({}, 100);
    const own = new AbortController();
    const first = api.get(CONFIG_MAPS, 'a', SIGNAL);
    const second = api.get(CONFIG_MAPS, 'b', own.signal);
    const third = api.get(CONFIG_MAPS, 'c', SIGNAL);
    own.abort();
    expect([reasonOf(await second), reasonOf(await first), reasonOf(await third)]).toEqual(['Aborted', 'NotFound', 'NotFound']);
    expect(fake.faults.count({ name: 'b' })).toBe(0);
  });

  test('a read on a keep-alive connection that breaks is repeated once, a write is not', async () => {
    const fake = await start();
    const api = await connectToFake(fake);
    fake.put(CONFIG_MAPS, 'default', { metadata: { name: 'x' } });
    valueOf(await api.get(CONFIG_MAPS, 'x', SIGNAL));
    fake.faults.clearLog();
    fake.faults.answer({ verb: 'get' }, { status: 'cut' }, 1);
    expect(reasonOf(await api.get(CONFIG_MAPS, 'x', SIGNAL))).toBe('ok');
    expect(fake.faults.count({ verb: 'get' })).toBe(2);
    fake.faults.answer({ verb: 'patch' }, { status: 'cut' }, 1);
    expect(reasonOf(await api.mergePatch(CONFIG_MAPS, 'x', { data: { a: '1' } }, SIGNAL))).toBe('ApiUnreachable');
    expect(fake.faults.count({ verb: 'patch' })).toBe(1);
  });

  test('silent keep-alive connections delay one read by a third of its timeout, or one write by all of it, and no other request', async () => {
    const fake = await start();
    fake.put(CONFIG_MAPS, 'default', { metadata: { name: 'x' } });
    const proxy = await startStallingProxy('127.0.0.1', Number(new URL(fake.url).port));
    const kubeconfigText = fake.kubeconfig('default').replaceAll(fake.url, `http://127.0.0.1:${proxy.port}`);
    const timeoutMs = 1500;
    const api = valueOf(await createKubeApi({ env: {}, kubeconfigText, version: 'test', timeoutMs }));
    const read = async () => api.get(CONFIG_MAPS, 'x', SIGNAL);
    const write = async () => api.mergePatch(CONFIG_MAPS, 'x', { data: { a: '1' } }, SIGNAL);
    const openSome = async () => Promise.all([read(), read(), read(), read()]);
    const thirds = async (reason: string, send: () => ReturnType<typeof read>): Promise<number> => {
      const begun = performance.now();
      expect(reasonOf(await send())).toBe(reason);
      return (performance.now() - begun) / (timeoutMs / 3);
    };
    await openSome();
    expect(proxy.connections()).toBe(4);
    proxy.stall();
    expect(await thirds('ok', read)).toBeLessThan(2);
    expect(await thirds('ok', write)).toBeLessThan(1);
    await openSome();
    proxy.stall();
    expect(await thirds('ApiUnreachable', write)).toBeGreaterThan(2);
    expect(await thirds('ok', write)).toBeLessThan(1);
    await proxy.close();
  });

  test('a server that is down or does not respond in time is unreachable; an aborted request fails with Aborted', async () => {
    const fake = await start();
    const api = await connectToFake(fake, 'default', { timeoutMs: 50 });
    const own = new AbortController();
    const stopDelay = fake.faults.delay({}, 10_000);
    expect(await api.get(CONFIG_MAPS, 'x', SIGNAL)).toMatchObject({
      failure: { kind: 'retry', reason: 'ApiUnreachable', message: expect.stringContaining(fake.url) },
    });
    setTimeout(() => own.abort(), 10);
    expect(reasonOf(await api.get(CONFIG_MAPS, 'x', own.signal))).toBe('Aborted');
    stopDelay();
    await fake.goDown();
    expect(reasonOf(await api.get(CONFIG_MAPS, 'x', SIGNAL))).toBe('ApiUnreachable');
    await fake.comeUp();
    expect(reasonOf(await api.get(CONFIG_MAPS, 'x', SIGNAL))).toBe('NotFound');
  });

  test('reports every request that it sends, and identifies itself', async () => {
    const fake = await start({ dra: true });
    const sent: string[] = [];
    const api = await connectToFake(fake, 'default', {
      version: '1.2.3',
      onRequest: ({ verb, resource }) => void sent.push(`${verb} ${resource}`),
    });
    const status = { metadata: { name: 'x' }, status: {} };
    await api.apply(DEPLOYMENTS, status, { fieldManager: 'm', subresource: 'status' }, SIGNAL);
    await api.list(PODS, {}, SIGNAL);
    await api.serves(DEVICE_CLASSES, SIGNAL);
    await api.get(DEVICE_CLASSES, 'gpu.example', SIGNAL);
    expect(sent).toEqual(['patch deployments.apps/status', 'list pods', 'get discovery', 'get deviceclasses.resource.k8s.io']);
    expect(fake.faults.count({ userAgent: 'svc/1.2.3' })).toBe(4);
    expect(fake.faults.requests.at(-1)?.url).toBe('/apis/resource.k8s.io/v1/deviceclasses/gpu.example');
  });

  test('reports how each request ended and how long it took: by status, or in a word where there was no answer', async () => {
    const fake = await start();
    const ended: EndedRequest[] = [];
    const onRequest = (request: EndedRequest): void => void ended.push(request);
    const api = await connectToFake(fake, 'default', { timeoutMs: 400, onRequest });
    const own = new AbortController();
    await api.get(CONFIG_MAPS, 'x', SIGNAL);
    fake.faults.answer({}, { status: 429, retryAfterSeconds: 1 }, 1);
    await api.list(PODS, {}, SIGNAL);
    fake.faults.answer({}, { status: 403 }, 1);
    await api.stream(PODS, WATCH, SIGNAL);
    await api.stream(PODS, WATCH, own.signal);
    const stopDelay = fake.faults.delay({}, 100);
    await api.get(CONFIG_MAPS, 'slow', SIGNAL);
    const aborted = api.get(CONFIG_MAPS, 'x', own.signal);
    own.abort();
    await aborted;
    stopDelay();
    await fake.goDown();
    await api.get(CONFIG_MAPS, 'x', SIGNAL);
    expect(ended.map(({ verb, resource, code }) => `${verb} ${resource} ${code}`)).toEqual([
      'get configmaps 404',
      'list pods 429',
      'watch pods 403',
      'watch pods 200',
      'get configmaps 404',
      'get configmaps aborted',
      'get configmaps unreachable',
    ]);
    // The timer of the delay may fire a millisecond early.
    expect(ended[4]?.seconds).toBeGreaterThanOrEqual(0.095);
  });

  test('a stream ends when it is aborted, even if nobody is reading it', async () => {
    const fake = await start();
    const api = await connectToFake(fake);
    fake.setLog('p', 'one\ntwo\n');
    let text = '';
    for await (const chunk of valueOf(await api.stream(PODS, { name: 'p', subresource: 'log', query: {} }, SIGNAL)))
      text += Buffer.from(chunk).toString();
    expect(text).toBe('one\ntwo\n');
    expect(reasonOf(await api.stream(PODS, { name: '../x', subresource: 'log', query: {} }, SIGNAL))).toBe('Invalid');
    const own = new AbortController();
    const watch = valueOf(await api.stream(PODS, WATCH, own.signal));
    expect(fake.watches.count()).toBe(1);
    own.abort();
    await eventually('the server has no watch', () => fake.watches.count() === 0);
    for await (const _ of watch) throw new Error('Expected no data');
  });
});
