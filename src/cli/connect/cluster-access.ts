/** Requests to a cluster's API server as the user of a kubeconfig: credentials come from where the service takes them too. */
import { request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import type { Access, Credentials } from '../../cluster/client/credentials.ts';
import { findCredentials } from '../../cluster/client/find-credentials.ts';
import { badName } from '../../cluster/client/decide/resource-path.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import type { ServerOptions } from './server-address.ts';
import { ANSWER_MS, type Answered, type Asked } from './transport.ts';
import { messageOf } from '../../platform/error-text.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface ClusterAccess {
  /** For messages. */
  readonly server: string;
  readonly namespace: string;
  /** `asked.path` begins at the server's root. Fails where no answer comes. */
  send(asked: Asked): Promise<Answered>;
}

/** Reads the kubeconfig that the options name; no request is made yet. */
export async function openCluster(options: ServerOptions, env: Environment): Promise<ClusterAccess> {
  const found = await findCredentials({
    env,
    context: options.context ?? nonEmpty(env['SVCCTL_CONTEXT']),
    kubeconfigPath: options.kubeconfig,
  });
  if (!found.ok) throw new CliFailure(found.failure.message, { hint: 'List the contexts with "kubectl config get-contexts"' });
  const credentials = found.value;
  const namespace = options.namespace ?? nonEmpty(env['SVCCTL_NAMESPACE']) ?? credentials.namespace ?? 'default';
  const problem = badName(namespace);
  if (problem !== undefined) throw usageFailure(problem, 'Check --namespace and SVCCTL_NAMESPACE');
  const connect = createConnector(credentials);
  return {
    server: credentials.server,
    namespace,
    async send(asked) {
      const first = await attempt(credentials.server, asked, await connect());
      // a token may have run out while the verb waited
      if (first.status !== 401 || !credentials.renew()) return first;
      await first.text();
      return attempt(credentials.server, asked, await connect());
    },
  };
}

type Connect = () => Promise<Pick<Access, 'headers' | 'agent'>>;

function createConnector(credentials: Credentials): Connect {
  let made: { readonly tls: Access['tls']; readonly agent: HttpsAgent } | undefined;
  return async () => {
    const access = await credentials.access().catch((cause: unknown) => {
      const why = messageOf(cause);
      throw new CliFailure(`Could not get credentials for "${credentials.server}": ${why}`, {
        cause,
        hint: 'Check that "kubectl get namespaces" works with this context',
      });
    });
    if (access.agent !== undefined || credentials.server.startsWith('http:')) return access;
    if (made?.tls !== access.tls) made = { tls: access.tls, agent: new HttpsAgent({ keepAlive: true, ...access.tls }) };
    return { headers: access.headers, agent: made.agent };
  };
}

async function attempt(server: string, asked: Asked, { headers, agent }: Awaited<ReturnType<Connect>>): Promise<Answered> {
  const { method, path, body, signal, stream } = asked;
  const late = AbortSignal.timeout(ANSWER_MS);
  return new Promise<Answered>((resolve, reject) => {
    const fail = (cause: unknown): void => reject(noAnswer(server, late.aborted ? 'no answer came in time' : reasonOf(cause), cause));
    const sent = (server.startsWith('http:') ? requestHttp : requestHttps)(`${server}${path}`, {
      method,
      headers: { accept: 'application/json', 'user-agent': 'svcctl', ...asked.headers, ...headers },
      ...(agent === undefined ? {} : { agent }),
      ...(signal === undefined ? {} : { signal }),
    });
    const giveUp = (): void => void sent.destroy(new Error('no answer came in time'));
    late.addEventListener('abort', giveUp, { once: true });
    sent.once('error', fail);
    sent.once('response', (response) => {
      if (stream === true) late.removeEventListener('abort', giveUp);
      // without a listener, a connection cut in the middle of a body would end the program
      sent.on('error', () => undefined);
      response.once('close', () => late.removeEventListener('abort', giveUp));
      resolve({
        status: response.statusCode ?? 500,
        header: (name) => response.headers[name]?.toString(),
        text: async () => text(response).catch((cause: unknown) => Promise.reject(noAnswer(server, reasonOf(cause), cause))),
        body: bodyOf(response, server),
      });
    });
    sent.end(body);
  });
}

async function* bodyOf(response: AsyncIterable<unknown>, server: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response) if (chunk instanceof Uint8Array) yield chunk;
  } catch (cause) {
    throw noAnswer(server, reasonOf(cause), cause);
  }
}

function noAnswer(server: string, why: string, cause: unknown): CliFailure {
  return new CliFailure(`Could not reach the API server at "${server}": ${why}`, {
    cause,
    hint: 'Check that "kubectl get namespaces" works with this context',
  });
}

function reasonOf(cause: unknown): string {
  const code: unknown = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  if (code === 'ECONNREFUSED') return 'nothing listens there';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the host name is not known';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'the connection was cut';
  return cause instanceof Error && cause.message !== '' ? cause.message : String(code ?? cause);
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}
