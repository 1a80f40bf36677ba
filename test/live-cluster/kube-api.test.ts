/** Runs the client's contract against a real API server, and tests what only a real one has: schemas, roles, certificates. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createKubeApi } from '../../src/cluster/client/api-client.ts';
import type { KubeApi, KubeObject } from '../../src/cluster/client/ports.ts';
import { createReflector } from '../../src/cluster/client/reflector.ts';
import { CONFIG_MAPS, DEPLOYMENTS, PODS, SLOT_SPECS } from '../../src/cluster/client/decide/resource-path.ts';
import { eventually } from '../support/eventually.ts';
import { describeKubeApi, reasonOf, valueOf } from '../support/kube/kube-api-contract.ts';
import { describeWithCluster, kubectl, KUBECONFIG } from '../support/require/require-cluster.ts';

const SIGNAL = new AbortController().signal;

describeWithCluster('createKubeApi() on a real API server', () => {
  const namespace = `svc-test-kube-api-${randomBytes(3).toString('hex')}`;
  let api: KubeApi;
  let dir = '';

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-kube-api-'));
    await kubectl(['create', 'namespace', namespace]);
    api = valueOf(await createKubeApi({ env: { KUBECONFIG }, namespace, version: 'test' }));
  }, 60_000);

  afterAll(async () => {
    await kubectl(['delete', 'namespace', namespace, '--wait=false']);
    await rm(dir, { recursive: true, force: true });
  });

  describeKubeApi(() => api);

  test('reports an object that the schema rejects as Invalid, and names the field', async () => {
    const spec = { template: { metadata: { labels: { a: 'b' } }, spec: { containers: [] } }, selector: { matchLabels: { a: 'b' } } };
    const manifest = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'empty' }, spec };
    const result = await api.create(DEPLOYMENTS, manifest, SIGNAL);
    expect(result).toMatchObject({
      failure: { kind: 'stalled', reason: 'Invalid', message: expect.stringContaining('spec.template.spec.containers') },
    });
  });

  test('a dry run is checked and stores nothing', async () => {
    const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'dry' }, data: { a: '1' } };
    expect(reasonOf(await api.apply(CONFIG_MAPS, manifest, { fieldManager: 'svc-controller', dryRun: true }, SIGNAL))).toBe('ok');
    expect(reasonOf(await api.get(CONFIG_MAPS, 'dry', SIGNAL))).toBe('NotFound');
  });

  test('sends nothing to a server whose certificate is not trusted', async () => {
    const config = JSON.parse(await kubectl(['config', 'view', '--raw', '--minify', '-o', 'json']));
    delete config.clusters[0].cluster['certificate-authority-data'];
    const untrusting = valueOf(await createKubeApi({ env: {}, kubeconfigText: JSON.stringify(config), namespace, version: 'test' }));
    expect(await untrusting.get(CONFIG_MAPS, 'x', SIGNAL)).toMatchObject({
      failure: { reason: 'ApiUntrusted', message: expect.stringContaining('check the certificates') },
    });
  });

  test.each([CONFIG_MAPS, SLOT_SPECS])('a reflector reads the same as a list, in the way that the server allows: $plural', async (type) => {
    const sent: string[] = [];
    const counted = valueOf(
      await createKubeApi({ env: { KUBECONFIG }, namespace, version: 'test', onRequest: ({ verb }) => void sent.push(verb) }),
    );
    const spec = type === SLOT_SPECS ? { spec: { backend: 'cpu', model: { default: 'demo-fox' }, enabled: false } } : {};
    for (const name of ['read-a', 'read-b']) {
      valueOf(await api.apply(type, { metadata: { name }, ...spec }, { fieldManager: 'svc-controller' }, SIGNAL));
    }
    const listed = valueOf(await api.list(type, {}, SIGNAL)).items;
    const own = new AbortController();
    const copy = createReflector({ api: counted, type });
    copy.start(own.signal);
    await eventually('the newest state is read', async () => copy.health().kind === 'current' && copy.items().size === listed.length);
    await copy.refresh(own.signal);
    const identities = (objects: Iterable<KubeObject>) =>
      new Map([...objects].map(({ apiVersion, kind, metadata: { name, uid } }) => [name, { apiVersion, kind, uid }]));
    expect(identities(copy.items().values())).toEqual(identities(listed));
    process.stdout.write(`${type.plural}: ${sent.join(', ')}\n`);
    own.abort();
  });

  test('names the verb and the resource that a service account lacks, also in the reflector', async () => {
    const pod = await asServiceAccount(api, namespace, dir);
    expect(pod.namespace).toBe(namespace);
    const user = `system:serviceaccount:${namespace}:powerless`;
    expect(await pod.list(PODS, {}, SIGNAL)).toEqual({
      ok: false,
      failure: {
        kind: 'stalled',
        reason: 'Forbidden',
        message: `"${user}" may not "list" the resource "pods" in namespace "${namespace}": add the verb to its role`,
      },
    });
    const manifest = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x' } };
    expect(await pod.apply(DEPLOYMENTS, manifest, { fieldManager: 'm' }, SIGNAL)).toMatchObject({
      failure: { message: expect.stringContaining('may not "patch" the resource "deployments.apps"') },
    });
    const own = new AbortController();
    const copy = createReflector({ api: pod, type: PODS });
    const woken = new Promise<void>((resolve) => copy.changes(() => resolve(), own.signal));
    copy.start(own.signal);
    await woken;
    expect(copy.health()).toMatchObject({ kind: 'unreachable', message: expect.stringContaining('may not "list" the resource "pods"') });
    own.abort();
  });

  test('reports an unknown token as Unauthorized, without showing it', async () => {
    await asServiceAccount(api, namespace, dir);
    await writeFile(join(dir, 'token'), 'not-a-token');
    const unauthorized = await podApi(api, dir);
    const result = await unauthorized.list(PODS, {}, SIGNAL);
    expect(result).toMatchObject({ failure: { kind: 'retry', reason: 'Unauthorized' } });
    expect(JSON.stringify(result)).not.toContain('not-a-token');
  });
});

/** Connects like a pod: with a directory that has token, certificate and namespace, and the server's address in the environment. */
async function asServiceAccount(api: KubeApi, namespace: string, dir: string): Promise<KubeApi> {
  await kubectl(['-n', namespace, 'create', 'serviceaccount', 'powerless']).catch(() => undefined);
  const config = JSON.parse(await kubectl(['config', 'view', '--raw', '--minify', '-o', 'json']));
  const token = await kubectl(['-n', namespace, 'create', 'token', 'powerless']);
  await writeFile(join(dir, 'token'), token);
  await writeFile(join(dir, 'ca.crt'), Buffer.from(config.clusters[0].cluster['certificate-authority-data'], 'base64'));
  await writeFile(join(dir, 'namespace'), namespace);
  return await podApi(api, dir);
}

async function podApi(api: KubeApi, dir: string): Promise<KubeApi> {
  const { hostname, port } = new URL(api.server);
  const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, HOME: dir };
  return valueOf(await createKubeApi({ env, serviceAccountDir: dir, version: 'test' }));
}
