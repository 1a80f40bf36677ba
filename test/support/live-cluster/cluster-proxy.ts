/** A proxy in front of the API server in KUBECONFIG, and a kubeconfig that connects through it. */
import { isTable } from '../../../src/schema/words/key-case.ts';
import { kubectl } from '../require/require-cluster.ts';
import { startStallingProxy, type StallingProxy } from './stalling-proxy.ts';

export interface ClusterProxy extends StallingProxy {
  /** The text of the kubeconfig. */
  readonly kubeconfig: string;
}

export async function startClusterProxy(): Promise<ClusterProxy> {
  const config: unknown = JSON.parse(await kubectl(['config', 'view', '--raw', '--minify', '--flatten', '--output', 'json']));
  const named = isTable(config) && Array.isArray(config['clusters']) ? config['clusters'][0] : undefined;
  if (!isTable(config) || !isTable(named) || !isTable(named['cluster'])) throw new Error('The kubeconfig names no cluster');
  const url = new URL(String(named['cluster']['server']));
  const proxy = await startStallingProxy(url.hostname.replace(/^\[|\]$/g, ''), Number(url.port || '443'));
  // The server's certificate is not valid for the proxy's address, so it is not verified.
  const cluster = { server: `https://127.0.0.1:${proxy.port}`, 'insecure-skip-tls-verify': true };
  return { ...proxy, kubeconfig: JSON.stringify({ ...config, clusters: [{ ...named, cluster }] }) };
}
