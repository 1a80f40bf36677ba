import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createKubeApi } from '../../../src/cluster/client/api-client.ts';
import { CONFIG_MAPS } from '../../../src/cluster/client/decide/resource-path.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { loadedGraph, reachableFrom, sourcesOf } from '../../house/import-graph.ts';
import { reasonOf, valueOf } from '../../support/kube/kube-api-contract.ts';

const SIGNAL = new AbortController().signal;
let dir = '';
let fake: FakeKubeApi;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'svc-kube-'));
});
afterAll(async () => await rm(dir, { recursive: true, force: true }));
afterEach(async () => await fake?.close());

const file = async (name: string, text: string): Promise<string> => {
  const path = join(dir, name);
  await writeFile(path, text);
  return path;
};

/** A kubeconfig whose user runs a plugin that prints what the file holds. */
async function withPlugin(server: string, tokenFile: string): Promise<string> {
  const print = `process.stdout.write(JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token: require('node:fs').readFileSync(process.argv[1], 'utf8') } }))`;
  return JSON.stringify({
    clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [
      {
        name: 'u',
        user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: ['-e', print, tokenFile] } },
      },
    ],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}

describe('findCredentials()', () => {
  test('merges the files of KUBECONFIG and uses the requested context', async () => {
    fake = await startFakeKubeApi();
    const one = await file('one', fake.kubeconfig('first'));
    const two = await file('two', fake.kubeconfig('second').replaceAll('"fake"', '"other"').replaceAll('"tester"', '"other-user"'));
    const env = { KUBECONFIG: `${one}:${two}`, HOME: dir };
    const first = valueOf(await createKubeApi({ env, version: 't' }));
    const second = valueOf(await createKubeApi({ env, version: 't', context: 'other' }));
    const third = valueOf(await createKubeApi({ env, version: 't', context: 'other', namespace: 'third' }));
    expect([first.namespace, second.namespace, third.namespace, first.server]).toEqual(['first', 'second', 'third', fake.url]);
    expect(await createKubeApi({ env, version: 't', context: 'nowhere' })).toMatchObject({
      failure: { kind: 'stalled', reason: 'NoCluster', message: expect.stringContaining('"fake", "other"') },
    });
  });

  test('runs a plugin again when the server no longer accepts its token', async () => {
    fake = await startFakeKubeApi({ token: 'first-token' });
    const tokenFile = await file('token', 'first-token');
    const api = valueOf(await createKubeApi({ env: {}, version: 't', kubeconfigText: await withPlugin(fake.url, tokenFile) }));
    expect(reasonOf(await api.get(CONFIG_MAPS, 'x', SIGNAL))).toBe('NotFound');
    await file('token', 'second-token');
    fake.requireToken('second-token');
    fake.faults.clearLog();
    expect(reasonOf(await api.get(CONFIG_MAPS, 'x', SIGNAL))).toBe('NotFound');
    expect(fake.faults.requests.map(({ authorization }) => authorization)).toEqual(['Bearer first-token', 'Bearer second-token']);
  });

  test('does not run a plugin repeatedly while the server rejects every token', async () => {
    fake = await startFakeKubeApi({ token: 'right' });
    const tokenFile = await file('token', 'wrong-secret');
    const api = valueOf(await createKubeApi({ env: {}, version: 't', kubeconfigText: await withPlugin(fake.url, tokenFile) }));
    const results = [];
    for (let index = 0; index < 5; index += 1) results.push(await api.get(CONFIG_MAPS, 'x', SIGNAL));
    expect(results.map(reasonOf)).toEqual(Array.from({ length: 5 }, () => 'Unauthorized'));
    expect(fake.faults.count()).toBe(6);
    expect(JSON.stringify(results)).not.toContain('wrong-secret');
  });

  test('fails without repeating the output of a plugin that failed', async () => {
    fake = await startFakeKubeApi({ token: 'right' });
    const broken = JSON.parse(await withPlugin(fake.url, '/nowhere'));
    const api = valueOf(await createKubeApi({ env: {}, version: 't', kubeconfigText: JSON.stringify(broken) }));
    const result = await api.get(CONFIG_MAPS, 'x', SIGNAL);
    expect(result).toMatchObject({ failure: { kind: 'retry', reason: 'Unauthorized' } });
    expect(JSON.stringify(result)).not.toContain('ENOENT');
    expect(fake.faults.count()).toBe(0);
  });

  test('names a kubeconfig that cannot be parsed, but never shows its contents', async () => {
    const path = await file('broken', 'users: [{name: a, user: {token: very-secret}}\nclusters: 7');
    for (const source of [{ kubeconfigPath: path }, { kubeconfigText: 'token: very-secret: [' }]) {
      const result = await createKubeApi({ env: {}, version: 't', ...source });
      expect(result).toMatchObject({ failure: { kind: 'stalled', reason: 'NoCluster' } });
      expect(JSON.stringify(result)).not.toContain('very-secret');
    }
    expect(await createKubeApi({ env: {}, version: 't', kubeconfigPath: join(dir, 'absent') })).toMatchObject({
      failure: { message: expect.stringContaining('cannot be read') },
    });
  });

  test('uses the service account of the pod if there is no kubeconfig, and guesses nothing', async () => {
    await Promise.all([file('token', 'pod-token'), file('ca.crt', 'none'), file('namespace', 'mine\n')]);
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443', HOME: dir };
    const api = valueOf(await createKubeApi({ env, version: 't', serviceAccountDir: dir }));
    expect([api.server, api.namespace]).toEqual(['https://[fd00::1]:6443', 'mine']);
    for (const nothing of [{ env: { HOME: dir } }, { env, serviceAccountDir: join(dir, 'absent') }, { env, context: 'x' }]) {
      expect(await createKubeApi({ version: 't', ...nothing })).toMatchObject({ failure: { kind: 'stalled', reason: 'NoCluster' } });
    }
  });

  test('removes a password from the address of a server', async () => {
    const text = JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: 'https://me:hidden@127.0.0.1:1/prefix/' } }],
      users: [{ name: 'u', user: {} }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    });
    const api = valueOf(await createKubeApi({ env: {}, version: 't', kubeconfigText: text }));
    expect(api.server).toBe('https://127.0.0.1:1/prefix');
    expect(JSON.stringify(await api.get(CONFIG_MAPS, 'x', SIGNAL))).not.toContain('hidden');
  });

  test('loads the package for kubeconfigs, which takes 50 MB, only where there is one', () => {
    const sources = sourcesOf('src');
    const importers = [...sources].filter(([, text]) => text.includes("from '@kubernetes/client-node'"));
    expect(importers.map(([path]) => path)).toEqual(['src/cluster/client/kubeconfig.ts']);
    const loaded = reachableFrom('src/wiring/cluster-world.ts', loadedGraph(sources));
    expect(loaded).toContain('src/cluster/client/credentials.ts');
    expect(loaded).not.toContain('src/cluster/client/kubeconfig.ts');
  });
});
