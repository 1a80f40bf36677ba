import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { NAMESPACE, startCluster, type Cluster } from './cluster-fixture.ts';
import { startSvcctl, svcctl } from './run-svcctl.ts';

const primary = SlotName.parse('primary');
const REFUSED = { code: 500, message: 'error trying to reach service: dial tcp 10.244.0.9:8080: connect: connection refused' };
let world: World;
let cluster: Cluster;
beforeAll(async () => {
  world = await startWorld({ loadMs: 30 });
});
afterAll(() => world.close());
beforeEach(async () => {
  cluster = await startCluster();
  for (const name of world.slots.texts.keys()) world.slots.texts.delete(name);
  world.save(primary, '[model]\ndefault = "a"\n');
  await world.idle();
  cluster.addPod('svc-0', world.url);
  cluster.lead('svc-0');
});
afterEach(() => cluster.close());

describe('svcctl against a cluster', () => {
  test('sends requests to the pod of the leader, on its port named "http", through the API server', async () => {
    cluster.addPod('svc-7', world.url, 9090);
    cluster.lead('svc-7');
    expect(await cluster.run(['get', 'slots', '-o', 'json'])).toMatchObject({
      code: 0,
      err: '',
      out: expect.stringContaining('"primary"'),
    });
    expect(new Set(cluster.proxied)).toEqual(new Set(['GET svc-7:9090 /api/slots?limit=500', 'GET svc-7:9090 /api/status']));
  });

  test('prefers the port of management where there is one', async () => {
    cluster.addPod('svc-7', world.url, 9091, 'management');
    cluster.lead('svc-7');
    expect(await cluster.run(['get', 'slots'])).toMatchObject({ code: 0, err: '' });
    expect(new Set(cluster.proxied)).toEqual(new Set(['GET svc-7:9091 /api/slots?limit=500', 'GET svc-7:9091 /api/status']));
  });

  test.each([
    ['--context', ['--context', 'fake'], {}],
    ['-n', ['-n', NAMESPACE], {}],
    ['SVCCTL_CONTEXT and SVCCTL_NAMESPACE', [], { SVCCTL_CONTEXT: 'fake', SVCCTL_NAMESPACE: NAMESPACE }],
  ])('is chosen by %s', async (_, args, env) => {
    expect(await svcctl(['get', 'slots', ...args], { env: { KUBECONFIG: cluster.kubeconfig, ...env } })).toMatchObject({ code: 0 });
    expect(cluster.proxied).not.toEqual([]);
  });

  test('is chosen by --kubeconfig, and not by KUBECONFIG alone or with --server', async () => {
    expect(await svcctl(['get', 'slots', '--kubeconfig', cluster.kubeconfig], { env: { KUBECONFIG: '/nowhere' } })).toMatchObject({
      code: 0,
    });
    const before = cluster.proxied.length;
    await svcctl(['get', 'slots', '--server', world.url], { env: { KUBECONFIG: cluster.kubeconfig, SVCCTL_CONTEXT: 'fake' } });
    await svcctl(['get', 'slots'], { env: { KUBECONFIG: cluster.kubeconfig, SVCCTL_SERVER: world.url } });
    expect(cluster.proxied).toHaveLength(before);
  });

  test('works the same with every verb that talks to the service', async () => {
    const { run } = cluster;
    const text =
      'apiVersion: inference.svc.dev/v1alpha1\nkind: SlotSpec\nmetadata: {name: mine}\nspec: {provider: gguf, model: {default: m}}\n';
    expect(await run(['plan', '-f', '-'], { input: text })).toMatchObject({ code: 2, out: 'apply "mine"\n' });
    expect(await run(['diff', '-f', '-'], { input: text })).toMatchObject({ code: 2, out: expect.stringContaining('slot/mine (new)') });
    expect(await run(['apply', '-f', '-'], { input: text })).toMatchObject({ code: 0, out: 'slot/mine created\n' });
    expect(await run(['wait', 'slot/mine', '--for', 'condition=Ready', '--timeout', '20s'])).toMatchObject({ code: 0 });
    expect(await run(['slot', 'load', 'primary', '--model', 'b', '--wait'])).toMatchObject({
      code: 0,
      out: expect.stringContaining('ready'),
    });
    expect(await run(['slot', 'restart', 'primary', '--wait'])).toMatchObject({ code: 0 });
    expect(await run(['slot', 'unload', 'primary', '--wait'])).toMatchObject({ code: 0, out: expect.stringContaining('offline') });
    expect(await run(['explain', 'primary'])).toMatchObject({ code: 0 });
    expect(await run(['timeline', 'primary'])).toMatchObject({ code: 0, out: expect.stringContaining('WHEN') });
    expect(await run(['slot', 'create', 'mine', '--model', 'm', '--provider', 'gguf'])).toMatchObject({ code: 1 });
    expect(await run(['slot', 'delete', 'mine', '--wait'])).toMatchObject({ code: 0, out: 'slot/mine deleted\n' });
    const verbs = new Set(cluster.proxied.map((line) => line.split(' ')[0]));
    expect(verbs).toEqual(new Set(['GET', 'POST', 'PUT', 'DELETE']));
  }, 120_000);

  test('follows logs as they come, until it is stopped', async () => {
    world.logs.set('primary', ['one', 'two']);
    const child = startSvcctl(['slot', 'logs', 'primary', '-f', '--context', 'fake'], { env: { KUBECONFIG: cluster.kubeconfig } });
    const ended = new Promise((resolve) => child.once('close', resolve));
    let out = '';
    await new Promise<void>((resolve) =>
      child.stdout?.on('data', (chunk: Buffer) => {
        out += chunk.toString();
        if (out.includes('two\n')) resolve();
      }),
    );
    expect(world.openLogs()).toBe(1);
    child.kill('SIGTERM');
    await ended;
    expect(out).toBe('one\ntwo\n');
    world.logs.clear();
  });

  test('refuses a resource for another namespace', async () => {
    const input =
      'apiVersion: inference.svc.dev/v1alpha1\nkind: SlotSpec\nmetadata: {name: img, namespace: other}\nspec: {model: {default: x}}\n';
    const { code, err } = await cluster.run(['apply', '-f', '-'], { input });
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('belongs to namespace "other", not to "models"') });
    expect(world.slots.texts.has(SlotName.parse('img'))).toBe(false);
  });

  test('does not report the defaults that a cluster fills in as a difference', async () => {
    const full = '[lifecycle]\nidle_timeout = "never"\ndrain_timeout = "30s"\n\n[model]\ndefault = "a"\naliases = []\n';
    world.save(primary, `enabled = true\npriority = 0\n${full}`);
    const input = 'apiVersion: inference.svc.dev/v1alpha1\nkind: SlotSpec\nmetadata: {name: primary}\nspec: {model: {default: a}}\n';
    expect(await cluster.run(['diff', '-f', '-'], { input })).toEqual({ code: 0, out: '', err: '' });
    world.save(primary, `enabled = true\npriority = 3\n${full}`);
    expect(await cluster.run(['diff', '-f', '-'], { input })).toMatchObject({ code: 2, out: 'slot/primary\n- priority = 3\n' });
  });
});

