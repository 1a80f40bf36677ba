/**
 * To the service in a cluster, through the API server's proxy to the pod that leads: whoever may use it needs no address, no port of the service's own
 * and no second credential. Which pod that is stands in a Lease; when it is gone, the next one is waited for and asked once.
 */
import { z } from 'zod';
import { badName } from '../../cluster/client/decide/resource-path.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { readStatus, refusal, type ApiStatus } from './cluster-refusal.ts';
import { bytesOf } from './direct-transport.ts';
import { CliFailure } from '../output/exit-codes.ts';
import type { Answered, Asked, Transport } from './transport.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { sleep } from '../../platform/pause.ts';

export const LEADER_LEASE = 'svc-controller';
/** Where the container port has no name. */
const DEFAULT_PORT = 8080;
/** Name of the container port. */
const PORT_NAME = 'http';
/** Each question goes through the API server, which serves others too. */
const POLL_MS = 500;
const LEASE_POLL_MS = 500;
/** Another replica takes over within 15 s of a crash. */
const HANDOVER_MS = 20_000;

const LeaseShape = z.looseObject({
  spec: z.looseObject({ holderIdentity: z.string().nullish(), renewTime: z.string().nullish() }).nullish(),
});
type LeaseShape = z.output<typeof LeaseShape>;

const PodShape = z.looseObject({
  spec: z.looseObject({
    containers: z.array(
      z.looseObject({ ports: z.array(z.looseObject({ name: z.string().nullish(), containerPort: z.number() })).nullish() }),
    ),
  }),
});

export interface ClusterTransportOptions {
  readonly cluster: ClusterAccess;
  /** Unix milliseconds. */
  now(): number;
  /** What is waited for, once a wait begins. */
  onWait(message: string): void;
}

interface Leader {
  readonly pod: string;
  readonly port: number;
  /** Of the Lease that said so. */
  readonly renewed: string;
}

export function createClusterTransport({ cluster, now, onWait }: ClusterTransportOptions): Transport {
  const { namespace, server } = cluster;
  let known: Leader | undefined;

  async function leaderAfter(gone: Leader | undefined): Promise<Leader> {
    const deadline = now() + HANDOVER_MS;
    for (let first = true; ; first = false) {
      const lease = await readLease(cluster);
      const holder = lease.spec?.holderIdentity ?? '';
      const renewed = lease.spec?.renewTime ?? '';
      // the same holder again, with a newer mark: it lives, and its proxy may have had a bad moment
      if (holder !== '' && (gone === undefined || holder !== gone.pod || renewed !== gone.renewed)) {
        if (badName(holder) !== undefined) throw new CliFailure(`The Lease "${LEADER_LEASE}" in namespace "${namespace}" names no pod`);
        const port = await portOf(cluster, holder);
        if (port !== undefined) return { pod: holder, port, renewed };
      }
      if (now() >= deadline) throw noLeader(namespace, holder);
      if (first) onWait('Waiting for a replica of the service to lead');
      await sleep(LEASE_POLL_MS);
    }
  }

  async function sendTo({ pod, port }: Leader, asked: Asked): Promise<Answered | ApiStatus> {
    const path = `/api/v1/namespaces/${namespace}/pods/http:${pod}:${port}/proxy${asked.path}`;
    const answered = await cluster.send({ ...asked, path });
    if (answered.status < 400) return answered;
    const body = await answered.text();
    return readStatus(body) ?? { ...answered, text: async () => body, body: bytesOf(body) };
  }

  return {
    service: `namespace "${namespace}" of "${server}"`,
    namespace,
    hint: 'Check -n: another program may have that Lease and pod',
    pollMs: POLL_MS,
    async send(asked) {
      known ??= await leaderAfter(undefined);
      const first = await sendTo(known, asked);
      if (!('reason' in first)) return first;
      if (!isGone(first, asked)) throw refusal(first, cluster, asked.method);
      known = await leaderAfter(known);
      const second = await sendTo(known, asked);
      if (!('reason' in second)) return second;
      throw refusal(second, cluster, asked.method);
    },
  };
}

async function readLease(cluster: ClusterAccess): Promise<LeaseShape> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${cluster.namespace}/leases/${LEADER_LEASE}`;
  const answered = await cluster.send({ method: 'GET', path });
  const body = await answered.text();
  if (answered.status === 404) throw notInstalled(cluster);
  const status = readStatus(body);
  if (status !== undefined) throw refusal(status, cluster, 'GET');
  const parsed = LeaseShape.safeParse(parseJson(body));
  if (answered.status === 200 && parsed.success) return parsed.data;
  throw new CliFailure(`The API server at "${cluster.server}" answered ${answered.status} to a question for a Lease`, {
    hint: 'Check the address in the kubeconfig: something else may listen there',
  });
}

function notInstalled({ namespace, server }: ClusterAccess): CliFailure {
  return new CliFailure(`There is no svc in namespace "${namespace}" of "${server}"`, {
    hint: `Name its namespace with -n, or install it: helm install svc helm/svc --namespace ${namespace} --create-namespace`,
  });
}

/** Undefined: there is no such pod any more. Who may not read pods takes the port that they have by default. */
async function portOf(cluster: ClusterAccess, pod: string): Promise<number | undefined> {
  const answered = await cluster.send({ method: 'GET', path: `/api/v1/namespaces/${cluster.namespace}/pods/${pod}` });
  const parsed = PodShape.safeParse(parseJson(await answered.text()));
  if (answered.status === 404) return undefined;
  if (answered.status !== 200 || !parsed.success) return DEFAULT_PORT;
  const ports = parsed.data.spec.containers.flatMap((container) => container.ports ?? []);
  return ports.find((port) => port.name === PORT_NAME)?.containerPort ?? DEFAULT_PORT;
}

/** Whether the pod could not be reached, and asking another one does nothing twice. */
function isGone({ code, message }: ApiStatus, { method }: Asked): boolean {
  const neverSent = code === 404 || /dial tcp|connection refused|no route to host|no endpoints|address not allowed/.test(message);
  const unreachable = neverSent || code === 502 || code === 503 || code === 504 || /error trying to reach service/.test(message);
  return unreachable && (neverSent || method === 'GET');
}

function noLeader(namespace: string, holder: string): CliFailure {
  const who = holder === '' ? 'none leads' : `"${holder}" should lead and does not answer`;
  return new CliFailure(`No replica of the service in namespace "${namespace}" can be asked: ${who}`, {
    hint: `Look at its pods: kubectl --namespace ${namespace} get pods --selector app.kubernetes.io/name=svc`,
  });
}
