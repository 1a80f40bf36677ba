/**
 * Requests to a service in a cluster, through the API server's proxy to the leader's pod, with the credentials of a
 * kubeconfig. Users need no address and no open port, and a token only where the service authenticates. A Lease names
 * the pod. If the pod is gone, the transport waits for the next leader and sends the request to it once.
 */
import { Readable } from 'node:stream';
import { z } from 'zod';
import { badName } from '../../cluster/client/decide/resource-path.ts';
import { findCredentials } from '../../cluster/client/credentials.ts';
import { createAgents } from '../../cluster/client/http-client.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { messageOf } from '../../platform/error-text.ts';
import { sleep } from '../../platform/clock.ts';
import { CONTROLLER_LEASE, tablesAt, valueAt } from '../../schema/pod/kube-fields.ts';
import type { Environment } from '../installation.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import type { ServiceOptions } from './service-options.ts';
import { sendHttp, type ServiceRequest, type ServiceResponse, type Transport } from './transport.ts';

export type ClusterAccess = Awaited<ReturnType<typeof openCluster>>;

const HINT = 'Check that "kubectl get namespaces" works with this context';

/** Reads the kubeconfig that the options name. Sends no request. */
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
  const agentOf = createAgents(server.startsWith('http:'), { keepAlive: true });
  const failure = (reason: string, cause: unknown): CliFailure =>
    new CliFailure(`Could not reach the API server at "${server}": ${reason}`, { cause, hint: HINT });
  const attempt = async (request: ServiceRequest): Promise<ServiceResponse> => {
    const access = await credentials.access().catch((cause: unknown) => {
      throw new CliFailure(`Could not get credentials for "${server}": ${messageOf(cause)}`, { cause, hint: HINT });
    });
    return sendHttp({ server, agent: agentOf(access), failure }, { ...request, headers: { ...request.headers, ...access.headers } });
  };
  return {
    server,
    namespace,
    /** `path` starts at the root of the API server. Fails with a `CliFailure` without a response. */
    async send(request: ServiceRequest): Promise<ServiceResponse> {
      const first = await attempt(request);
      // The token may have expired while the verb waited.
      if (first.status !== 401 || !credentials.renew()) return first;
      await first.text();
      return attempt(request);
    },
  };
}

const nonEmpty = (value: string | undefined): string | undefined => (value === '' ? undefined : value);

/** Used if no container port has one of `PORT_NAMES`. */
const DEFAULT_PORT = 8080;
const DEFAULT_MANAGEMENT_PORT = 8081;
/** Without the first, the second serves management too. */
const PORT_NAMES = ['management', 'http'];
/** Every request goes through the API server, which serves others too. */
const POLL_MS = 500;
const LEASE_POLL_MS = 500;
/** Another replica takes over within 15 s of a crash. */
const HANDOVER_MS = 20_000;

export const LeaseSpec = z.looseObject({
  holderIdentity: z.string().nullish(),
  leaseDurationSeconds: z.number().nullish(),
  renewTime: z.string().nullish(),
});
const Lease = z.looseObject({ spec: LeaseSpec.nullish() });

/** An error of the API server. The service itself never sends this kind. */
const Status = z.looseObject({
  kind: z.literal('Status'),
  apiVersion: z.literal('v1'),
  status: z.literal('Failure'),
  message: z.string().default(''),
  reason: z.string().default(''),
  code: z.number().default(500),
});

type ApiStatus = Pick<z.output<typeof Status>, 'message' | 'reason' | 'code'>;