describe('a leader that changes', () => {
  test('is awaited while the Lease still names a pod that no longer exists', async () => {
    cluster.lead('svc-gone');
    cluster.afterLeaseReads(2, () => cluster.lead('svc-0'));
    const { code, err } = await cluster.run(['get', 'slots']);
    expect({ code, err }).toEqual({ code: 0, err: 'Waiting for a replica of the service to become the leader\n' });
  });

  test('is awaited while there is none after a clean stop', async () => {
    cluster.lead('');
    cluster.afterLeaseReads(1, () => cluster.lead('svc-0'));
    expect(await cluster.run(['get', 'slots'])).toMatchObject({ code: 0 });
  });

  test('gets requests that never reached the old one, including edits', async () => {
    cluster.addPod('svc-1', REFUSED);
    cluster.lead('svc-1');
    cluster.afterLeaseReads(2, () => cluster.lead('svc-0'));
    expect(await cluster.run(['slot', 'create', 'late', '--model', 'm', '--provider', 'gguf'])).toMatchObject({
      code: 0,
      out: 'slot/late created\n',
    });
    expect(cluster.proxied).toEqual(['PUT svc-1:8080 /api/slots/late', 'PUT svc-0:8080 /api/slots/late']);
  });

  test('does not get an edit that the old one may have carried out', async () => {
    cluster.addPod('svc-1', { code: 502, message: 'error trying to reach service: EOF' });
    cluster.lead('svc-1');
    const { code, err } = await cluster.run(['slot', 'create', 'once', '--model', 'm', '--provider', 'gguf']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('cannot reach the pod of the service') });
    expect(cluster.proxied).toEqual(['PUT svc-1:8080 /api/slots/once']);
  });

  test('is asked a second time if it has renewed its Lease, and then svcctl gives up', async () => {
    cluster.addPod('svc-1', REFUSED);
    cluster.lead('svc-1');
    cluster.afterLeaseReads(2, () => cluster.lead('svc-1'));
    const { code, err } = await cluster.run(['get', 'models']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('connection refused') });
    expect(err).toContain('get pods,networkpolicies');
    expect(cluster.proxied).toEqual(['GET svc-1:8080 /api/models', 'GET svc-1:8080 /api/models']);
  });
});

