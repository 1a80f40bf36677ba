/** Two replicas of the real service with authentication, on a fake API server: one Secret, revocation everywhere, and readiness. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SECRETS } from '../../src/cluster/client/decide/resource-path.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../support/kube/fake-kube-api.ts';
import { createClusterController, type ClusterController } from '../support/live-cluster/cluster-controller.ts';

const NAMESPACE = 'demo';

describe('A service with authentication in a cluster', () => {
  let api: FakeKubeApi;
  let directory: string;
  const replicas: ClusterController[] = [];
  beforeAll(async () => {
    api = await startFakeKubeApi();
    directory = await mkdtemp(join(tmpdir(), 'svc-cluster-tokens-'));
    await writeFile(join(directory, 'kubeconfig'), api.kubeconfig(NAMESPACE));
    for (const identity of ['svc-0', 'svc-1']) {
      const environment = { SVC_AUTH_ENABLED: '1' };
      replicas.push(await createClusterController({ namespace: NAMESPACE, identity, kubeconfig: api.kubeconfig(NAMESPACE), environment }));
    }
  }, 60_000);
  afterAll(async () => {
    for (const replica of replicas) await replica.dispose();
    await api?.close();
    await rm(directory, { recursive: true, force: true });
  }, 60_000);

  const statuses = async (path: string, token?: string): Promise<readonly number[]> =>
    await Promise.all(
      replicas.map(async ({ url }) => {
        const answer = await fetch(`${url}${path}`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
        await answer.text();
        return answer.status;
      }),
    );
  const run = async (...args: readonly string[]) =>
    await svcctl([...args, '--kubeconfig', join(directory, 'kubeconfig')], { env: { HOME: directory } });
  const newToken = async (scope: string): Promise<string> => {
    const { code, out, err } = await run('token', 'create', '--label', scope, '--scope', scope);
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining('shown once') });
    return out.trim();
  };

  test('is not ready before it has read its tokens, and does not call a token wrong until then', async () => {
    const allow = api.faults.answer({ resource: 'secrets' }, { status: 403, reason: 'Forbidden', message: 'no right to secrets' });
    await Promise.all(replicas.map(async (replica) => await replica.start()));
    const readiness = async ({ url }: ClusterController): Promise<string> => await (await fetch(`${url}/api/health/ready`)).text();
    for (const replica of replicas) {
      await eventually(
        'only the tokens are missing',
        async () => (await readiness(replica)).includes('The tokens have not been read yet'),
        30_000,
      );
    }
    expect(await statuses('/api/health/ready')).toEqual([503, 503]);
    expect(await statuses('/api/slots', `svc_1a2b3c4d.${'A'.repeat(43)}`)).toEqual([503, 503]);
    expect(await statuses('/api/slots')).toEqual([401, 401]);
    allow();
    await eventually('both are ready', async () => (await statuses('/api/health/ready')).every((status) => status === 200), 60_000);
    expect(await statuses('/api/slots', `svc_1a2b3c4d.${'A'.repeat(43)}`)).toEqual([401, 401]);
  }, 150_000);

  test('accepts a first token that svcctl has written to the Secret, in each replica', async () => {
    api.put(SECRETS, NAMESPACE, { metadata: { name: 'svc-tokens' }, type: 'Opaque' });
    const admin = await newToken('admin');
    await eventually('both know the token', async () => (await statuses('/api/slots', admin)).every((status) => status === 200));
    const reader = await newToken('read-only');
    await eventually('both know its scope', async () => (await statuses('/api/auth/tokens', reader)).every((status) => status === 403));
  }, 60_000);

  test('refuses a token in all replicas once one of them has revoked it', async () => {
    const admin = await newToken('admin');
    await eventually('both know the token', async () => (await statuses('/api/slots', admin)).every((status) => status === 200));
    const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' };
    const [first] = replicas;
    const created = await fetch(`${first?.url}/api/auth/tokens`, { method: 'POST', headers, body: '{"label":"short","scope":"all"}' });
    const { id, token } = Object(await created.json());
    await eventually('both know it', async () => (await statuses('/api/slots', String(token))).every((status) => status === 200));
    const revoked = await fetch(`${first?.url}/api/auth/tokens/${String(id)}`, { method: 'DELETE', headers });
    expect(revoked.status).toBe(204);
    // The replica that was asked refuses it at once.
    expect((await statuses('/api/slots', String(token)))[0]).toBe(401);
    await eventually('no replica accepts it', async () => (await statuses('/api/slots', String(token))).every((status) => status === 401));
    for (const replica of replicas) {
      expect(replica.output()).toContain(`The tokens have changed: removed ${String(id)}`);
      expect(replica.output()).not.toContain(String(token).slice(13));
    }
  }, 60_000);

  test('shows the age of its copy of the Secret', async () => {
    for (const { url } of replicas) {
      await eventually('the copy is current', async () =>
        (await (await fetch(`${url}/api/metrics`)).text()).includes('svc_kube_copy_age_seconds{resource="secrets"} 0\n'),
      );
    }
  });
});
