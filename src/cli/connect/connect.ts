/** Connects a verb to the service that its options name: directly, or through the API server of a cluster. */
import type { Cli } from '../cli.ts';
import { createClient, type Client } from './client.ts';
import { createDirectTransport } from './direct-transport.ts';
import { readToken, serviceUrl, targetsCluster, type ServiceOptions } from './service-options.ts';

export async function connect({ env, now, terminal }: Cli, options: ServiceOptions): Promise<Client> {
  if (!targetsCluster(options, env)) return createClient(createDirectTransport(serviceUrl(options, env), await readToken(options, env)));
  const { openCluster } = await import('./cluster-access.ts');
  const { createClusterTransport } = await import('./cluster-transport.ts');
  const cluster = await openCluster(options, env);
  return createClient(createClusterTransport({ cluster, now, onWait: (text) => terminal.progress({ text, step: text }) }));
}