/** Verbs that the API server authorizes for requests through its proxy. */
const PROXY_VERBS: Readonly<Record<string, string>> = { GET: 'get', POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

export interface ClusterTransportOptions {
  readonly cluster: ClusterAccess;
  /** Sent as `x-api-key`, because the API server consumes `Authorization`. */
  readonly token?: string;
  /** Unix milliseconds. */
  now(): number;
  /** Called once, when the transport begins to wait. */
  onWait(message: string): void;
}

interface Leader {
  readonly pod: string;
  readonly port: number;
  /** `renewTime` of the Lease that named the pod. */
  readonly renewed: string;
}

export function createClusterTransport(options: ClusterTransportOptions): Transport {
  const { cluster, token } = options;
  const credentials = token === undefined ? {} : { 'x-api-key': token };
  let leader: Leader | undefined;
  return {
    service: `namespace "${cluster.namespace}" of "${cluster.server}"`,
    namespace: cluster.namespace,
    hint: 'Check -n: the Lease and the pod may belong to another program',
    pollMs: POLL_MS,
    async send(given) {
      const request = { ...given, headers: { ...credentials, ...given.headers } };
      leader ??= await waitForLeader(options);
      const first = await sendToPod(cluster, leader, request);
      if (!('reason' in first)) return first;
      if (!canRetry(first, request)) throw failureOf(first, cluster, request.method);
      leader = await waitForLeader(options, leader);
      const second = await sendToPod(cluster, leader, request);
      if ('reason' in second) throw failureOf(second, cluster, request.method);
      return second;
    },
  };
}

/** `gone` did not answer. It is accepted again once it renews its Lease: perhaps only the connection failed. */
async function waitForLeader({ cluster, now, onWait }: ClusterTransportOptions, gone?: Leader): Promise<Leader> {
  const { namespace } = cluster;
  const deadline = now() + HANDOVER_MS;
  for (let first = true; ; first = false) {
    const { spec } = await readLease(cluster);
    const holder = spec?.holderIdentity ?? '';
    const renewed = spec?.renewTime ?? '';
    if (holder !== '' && (gone === undefined || holder !== gone.pod || renewed !== gone.renewed)) {
      if (badName(holder) !== undefined)
        throw new CliFailure(`The Lease "${CONTROLLER_LEASE}" in namespace "${namespace}" does not name a pod`);
      const port = await readPort(cluster, holder);
      if (port !== undefined) return { pod: holder, port, renewed };
    }
    if (now() >= deadline) {
      const reason = holder === '' ? 'there is no leader' : `the leader "${holder}" does not answer`;
      throw new CliFailure(`Could not reach any replica of the service in namespace "${namespace}": ${reason}`, {
        hint: `Check its pods: kubectl --namespace ${namespace} get pods --selector app.kubernetes.io/name=svc`,
      });
    }
    if (first) onWait('Waiting for a replica of the service to become the leader');
    await sleep(LEASE_POLL_MS);
  }
}

/** Returns the response of the service, or the error of the API server. */
async function sendToPod(cluster: ClusterAccess, leader: Leader, request: ServiceRequest): Promise<ServiceResponse | ApiStatus> {
  const response = await cluster.send({ ...request, path: proxyPath(cluster, leader, request.path) });
  if (response.status < 400) return response;
  const body = await response.text();
  return parseStatus(body) ?? { ...response, text: async () => body, bytes: Readable.from([Buffer.from(body)]) };
}

const proxyPath = ({ namespace }: ClusterAccess, { pod, port }: Omit<Leader, 'renewed'>, path: string): string =>
  `/api/v1/namespaces/${namespace}/pods/http:${pod}:${port}/proxy${path}`;

async function readLease(cluster: ClusterAccess): Promise<z.output<typeof Lease>> {
  const { namespace, server } = cluster;
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${CONTROLLER_LEASE}`;
  const response = await cluster.send({ method: 'GET', path });
  const body = await response.text();
  if (response.status === 404)
    throw new CliFailure(`svc is not installed in namespace "${namespace}" of "${server}"`, {
      hint: `Choose the namespace with -n, or install it: helm install svc helm/svc --namespace ${namespace} --create-namespace`,
    });
  const status = parseStatus(body);
  if (status !== undefined) throw failureOf(status, cluster, 'GET');
  const parsed = Lease.safeParse(parseJson(body));
  if (response.status === 200 && parsed.success) return parsed.data;
  throw new CliFailure(`The API server at "${server}" answered with status ${response.status} to a request for a Lease`, {
    hint: 'Check the address in the kubeconfig: another program may be listening on it',
  });
}

/** Returns undefined if the pod no longer exists, and the default port that answers if the user may not read pods. */
async function readPort(cluster: ClusterAccess, pod: string): Promise<number | undefined> {
  const response = await cluster.send({ method: 'GET', path: `/api/v1/namespaces/${cluster.namespace}/pods/${pod}` });
  const body = await response.text();
  if (response.status === 404) return undefined;
  const found = parseJson(body);
  if (response.status !== 200 || valueAt(found, 'spec') === undefined) {
    const path = proxyPath(cluster, { pod, port: DEFAULT_MANAGEMENT_PORT }, '/api/health/system');
    const probe = await cluster.send({ method: 'GET', path });
    await probe.text();
    return probe.status === 200 ? DEFAULT_MANAGEMENT_PORT : DEFAULT_PORT;
  }
  const ports = tablesAt(found, 'spec', 'containers').flatMap((container) => tablesAt(container, 'ports'));
  const named = PORT_NAMES.map((name) => ports.find((port) => port['name'] === name)).find((port) => port !== undefined);
  return Number(named?.['containerPort'] ?? DEFAULT_PORT);
}

/** Whether the pod was not reached and a second request cannot repeat an effect. */
function canRetry(status: ApiStatus, { method }: ServiceRequest): boolean {
  const neverSent =
    status.code === 404 || /dial tcp|connection refused|no route to host|no endpoints|address not allowed/.test(status.message);
  return neverSent || (method === 'GET' && isUnreachable(status));
}

/** Returns undefined if the text is not an error of an API server. */
const parseStatus = (text: string): ApiStatus | undefined => Status.safeParse(parseJson(text)).data;

/** Whether the API server did not reach the pod. */
function isUnreachable({ code, message }: ApiStatus): boolean {
  return code === 502 || code === 503 || code === 504 || /error trying to reach service/.test(message);
}

function failureOf(status: ApiStatus, { server, namespace }: ClusterAccess, method: string): CliFailure {
  const { code, message } = status;
  if (code === 401)
    return new CliFailure(`The API server at "${server}" does not accept the credentials of this context`, {
      hint: 'Sign in again; "kubectl auth whoami" shows the current user',
    });
  if (code === 403) {
    const verb = PROXY_VERBS[method] ?? 'get';
    return new CliFailure(`The API server denies access: ${message}`, {
      hint: `Ask for the right to "get" "leases" of group "coordination.k8s.io" and to "${verb}" "pods/proxy" in namespace "${namespace}"`,
    });
  }
  if (isUnreachable(status))
    return new CliFailure(`The API server cannot reach the pod of the service in namespace "${namespace}": ${message}`, {
      hint: `Check the pods and their NetworkPolicies: kubectl --namespace ${namespace} get pods,networkpolicies`,
    });
  return new CliFailure(`The API server at "${server}" answered with status ${code}: ${message}`);
}
