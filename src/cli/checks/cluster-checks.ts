/** The checks of `svcctl doctor` in a cluster. */
import { parseJson } from '../../platform/decide/parse-json.ts';
import { messageOf } from '../../platform/error-text.ts';
import { CONTROLLER_LEASE, LABEL_PREFIX, tableAt, tablesAt, valueAt } from '../../schema/pod/kube-fields.ts';
import { SLOT_RESOURCE } from '../../schema/slot/slot-resource.ts';
import { createClient, type Client } from '../connect/client.ts';
import { createClusterTransport, LeaseSpec, type ClusterAccess } from '../connect/cluster-transport.ts';
import { CliFailure } from '../output/exit-codes.ts';
import { fail, judgeLimits, ok, warn, type Check } from './access-checks.ts';

/** The oldest supported minor version of Kubernetes 1.x. */
const MIN_MINOR = 29;
/** A Lease has no holder after this many durations without a renewal. */
const STALE_AFTER = 2;
const GATEWAYS = encodeURIComponent('app.kubernetes.io/name=svc,app.kubernetes.io/component=gateway');
/** Resource names of the common device plugins for GPUs. */
const GPU_RESOURCE = /^(?:nvidia\.com|amd\.com|gpu\.intel\.com|intel\.com)\/(?:gpu|i915|xe|mig-.+)/;
/** Condition reasons for missing images. */
const IMAGE_REASONS = new Set('ImageUnknown ImagePullBackOff ErrImagePull InvalidImageName ImageInspectError ErrImageNeverPull'.split(' '));

/** Runs all checks. `now`: Unix milliseconds. */
export async function checkCluster(cluster: ClusterAccess, now: () => number): Promise<readonly Check[]> {
  const api = await checkApi(cluster);
  if (api.result === 'fail') return [api];
  const [definition, leader, replicas, rights, nodes] = await Promise.all([
    checkDefinition(cluster),
    checkLeader(cluster),
    checkReplicas(cluster),
    checkRights(cluster),
    checkNodes(cluster),
  ]);
  const checks = [api, definition, rights, nodes, leader];
  if (leader.found.startsWith(NOT_INSTALLED)) return checks;
  checks.push(replicas);
  // The service does not answer without a leader.
  if (leader.result === 'fail') return checks;
  const client = createClient(createClusterTransport({ cluster, now, onWait: () => undefined }));
  const service = { answer: checkAnswer, images: checkImages };
  const answers = Object.entries(service).map(async ([name, check]) =>
    check(client).catch((error: unknown) => fail(name, messageOf(error), error instanceof CliFailure ? (error.hint ?? '') : '')),
  );
  return [...checks, ...(await Promise.all(answers))];
}

async function checkApi(cluster: ClusterAccess): Promise<Check> {
  const { server, namespace } = cluster;
  const answer = await query(cluster, '/version');
  if (answer.status === 0) return fail('cluster', answer.problem, 'Check that "kubectl version" works with this context');
  if (answer.status !== 200) return fail('cluster', `"${server}" answers with status ${answer.status}: ${answer.problem}`, 'Sign in again');
  const { gitVersion = 'unknown', minor = '' } = tableAt(answer.body);
  const found = `${String(gitVersion)} at "${server}", namespace "${namespace}"`;
  const isOld = Number.parseInt(String(minor), 10) < MIN_MINOR;
  return isOld ? warn('cluster', found, `Use Kubernetes 1.${MIN_MINOR} or newer`) : ok('cluster', found);
}

/** Checks the CRD through discovery, which every authenticated user may read. */
async function checkDefinition(cluster: ClusterAccess): Promise<Check> {
  const { group, version, plural } = SLOT_RESOURCE;
  const name = `${plural}.${group}`;
  const answer = await query(cluster, `/apis/${group}/${version}`);
  const has = (resource: string): boolean => tablesAt(answer.body, 'resources').some((each) => each['name'] === resource);
  const hint = `Install it: kubectl apply --server-side -f crds/${name}.yaml`;
  if (answer.status === 200 && has(plural)) {
    const missing = ['status', 'scale'].filter((part) => !has(`${plural}/${part}`));
    if (missing.length === 0) return ok('definition', `${name} serves ${version}`);
    return fail('definition', `${name} is outdated: it has no ${missing.join(' and no ')}`, hint);
  }
  if (answer.status === 404 || answer.status === 200) return fail('definition', `${name} does not serve ${version}`, hint);
  return warn('definition', `Could not read it: ${answer.problem}`, 'Check that "kubectl api-resources" works with this context');
}

const NOT_INSTALLED = 'Not installed';

