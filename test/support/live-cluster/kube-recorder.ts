/**
 * A proxy in front of the API server that acts as one service account and records each right that is used, and each that is refused.
 * Rights are written as in Kubernetes' rules: `patch apps/deployments`, `get /pods/log` (the core group has no name).
 */
import { createServer, request as plainRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import { readFile } from 'node:fs/promises';
import { isTable } from '../../../src/schema/words/key-case.ts';
import { kubectl } from '../require/require-cluster.ts';

export interface KubeRecorder {
  /** The text of a kubeconfig without credentials. */
  readonly kubeconfig: string;
  readonly used: ReadonlySet<string>;
  readonly refused: ReadonlySet<string>;
  close(): Promise<void>;
}

interface Target {
  readonly url: URL;
  readonly agent: Agent | undefined;
  readonly token: string;
}

const VERBS: Readonly<Record<string, string>> = { GET: 'get', POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

export async function startKubeRecorder(namespace: string, serviceAccount: string): Promise<KubeRecorder> {
  const used = new Set<string>();
  const refused = new Set<string>();
  const target = await findTarget(namespace, serviceAccount);
  const server = createServer((incoming, outgoing) => forward(target, incoming, outgoing, used, refused));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = isTable(address) ? Number(address['port']) : 0;
  return {
    kubeconfig: JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'recorded', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
      contexts: [{ name: 'recorded', context: { cluster: 'recorded', namespace, user: 'nobody' } }],
      users: [{ name: 'nobody', user: {} }],
      'current-context': 'recorded',
    }),
    used,
    refused,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      target.agent?.destroy();
    },
  };
}

async function findTarget(namespace: string, serviceAccount: string): Promise<Target> {
  const config: unknown = JSON.parse(await kubectl(['config', 'view', '--raw', '--minify', '--output', 'json']));
  const clusters = isTable(config) && Array.isArray(config['clusters']) ? config['clusters'] : [];
  const cluster: Readonly<Record<string, unknown>> = clusters[0].cluster;
  const inline = cluster['certificate-authority-data'];
  const file = cluster['certificate-authority'];
  const ca = typeof inline === 'string' ? Buffer.from(inline, 'base64') : typeof file === 'string' ? await readFile(file) : undefined;
  const url = new URL(String(cluster['server']));
  const token = (await kubectl(['--namespace', namespace, 'create', 'token', serviceAccount, '--duration', '1h'])).trim();
  const agent = url.protocol === 'https:' ? new Agent({ keepAlive: true, ...(ca === undefined ? {} : { ca }) }) : undefined;
  return { url, agent, token };
}

function forward(target: Target, incoming: IncomingMessage, outgoing: ServerResponse, used: Set<string>, refused: Set<string>): void {
  const { agent, token } = target;
  const options = {
    method: incoming.method,
    headers: { ...incoming.headers, host: target.url.host, authorization: `Bearer ${token}` },
    ...(agent === undefined ? {} : { agent }),
  };
  const send = agent === undefined ? plainRequest : request;
  const sent = send(new URL(incoming.url ?? '/', target.url), options, (answer) => {
    const status = answer.statusCode ?? 502;
    for (const right of rightsOf(incoming, status)) (status === 403 ? refused : used).add(right);
    outgoing.writeHead(status, answer.headers);
    answer.pipe(outgoing);
    answer.on('error', () => outgoing.destroy());
  });
  sent.on('error', () => outgoing.destroy());
  outgoing.on('close', () => sent.destroy());
  incoming.pipe(sent);
}

/**
 * Returns the rights that the API server checks. A patch that creates the object needs the right to create as well; so would one of a type that an older server
 * does not have, which is the only reason why it does not find what is applied.
 */
function rightsOf({ method = 'GET', url = '/', headers }: IncomingMessage, status: number): readonly string[] {
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  const match = /^\/(?:api|apis\/([^/]+))\/[^/]+\/(?:namespaces\/[^/]+\/)?([a-z]+)(?:\/([^/]+))?(?:\/([a-z]+))?$/.exec(pathname);
  if (match === null) return [];
  const [, group = '', plural = '', name, subresource] = match;
  const resource = `${group}/${plural}${subresource === undefined ? '' : `/${subresource}`}`;
  const verb = VERBS[method] ?? method;
  // A server that streams lists checks the right to watch only; the others need the right to list.
  if (method === 'GET' && searchParams.has('sendInitialEvents')) return [`watch ${resource}`, `list ${resource}`];
  if (method === 'GET' && name === undefined) return [`${searchParams.get('watch') === null ? 'list' : 'watch'} ${resource}`];
  const isApplied = headers['content-type']?.includes('apply-patch') === true;
  return method === 'PATCH' && (status === 201 || (isApplied && status === 404))
    ? [`patch ${resource}`, `create ${resource}`]
    : [`${verb} ${resource}`];
}
