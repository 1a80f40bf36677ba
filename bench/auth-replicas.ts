/** How long a revocation in one replica of a cluster takes to reach another one: two real services that share a Secret, on a stand-in for the API server. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SECRETS } from '../src/cluster/client/decide/resource-path.ts';
import { startFakeKubeApi } from '../test/support/kube/fake-kube-api.ts';
import { createTokenFile } from './auth-tokens.ts';
import { startClusterService, type ClusterService } from './cluster-service.ts';
import { atMost, type Row } from './measure.ts';
import { waitUntil } from './wait-until.ts';

const NAMESPACE = 'bench';
const REVOCATIONS = 20;
const WITHIN = { withinMs: 30_000, everyMs: 5 };

/** The slowest of several revocations: from the answer to the `DELETE` to the first request that the other replica refuses. */
export async function measureRevocation(): Promise<Row> {
  const api = await startFakeKubeApi();
  const { text, tokens } = await createTokenFile({ known: 1 + REVOCATIONS, total: 1 + REVOCATIONS });
  api.put(SECRETS, NAMESPACE, {
    metadata: { name: 'svc-tokens' },
    type: 'Opaque',
    data: { 'tokens.toml': Buffer.from(text).toString('base64') },
  });
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const kubeconfig = join(directory, 'kubeconfig');
  await writeFile(kubeconfig, api.kubeconfig(NAMESPACE), { mode: 0o600 });
  const account = { env: { KUBECONFIG: kubeconfig }, runner: [] };
  const replicas: ClusterService[] = [];
  try {
    for (const name of ['bench-0', 'bench-1'])
      replicas.push(await startClusterService(account, NAMESPACE, name, { SVC_AUTH_ENABLED: '1' }));
    const times = await revokeAll(replicas, tokens);
    process.stdout.write(`  revocations reach the other replica after ${times.map((ms) => ms.toFixed(0)).join(', ')} ms\n`);
    return atMost('a revocation reaches the other replica, slowest', Math.max(...times), { limit: 1000, unit: 'ms', digits: 0 });
  } finally {
    for (const replica of replicas) await replica.stop();
    await api.close();
    await rm(directory, { recursive: true, force: true });
  }
}

async function revokeAll([first, second]: readonly ClusterService[], [admin = '', ...others]: readonly string[]) {
  if (first === undefined || second === undefined) throw new Error('Two replicas are needed');
  const statusOf = async ({ url }: ClusterService, token: string, path = '/api/slots', method = 'GET'): Promise<number> => {
    const answer = await fetch(`${url}${path}`, { method, headers: { authorization: `Bearer ${token}` } });
    await answer.text();
    return answer.status;
  };
  const times: number[] = [];
  for (const token of others) {
    const accepts = async (): Promise<boolean> => (await statusOf(second, token)) === 200;
    await waitUntil(accepts, { ...WITHIN, failure: () => 'The other replica does not know the token' });
    const deleted = await statusOf(first, admin, `/api/auth/tokens/${token.slice(4, 12)}`, 'DELETE');
    if (deleted !== 204) throw new Error(`The revocation was answered with ${deleted}`);
    const revokedAt = performance.now();
    await waitUntil(async () => !(await accepts()), { ...WITHIN, everyMs: 1, failure: () => 'The other replica still accepts the token' });
    times.push(performance.now() - revokedAt);
  }
  return times;
}