async function checkLeader(cluster: ClusterAccess): Promise<Check> {
  const { namespace } = cluster;
  const answer = await query(cluster, `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${CONTROLLER_LEASE}`);
  if (answer.status === 404) {
    const hint = 'Choose the namespace with -n, or install the chart helm/svc';
    return fail('service', `${NOT_INSTALLED} in namespace "${namespace}"`, hint);
  }
  const parsed = LeaseSpec.safeParse(valueAt(answer.body, 'spec'));
  if (answer.status !== 200 || !parsed.success)
    return warn('service', `Could not read its Lease: ${answer.problem}`, 'Get the right to "get" "leases" of "coordination.k8s.io"');
  const { holderIdentity, leaseDurationSeconds, renewTime } = parsed.data;
  const ageSeconds = Math.round((answer.serverTime - Date.parse(renewTime ?? '')) / 1000);
  const hint = `Check its pods: kubectl --namespace ${namespace} get pods --selector app.kubernetes.io/name=svc`;
  if (!holderIdentity) return fail('service', 'No leader', hint);
  if (ageSeconds > STALE_AFTER * (leaseDurationSeconds ?? 10))
    return fail('service', `The leader "${holderIdentity}" renewed its Lease ${ageSeconds} s ago`, hint);
  return ok('service', `The leader is "${holderIdentity}"`);
}

const isList = ({ status, body }: { readonly status: number; readonly body: unknown }): boolean =>
  status === 200 && Array.isArray(valueAt(body, 'items'));

async function checkReplicas(cluster: ClusterAccess): Promise<Check> {
  const { namespace } = cluster;
  const answer = await query(cluster, `/api/v1/namespaces/${namespace}/pods?labelSelector=${GATEWAYS}`);
  if (!isList(answer)) return ok('replicas', 'Not checked: these credentials may not list pods');
  const isReady = (pod: unknown): boolean =>
    tablesAt(pod, 'status', 'conditions').some(({ type, status }) => type === 'Ready' && status === 'True');
  const pods = tablesAt(answer.body, 'items');
  const waiting = pods.filter((pod) => !isReady(pod)).map((pod) => `"${String(valueAt(pod, 'metadata', 'name'))}"`);
  const found = `${pods.length - waiting.length} of ${pods.length} ready`;
  if (pods.length > 0 && waiting.length === 0) return ok('replicas', found);
  const hint = `See why: kubectl --namespace ${namespace} describe pods --selector app.kubernetes.io/name=svc`;
  if (pods.length === 0) return warn('replicas', 'No pod has the labels of the chart', hint);
  return (waiting.length === pods.length ? fail : warn)('replicas', `${found}; not ready: ${waiting.join(', ')}`, hint);
}

/** Counts the GPUs of device plugins and the nodes with labels for backends. */
async function checkNodes(cluster: ClusterAccess): Promise<Check> {
  const answer = await query(cluster, '/api/v1/nodes');
  if (!isList(answer)) return ok('nodes', 'Not checked: these credentials may not list nodes');
  const nodes = tablesAt(answer.body, 'items');
  const gpus = new Map<string, number>();
  const labels = new Map<string, number>();
  const count = (counts: Map<string, number>, key: string, more: number): void => void counts.set(key, (counts.get(key) ?? 0) + more);
  for (const node of nodes) {
    for (const [resource, amount] of Object.entries(tableAt(node, 'status', 'allocatable'))) {
      if (GPU_RESOURCE.test(resource) && Number(amount) > 0) count(gpus, resource, Number(amount));
    }
    for (const [label, value] of Object.entries(tableAt(node, 'metadata', 'labels'))) {
      if (label.startsWith(`${LABEL_PREFIX}/backend-`) && value === 'true') count(labels, label.slice(`${LABEL_PREFIX}/`.length), 1);
    }
  }
  const offered = [...gpus].map(([resource, amount]) => `${amount} × ${resource}`);
  const labelled = [...labels].map(([label, nodes]) => `${label} on ${nodes}`);
  const parts = [String(nodes.length), offered.length === 0 ? 'no GPU resources' : offered.join(', '), ...labelled];
  return ok('nodes', parts.join('; '));
}

async function checkAnswer(client: Client): Promise<Check> {
  const { version, slots, limits } = await client.request('GET', '/api/status', 'status');
  const [shared] = judgeLimits(limits);
  if (shared?.result === 'warn') return { ...shared, name: 'answer' };
  return ok('answer', `svc ${version} with ${slots.length} ${slots.length === 1 ? 'slot' : 'slots'}`);
}

