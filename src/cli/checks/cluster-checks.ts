/** The looks that `svcctl doctor` takes at a cluster: what every installation there needs. Each answers what it found and never throws; none changes anything. */
import { z } from 'zod';
import { isTable } from '../../schema/key-case.ts';
import { LABEL_PREFIX } from '../../schema/object-labels.ts';
import { SLOT_RESOURCE } from '../../schema/slot-resource.ts';
import type { ClusterAccess } from '../connect/cluster-access.ts';
import { LEADER_LEASE } from '../connect/cluster-transport.ts';
import type { Check } from './doctor-checks.ts';
import { messageOf } from '../../platform/error-text.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';

/** https://kubernetes.io/releases/version-skew-policy/ supports three minor versions; this is the oldest that the service is made for. */
const LEAST_MINOR = 29;
/** A lease that was not renewed for so many times its duration has no holder. */
const STALE_AFTER = 2;
const GATEWAYS = encodeURIComponent('app.kubernetes.io/name=svc,app.kubernetes.io/component=gateway');
/** What a GPU is called by the device plugins there are. */
const GPU_RESOURCE = /^(?:nvidia\.com|amd\.com|gpu\.intel\.com|intel\.com)\/(?:gpu|i915|xe|mig-.+)/;

const good = (name: string, found: string): Check => ({ name, result: 'ok', found, hint: '' });
const warn = (name: string, found: string, hint: string): Check => ({ name, result: 'warn', found, hint });
const bad = (name: string, found: string, hint: string): Check => ({ name, result: 'fail', found, hint });

export async function checkApi(cluster: ClusterAccess): Promise<Check> {
  const answer = await get(cluster, '/version');
  if (answer.status === 0) return bad('cluster', answer.problem, 'Check that "kubectl version" works with this context');
  if (answer.status !== 200) return bad('cluster', `"${cluster.server}" answers ${answer.status}: ${answer.problem}`, 'Sign in again');
  const { gitVersion = 'unknown', minor = '' } = z.looseObject({ gitVersion: z.string(), minor: z.string() }).partial().parse(answer.body);
  const found = `${gitVersion} at "${cluster.server}", namespace "${cluster.namespace}"`;
  const old = Number.parseInt(minor, 10) < LEAST_MINOR;
  return old ? warn('cluster', found, `The service is made for Kubernetes 1.${LEAST_MINOR} and newer`) : good('cluster', found);
}

/** Whoever is signed in may ask which kinds of objects there are. */
export async function checkDefinition(cluster: ClusterAccess): Promise<Check> {
  const { group, version, plural } = SLOT_RESOURCE;
  const name = `${plural}.${group}`;
  const answer = await get(cluster, `/apis/${group}/${version}`);
  const resources = isTable(answer.body) && Array.isArray(answer.body['resources']) ? answer.body['resources'] : [];
  const has = (resource: string): boolean => resources.some((each: unknown) => isTable(each) && each['name'] === resource);
  const hint = `Install it: kubectl apply --server-side -f crds/${name}.yaml`;
  if (answer.status === 200 && has(plural)) {
    const parts = ['status', 'scale'].filter((part) => !has(`${plural}/${part}`));
    if (parts.length === 0) return good('definition', `${name} serves ${version}`);
    return bad('definition', `${name} is an old one: it has no ${parts.join(' and no ')}`, hint);
  }
  if (answer.status === 404 || answer.status === 200) return bad('definition', `${name} does not serve ${version}`, hint);
  return warn('definition', `cannot be looked at: ${answer.problem}`, 'Check that "kubectl api-resources" works with this context');
}

const LeaseSpec = z.looseObject({
  holderIdentity: z.string().nullish(),
  leaseDurationSeconds: z.number().nullish(),
  renewTime: z.string().nullish(),
});

