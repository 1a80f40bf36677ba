/** A cluster that runs the service, as `svcctl` sees it: a fake API server with a proxy to pods in front of it, and a small world behind each pod. */
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { LEASES, PODS } from '../../src/cluster/client/decide/resource-path.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../support/kube/fake-kube-api.ts';
import { svcctl, type Ran, type RunOptions } from './run-svcctl.ts';

export const NAMESPACE = 'models';
const LABELS = { 'app.kubernetes.io/name': 'svc', 'app.kubernetes.io/component': 'gateway' };

export interface Cluster {
  readonly fake: FakeKubeApi;
  /** Path of a kubeconfig whose API server is the proxy. */
  readonly kubeconfig: string;
  /** What a pod's port leads to: the URL of a service, or the error of an API server that cannot reach the pod. */
  readonly pods: Map<string, string | Refused>;
  /** Requests that passed through the proxy, such as `POST svc-0:8080 /api/apply`. */
  readonly proxied: string[];
  /** Denies all requests that match the predicate, as RBAC does. */
  forbid(predicate: (method: string, url: string) => boolean): void;
  /** Answers to requests that the fake API server does not support, by method and path: `GET /version`. */
  readonly answers: Map<string, (body: string) => unknown>;
  /** Writes the Lease. An empty `holder` means that there is no leader. Each call has another `renewTime` by default. */
  lead(holder: string, renewTime?: string): void;
  /** Calls `act` once the leader's Lease has been read this many more times. */
  afterLeaseReads(count: number, act: () => void): void;
  /** Adds a pod of the service. `port` is the container port with the given name; with another one than "http", "http" answers nothing. */
  addPod(name: string, url: string | Refused, port?: number, portName?: string): void;
  run(args: readonly string[], options?: RunOptions): Promise<Ran>;
  /** Stops the API server and keeps the kubeconfig. */
  goDown(): Promise<void>;
  close(): Promise<void>;
}

export interface Refused {
  readonly code: number;
  readonly message: string;
}

export async function startCluster(): Promise<Cluster> {
  const fake = await startFakeKubeApi({ token: 'a-token' });
  const directory = await mkdtemp(path.join(tmpdir(), 'svcctl-cluster-'));
  const pods: Cluster['pods'] = new Map();
  const proxied: string[] = [];
  const answers: Cluster['answers'] = new Map();
  let forbidden: (method: string, url: string) => boolean = () => false;
  let renewals = 0;
  let awaited: { reads: number; readonly act: () => void } | undefined;
  const front = createServer((incoming, response) => {
    const { method = 'GET', url = '/' } = incoming;
    if (forbidden(method, url)) return sendStatus(response, 403, 'Forbidden', `User "me" cannot ${method} "${url}"`);
    const answer = answers.get(`${method} ${url.split('?')[0] ?? ''}`);
    if (answer !== undefined) return void text(incoming).then((body) => response.end(JSON.stringify(answer(body))));
    if (awaited !== undefined && url.includes('/leases/svc-controller')) {
      response.once('finish', () => {
        if (awaited === undefined) return;
        awaited.reads -= 1;
        if (awaited.reads > 0) return;
        const { act } = awaited;
        awaited = undefined;
        act();
      });
    }
    const match = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/http:([^/:]+):(\d+)\/proxy(\/.*)$/.exec(url);
    if (match === null) return passOn(incoming, response, `${fake.url}${url}`);
    const [, namespace = '', pod = '', port = '', rest = ''] = match;
    const target = namespace === NAMESPACE ? pods.get(`${pod}:${port}`) : undefined;
    proxied.push(`${method} ${pod}:${port} ${rest}`);
    if (target === undefined) return sendStatus(response, 404, 'NotFound', `pods "${pod}" not found`);
    if (typeof target !== 'string') return sendStatus(response, target.code, '', target.message);
    // The credentials are for the API server only.
    delete incoming.headers.authorization;
    return passOn(incoming, response, `${target}${rest}`);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const address = front.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const kubeconfig = path.join(directory, 'kubeconfig');
  await writeFile(kubeconfig, fake.kubeconfig(NAMESPACE).replaceAll(fake.url, url));

  return {
    fake,
    kubeconfig,
    pods,
    proxied,
    forbid: (predicate) => void (forbidden = predicate),
    answers,
    lead(holder, given) {
      renewals += 1;
      const renewTime = given ?? new Date(renewals * 1000).toISOString().replace('Z', '000Z');
      fake.put(LEASES, NAMESPACE, { metadata: { name: 'svc-controller' }, spec: { holderIdentity: holder, renewTime } });
    },
    afterLeaseReads: (reads, act) => void (awaited = { reads, act }),
    addPod(name, target, port = 8080, portName = 'http') {
      const ports = [
        { name: 'metrics', containerPort: 1 },
        ...(portName === 'http' ? [] : [{ name: 'http', containerPort: 2 }]),
        { name: portName, containerPort: port },
      ];
      const status = { conditions: [{ type: 'Ready', status: 'True' }] };
      fake.put(PODS, NAMESPACE, {
        metadata: { name, labels: { ...LABELS } },
        status,
        spec: { containers: [{ name: 'sidecar' }, { name: 'svc', ports }] },
      });
      pods.set(`${name}:${port}`, target);
    },
    run: (args, options = {}) => svcctl(args, { ...options, env: { KUBECONFIG: kubeconfig, SVCCTL_CONTEXT: 'fake', ...options.env } }),
    async goDown() {
      front.closeAllConnections();
      await new Promise((resolve) => front.close(resolve));
    },
    async close() {
      front.closeAllConnections();
      front.close();
      await fake.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The proxy of an API server passes on the name under which it was addressed itself, not that of the pod. */
const API_SERVER = 'kubernetes.example.com:6443';

function passOn(incoming: IncomingMessage, response: ServerResponse, url: string): void {
  const onward = request(url, { method: incoming.method, headers: { ...incoming.headers, host: API_SERVER } }, (answer) => {
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', (error) => sendStatus(response, 503, 'ServiceUnavailable', `error trying to reach service: ${error.message}`));
  response.on('close', () => onward.destroy());
  incoming.pipe(onward);
}

function sendStatus(response: ServerResponse, code: number, reason: string, message: string): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code }));
}