/** Checks the images of the providers and backends that slots use. */
async function checkImages(client: Client): Promise<Check> {
  const [{ slots }, { providers }] = await Promise.all([
    client.request('GET', '/api/slots', 'slots'),
    client.request('GET', '/api/providers', 'providers'),
  ]);
  const ofSlots = slots.flatMap(({ name, status }) => {
    const cause = status.conditions.find(
      ({ type, status: value, reason }) => type !== 'SpecValid' && IMAGE_REASONS.has(reason) && value !== 'Unknown',
    );
    return cause === undefined ? [] : [`${name}: ${cause.message}`];
  });
  const used = new Set(slots.map(({ status }) => status.provider));
  const ofProviders = providers
    .filter(({ kind, available }) => used.has(kind) && !available)
    .map(({ kind, reason }) => `${kind}: ${reason}`);
  const problems = [...ofSlots, ...ofProviders];
  if (problems.length > 0)
    return fail('images', problems.join('; '), 'Set the images in the chart value "toolboxes", by provider and backend');
  const pairs = [...new Set(slots.map(({ status }) => [status.provider ?? 'unknown', status.backend].filter((part) => part).join('/')))];
  return ok('images', pairs.length === 0 ? 'None needed' : `Known for ${pairs.toSorted().join(', ')}`);
}

interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  /** What needs the right. */
  readonly use: 'everything' | 'edits' | 'kubectl';
}

const proxy = (verb: string, use: Right['use']): Right => ({ verb, group: '', resource: 'pods', subresource: 'proxy', use });
const slots = (verb: string): Right => ({ verb, group: SLOT_RESOURCE.group, resource: SLOT_RESOURCE.plural, use: 'kubectl' });

const RIGHTS: readonly Right[] = [
  { verb: 'get', group: 'coordination.k8s.io', resource: 'leases', use: 'everything' },
  proxy('get', 'everything'),
  proxy('create', 'edits'),
  proxy('update', 'edits'),
  proxy('delete', 'edits'),
  ...['get', 'list', 'create', 'patch', 'delete'].map(slots),
];

/** https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access */
export async function checkRights(cluster: ClusterAccess): Promise<Check> {
  const reviews = await Promise.all(RIGHTS.map(async (right) => ({ right, allowed: await isAllowed(cluster, right) })));
  if (reviews.every(({ allowed }) => allowed === undefined))
    return warn('rights', 'The API server did not answer', 'Check that "kubectl auth can-i --list" works with this context');
  const denied = reviews.filter(({ allowed }) => allowed === false).map(({ right }) => right);
  const missing = (use: Right['use']): string =>
    denied
      .filter((right) => right.use === use)
      .map(nameOf)
      .join(', ');
  const hint = `Get these rights in namespace "${cluster.namespace}"`;
  if (missing('everything') !== '') return fail('rights', `svcctl cannot reach the service: missing ${missing('everything')}`, hint);
  if (missing('edits') !== '') return warn('rights', `svcctl can read but not change slots: missing ${missing('edits')}`, hint);
  if (missing('kubectl') !== '')
    return warn('rights', `kubectl lacks rights that svcctl does not need: missing ${missing('kubectl')}`, hint);
  return ok('rights', 'svcctl and kubectl can read and change slots');
}

function nameOf({ verb, resource, subresource }: Right): string {
  return `"${verb}" "${resource}${subresource === undefined ? '' : `/${subresource}`}"`;
}

/** Undefined if there is no answer. */
async function isAllowed(cluster: ClusterAccess, { use: _use, ...attributes }: Right): Promise<boolean | undefined> {
  const answer = await query(cluster, '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { namespace: cluster.namespace, ...attributes } },
  });
  const allowed = valueAt(answer.body, 'status', 'allowed');
  return typeof allowed === 'boolean' ? allowed : undefined;
}

export interface QueryResult {
  /** 0 without an answer. */
  readonly status: number;
  readonly body: unknown;
  /** The message of an error. */
  readonly problem: string;
  /** Unix milliseconds on the clock of the API server. */
  readonly serverTime: number;
}

/** Sends a GET, or a POST if there is a body. Never throws. */
export async function query(cluster: ClusterAccess, path: string, body?: object): Promise<QueryResult> {
  const content = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  try {
    const response = await cluster.send({ method: body === undefined ? 'GET' : 'POST', path, ...content });
    const answer = parseJson(await response.text());
    const { message: problem = `status ${response.status}` } = tableAt(answer);
    return {
      status: response.status,
      body: answer,
      problem: String(problem),
      serverTime: Date.parse(response.header('date') ?? '') || Date.now(),
    };
  } catch (error) {
    return { status: 0, body: undefined, problem: messageOf(error), serverTime: Date.now() };
  }
}
