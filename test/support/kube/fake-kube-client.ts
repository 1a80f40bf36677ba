/** Connects to the fake API server like the service does. */
import { createKubeApi, type KubeApiOptions } from '../../../src/cluster/client/api-client.ts';
import type { KubeApi } from '../../../src/cluster/client/ports.ts';
import type { FakeKubeApi } from './fake-kube-api.ts';

/** The user agent is `svc/<version>`, which distinguishes several clients. */
export async function connectToFake(
  fake: FakeKubeApi,
  namespace = 'default',
  options: Partial<Omit<KubeApiOptions, 'env' | 'kubeconfigText'>> = {},
): Promise<KubeApi> {
  const made = await createKubeApi({ version: 'test', ...options, env: {}, kubeconfigText: fake.kubeconfig(namespace) });
  if (!made.ok) throw new Error(made.failure.message);
  return made.value;
}