describe('svcctl reports', () => {
  test('an unknown context, with the known ones', async () => {
    const { code, err } = await cluster.run(['get', 'slots', '--context', 'nope']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('has no context "nope": choose "fake"') });
  });

  test('a namespace without the service, and how to install it', async () => {
    const { code, err } = await cluster.run(['get', 'slots', '-n', 'empty']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('svc is not installed in namespace "empty"') });
    expect(err).toContain('helm install svc helm/svc --namespace empty');
  });

  test.each([
    ['a right to read Leases', (method: string, url: string) => url.includes('/leases/'), '"get" "leases"'],
    ['a right to use the proxy', (method: string, url: string) => method === 'POST' && url.includes('/proxy/'), '"create" "pods/proxy"'],
  ])('%s', async (_, predicate, right) => {
    cluster.forbid(predicate);
    const { code, err } = await cluster.run(['slot', 'load', 'primary']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(right) });
  });

  test('nothing if only the right to read pods is missing', async () => {
    cluster.forbid((method, url) => url.endsWith('/pods/svc-0'));
    expect(await cluster.run(['get', 'slots'])).toMatchObject({ code: 0 });
    expect(cluster.proxied).toContain('GET svc-0:8080 /api/slots?limit=500');
    cluster.addPod('svc-0', world.url, 8081, 'management');
    expect(await cluster.run(['get', 'slots'])).toMatchObject({ code: 0 });
    expect(cluster.proxied).toContain('GET svc-0:8081 /api/slots?limit=500');
  });

  test('credentials that are not accepted', async () => {
    cluster.fake.faults.answer({}, { status: 401, reason: 'Unauthorized', message: 'Unauthorized' }, 10);
    const { code, err } = await cluster.run(['get', 'slots']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('does not accept the credentials') });
  });

  test('an API server that is down', async () => {
    await cluster.goDown();
    expect(await cluster.run(['get', 'slots'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^error: Could not reach the API server at "http:\/\/127\.0\.0\.1:\d+": connection refused\nhint: /),
    });
  });

  test('an address together with a cluster, before it sends a request', async () => {
    expect(await cluster.run(['get', 'slots', '--server', world.url, '-n', NAMESPACE])).toMatchObject({ code: 64 });
    expect(await cluster.run(['get', 'slots'], { env: { SVCCTL_SERVER: world.url } })).toMatchObject({ code: 64 });
    expect(await cluster.run(['get', 'slots', '-n', '../kube-system'])).toMatchObject({ code: 64 });
    expect(cluster.proxied).toEqual([]);
  });
});
