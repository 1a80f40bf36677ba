/** Connects a verb to the service that its options name: directly, or through the API server of a cluster. */
import { CliFailure } from '../output/exit-codes.ts';
import { createClient, type Client } from './client.ts';
import type { ClusterTransportOptions } from './cluster-transport.ts';
import { sendHttp } from './http-request.ts';
import {
  findLocalSocket,
  givenToken,
  readToken,
  serviceUrl,
  targetsCluster,
  type Environment,
  type ServiceOptions,
} from './service-options.ts';
import type { Transport } from './transport.ts';

/** The service answers from RAM. */
const POLL_MS = 150;

/** `waiting` is used for a service in a cluster only. */
export async function connect(
  options: ServiceOptions,
  env: Environment,
  waiting: Omit<ClusterTransportOptions, 'cluster' | 'token'>,
): Promise<Client> {
  if (!targetsCluster(options, env)) {
    const token = await readToken(options, env);
    const socketPath = token === undefined ? await findLocalSocket(options, env) : undefined;
    return createClient(
      socketPath === undefined ? createDirectTransport(await serviceUrl(options, env), token) : createLocalTransport(socketPath),
    );
  }
  const { openCluster } = await import('./cluster-access.ts');
  const { createClusterTransport } = await import('./cluster-transport.ts');
  const token = await givenToken(options, env);
  return createClient(
    createClusterTransport({ cluster: await openCluster(options, env), ...waiting, ...(token === undefined ? {} : { token }) }),
  );
}

/** `svcctl` sends its requests to the service of this host through its socket, which only root and the user of the service can open. */
function createLocalTransport(socketPath: string): Transport {
  const failure = (reason: string, cause: unknown): CliFailure =>
    new CliFailure(`Could not reach the service at "${socketPath}": ${reason}`, {
      cause,
      hint: 'Start the service, or set the URL of another one with --server or SVCCTL_SERVER',
    });
  return {
    service: `"${socketPath}"`,
    hint: 'Check SVC_STATE_DIR: another program may be listening there',
    pollMs: POLL_MS,
    send: async (request) => sendHttp({ server: 'http://localhost', socketPath, failure }, request),
  };
}

function createDirectTransport(server: string, token: string | undefined): Transport {
  const credentials = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const failure = (reason: string, cause: unknown): CliFailure =>
    new CliFailure(`Could not reach the service at "${server}": ${reason}`, {
      cause,
      hint: 'Start it with "svcctl serve", or set its URL with --server or SVCCTL_SERVER',
    });
  return {
    service: `"${server}"`,
    hint: 'Check --server: another program may be listening there',
    pollMs: POLL_MS,
    send: async (request) => sendHttp({ server, failure }, { ...request, headers: { ...credentials, ...request.headers } }),
  };
}