/** Ages are measured by the API server's clock. */
export async function checkLeader(cluster: ClusterAccess): Promise<Check> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${cluster.namespace}/leases/${LEADER_LEASE}`;
  const answer = await get(cluster, path);
  if (answer.status === 404) {
    return bad(
      'service',
      `there is none in namespace "${cluster.namespace}"`,
      'Name its namespace with -n, or install the chart helm/svc there',
    );
  }
  const parsed = LeaseSpec.safeParse(isTable(answer.body) ? answer.body['spec'] : undefined);
  if (answer.status !== 200 || !parsed.success) {
    return warn('service', `its Lease cannot be read: ${answer.problem}`, 'Ask for the right to "get" "leases" of "coordination.k8s.io"');
  }
  const { holderIdentity, leaseDurationSeconds, renewTime } = parsed.data;
  const ageSeconds = Math.round((answer.serverTime - Date.parse(renewTime ?? '')) / 1000);
  const hint = `Look at its pods: kubectl --namespace ${cluster.namespace} get pods --selector app.kubernetes.io/name=svc`;
  if (holderIdentity === '' || holderIdentity === null || holderIdentity === undefined) return bad('service', 'no replica leads', hint);
  if (ageSeconds > STALE_AFTER * (leaseDurationSeconds ?? 10)) {
    return bad('service', `"${holderIdentity}" leads by name, and was last heard of ${ageSeconds} s ago`, hint);
  }
  return good('service', `"${holderIdentity}" leads`);
}

const PodList = z.looseObject({
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string() }),
      status: z.looseObject({ conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).nullish() }).nullish(),
    }),
  ),
});

export async function checkReplicas(cluster: ClusterAccess): Promise<Check> {
  const answer = await get(cluster, `/api/v1/namespaces/${cluster.namespace}/pods?labelSelector=${GATEWAYS}`);
  const parsed = PodList.safeParse(answer.body);
  if (answer.status !== 200 || !parsed.success) return good('replicas', 'not looked at: these credentials may not list pods');
  const pods = parsed.data.items.map(({ metadata, status }) => ({
    name: metadata.name,
    ready: status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true,
  }));
  const waiting = pods.filter(({ ready }) => !ready).map(({ name }) => `"${name}"`);
  const found = `${pods.length - waiting.length} of ${pods.length} ready`;
  if (pods.length > 0 && waiting.length === 0) return good('replicas', found);
  const hint = `See why: kubectl --namespace ${cluster.namespace} describe pods --selector app.kubernetes.io/name=svc`;
  if (pods.length === 0) return warn('replicas', 'no pod has the labels of the chart', hint);
  return (waiting.length === pods.length ? bad : warn)('replicas', `${found}; not ${waiting.join(', ')}`, hint);
}

const NodeList = z.looseObject({
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string(), labels: z.record(z.string(), z.string()).nullish() }),
      status: z.looseObject({ allocatable: z.record(z.string(), z.string()).nullish() }).nullish(),
    }),
  ),
});

/** GPUs that device plugins offer, and nodes that are labelled for a backend. */
export async function checkNodes(cluster: ClusterAccess): Promise<Check> {
  const answer = await get(cluster, '/api/v1/nodes');
  const parsed = NodeList.safeParse(answer.body);
  if (answer.status !== 200 || !parsed.success) return good('nodes', 'not looked at: these credentials may not list nodes');
  const gpus = new Map<string, number>();
  const labels = new Map<string, number>();
  const count = (counts: Map<string, number>, key: string, more: number): void => void counts.set(key, (counts.get(key) ?? 0) + more);
  for (const { metadata, status } of parsed.data.items) {
    for (const [resource, amount] of Object.entries(status?.allocatable ?? {})) {
      if (GPU_RESOURCE.test(resource) && Number(amount) > 0) count(gpus, resource, Number(amount));
    }
    for (const [label, value] of Object.entries(metadata.labels ?? {})) {
      if (label.startsWith(`${LABEL_PREFIX}/backend-`) && value === 'true') count(labels, label.slice(`${LABEL_PREFIX}/`.length), 1);
    }
  }
  const offered = [...gpus].map(([resource, amount]) => `${amount} × ${resource}`);
  const labelled = [...labels].map(([label, nodes]) => `${label} on ${nodes}`);
  return good(
    'nodes',
    [`${parsed.data.items.length}`, offered.length === 0 ? 'no GPUs by resource name' : offered.join(', '), ...labelled].join('; '),
  );
}

export interface Got {
  /** 0: no answer came. */
  readonly status: number;
  readonly body: unknown;
  /** The API server's own words when it refuses. */
  readonly problem: string;
  /** Unix milliseconds of the API server. */
  readonly serverTime: number;
}

export async function get(cluster: ClusterAccess, path: string, sent?: object): Promise<Got> {
  const body = sent === undefined ? {} : { body: JSON.stringify(sent), headers: { 'content-type': 'application/json' } };
  try {
    const answer = await cluster.send({ method: sent === undefined ? 'GET' : 'POST', path, ...body });
    const parsed = parseJson(await answer.text());
    const problem = isTable(parsed) && typeof parsed['message'] === 'string' ? parsed['message'] : `status ${answer.status}`;
    return { status: answer.status, body: parsed, problem, serverTime: Date.parse(answer.header('date') ?? '') || Date.now() };
  } catch (error) {
    return { status: 0, body: undefined, problem: messageOf(error), serverTime: Date.now() };
  }
}
