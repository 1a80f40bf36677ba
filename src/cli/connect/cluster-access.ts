/** Requests to the API server of a cluster, with the credentials of a kubeconfig. */
import { Agent as HttpsAgent } from 'node:https';
import { findCredentials } from '../../cluster/client/credentials.ts';
import type { Access, Credentials } from '../../cluster/client/ports.ts';
import { badName } from '../../cluster/client/decide/resource-path.ts';
import { messageOf } from '../../platform/error-text.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { sendHttp } from './http-request.ts';
import type { Environment, ServiceOptions } from './service-options.ts';
import type { ServiceRequest, ServiceResponse } from './transport.ts';

export type ClusterAccess = Awaited<ReturnType<typeof openCluster>>;

const HINT = 'Check that "kubectl get namespaces" works with this context';

/** Reads the kubeconfig that the options name. Sends no request yet. */
export async function openCluster(options: ServiceOptions, env: Environment) {
  const found = await findCredentials({
    env,
    context: options.context ?? nonEmpty(env['SVCCTL_CONTEXT']),
    kubeconfigPath: options.kubeconfig,
  });
  if (!found.ok) throw new CliFailure(found.failure.message, { hint: 'List the contexts with "kubectl config get-contexts"' });
  const credentials = found.value;
  const { server } = credentials;
  const namespace = options.namespace ?? nonEmpty(env['SVCCTL_NAMESPACE']) ?? credentials.namespace ?? 'default';
  const problem = badName(namespace);
  if (problem !== undefined) throw usageFailure(problem, 'Check --namespace and SVCCTL_NAMESPACE');
  const access = createAccess(credentials);
  const failure = (reason: string, cause: unknown): CliFailure =>
    new CliFailure(`Could not reach the API server at "${server}": ${reason}`, { cause, hint: HINT });
  const attempt = async (request: ServiceRequest): Promise<ServiceResponse> => {
    const { headers, agent } = await access();
    return sendHttp({ server, agent, failure }, { ...request, headers: { ...request.headers, ...headers } });
  };
  return {
    server,
    namespace,
    /** The path of the request starts at the root of the API server. Fails with a `CliFailure` if no response arrives. */
    async send(request: ServiceRequest): Promise<ServiceResponse> {
      const first = await attempt(request);
      // The token may have expired while the verb waited.
      if (first.status !== 401 || !credentials.renew()) return first;
      await first.text();
      return attempt(request);
    },
  };
}

/** Keeps one agent for as long as the TLS settings stay the same, so that connections are used again. */
function createAccess(credentials: Credentials): () => Promise<Pick<Access, 'headers' | 'agent'>> {
  const { server } = credentials;
  let latest: { readonly tls: Access['tls']; readonly agent: HttpsAgent } | undefined;
  return async () => {
    const access = await credentials.access().catch((cause: unknown) => {
      throw new CliFailure(`Could not get credentials for "${server}": ${messageOf(cause)}`, { cause, hint: HINT });
    });
    if (access.agent !== undefined || server.startsWith('http:')) return access;
    if (latest?.tls !== access.tls) latest = { tls: access.tls, agent: new HttpsAgent({ keepAlive: true, ...access.tls }) };
    return { headers: access.headers, agent: latest.agent };
  };
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}
