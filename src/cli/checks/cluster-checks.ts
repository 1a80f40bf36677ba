/** What `svcctl doctor` checks in a cluster. */
import { z } from 'zod';
import { messageOf } from '../../platform/error-text.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { LABEL_PREFIX, CONTROLLER_LEASE } from '../../schema/pod/kube-fields.ts';
import { SLOT_RESOURCE } from '../../schema/slot/slot-resource.ts';
import { ProvidersAnswer, SlotsAnswer, StatusAnswer } from '../connect/api-answers.ts';
import { createClient, type Client } from '../connect/client.ts';
import type { ClusterAccess } from '../connect/cluster-access.ts';
import { createClusterTransport, LeaseSpec } from '../connect/cluster-transport.ts';
import { CliFailure } from '../output/exit-codes.ts';
import { fail, ok, warn, type Check } from './check.ts';
import { query } from './cluster-query.ts';
import { checkRights } from './cluster-rights.ts';

/** Kubernetes supports three minor versions (https://kubernetes.io/releases/version-skew-policy/). This is the oldest one the service supports. */
const MIN_MINOR = 29;
/** After so many times its duration without a renewal, a Lease has no holder. */
const STALE_AFTER = 2;
const GATEWAYS = encodeURIComponent('app.kubernetes.io/name=svc,app.kubernetes.io/component=gateway');
/** GPUs as the common device plugins name them. */
const GPU_RESOURCE = /^(?:nvidia\.com|amd\.com|gpu\.intel\.com|intel\.com)\/(?:gpu|i915|xe|mig-.+)/;
/** Reasons of conditions that are about a missing image. */
const IMAGE_REASONS = new Set([
  'ImageUnknown',
  'ImagePullBackOff',
  'ErrImagePull',
  'InvalidImageName',
  'ImageInspectError',
  'ErrImageNeverPull',
]);

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
  // Without a leader, the service would not answer.
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
  const { gitVersion = 'unknown', minor = '' } = z.looseObject({ gitVersion: z.string(), minor: z.string() }).partial().parse(answer.body);
  const found = `${gitVersion} at "${server}", namespace "${namespace}"`;
  const isOld = Number.parseInt(minor, 10) < MIN_MINOR;
  return isOld ? warn('cluster', found, `Use Kubernetes 1.${MIN_MINOR} or newer`) : ok('cluster', found);
}

/** Every authenticated user may list the kinds of a group. */
async function checkDefinition(cluster: ClusterAccess): Promise<Check> {
  const { group, version, plural } = SLOT_RESOURCE;
  const name = `${plural}.${group}`;
  const answer = await query(cluster, `/apis/${group}/${version}`);
  const resources = isTable(answer.body) && Array.isArray(answer.body['resources']) ? answer.body['resources'] : [];
  const has = (resource: string): boolean => resources.some((each: unknown) => isTable(each) && each['name'] === resource);
  const hint = `Install it: kubectl apply --server-side -f crds/${name}.yaml`;
  if (answer.status === 200 && has(plural)) {
    const missing = ['status', 'scale'].filter((part) => !has(`${plural}/${part}`));
    if (missing.length === 0) return ok('definition', `${name} serves ${version}`);
    return fail('definition', `${name} is outdated: it has no ${missing.join(' and no ')}`, hint);
  }
  if (answer.status === 404 || answer.status === 200) return fail('definition', `${name} does not serve ${version}`, hint);
  return warn('definition', `Could not be read: ${answer.problem}`, 'Check that "kubectl api-resources" works with this context');
}

const NOT_INSTALLED = 'Not installed';

async function checkLeader(cluster: ClusterAccess): Promise<Check> {
  const { namespace } = cluster;
  const answer = await query(cluster, `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${CONTROLLER_LEASE}`);
  if (answer.status === 404) {
    const hint = 'Choose the namespace of the service with -n, or install the chart helm/svc there';
    return fail('service', `${NOT_INSTALLED} in namespace "${namespace}"`, hint);
  }
  const parsed = LeaseSpec.safeParse(isTable(answer.body) ? answer.body['spec'] : undefined);
  if (answer.status !== 200 || !parsed.success) {
    return warn(
      'service',
      `Its Lease could not be read: ${answer.problem}`,
      'Ask for the right to "get" "leases" of "coordination.k8s.io"',
    );
  }
  const { holderIdentity, leaseDurationSeconds, renewTime } = parsed.data;
  const ageSeconds = Math.round((answer.serverTime - Date.parse(renewTime ?? '')) / 1000);
  const hint = `Check its pods: kubectl --namespace ${namespace} get pods --selector app.kubernetes.io/name=svc`;
  if (!holderIdentity) return fail('service', 'There is no leader', hint);
  if (ageSeconds > STALE_AFTER * (leaseDurationSeconds ?? 10)) {
    return fail('service', `The leader "${holderIdentity}" renewed its Lease ${ageSeconds} s ago`, hint);
  }
  return ok('service', `The leader is "${holderIdentity}"`);
}

const PodList = z.looseObject({
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string() }),
      status: z.looseObject({ conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).nullish() }).nullish(),
    }),
  ),
});

async function checkReplicas(cluster: ClusterAccess): Promise<Check> {
  const { namespace } = cluster;
  const answer = await query(cluster, `/api/v1/namespaces/${namespace}/pods?labelSelector=${GATEWAYS}`);
  const parsed = PodList.safeParse(answer.body);
  if (answer.status !== 200 || !parsed.success) return ok('replicas', 'Not checked: these credentials may not list pods');
  const isReady = ({ status }: (typeof parsed.data.items)[number]): boolean =>
    status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
  const pods = parsed.data.items;
  const waiting = pods.filter((pod) => !isReady(pod)).map(({ metadata }) => `"${metadata.name}"`);
  const found = `${pods.length - waiting.length} of ${pods.length} ready`;
  if (pods.length > 0 && waiting.length === 0) return ok('replicas', found);
  const hint = `See why: kubectl --namespace ${namespace} describe pods --selector app.kubernetes.io/name=svc`;
  if (pods.length === 0) return warn('replicas', 'No pod has the labels of the chart', hint);
  return (waiting.length === pods.length ? fail : warn)('replicas', `${found}; not ready: ${waiting.join(', ')}`, hint);
}

const NodeList = z.looseObject({
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ labels: z.record(z.string(), z.string()).nullish() }),
      status: z.looseObject({ allocatable: z.record(z.string(), z.string()).nullish() }).nullish(),
    }),
  ),
});

/** Counts the GPUs that device plugins offer and the nodes that are labelled for a backend. */
async function checkNodes(cluster: ClusterAccess): Promise<Check> {
  const answer = await query(cluster, '/api/v1/nodes');
  const parsed = NodeList.safeParse(answer.body);
  if (answer.status !== 200 || !parsed.success) return ok('nodes', 'Not checked: these credentials may not list nodes');
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
  const parts = [`${parsed.data.items.length}`, offered.length === 0 ? 'no GPU resources' : offered.join(', '), ...labelled];
  return ok('nodes', parts.join('; '));
}

async function checkAnswer(client: Client): Promise<Check> {
  const { version, slots } = await client.request('GET', '/api/status', StatusAnswer);
  return ok('answer', `svc ${version} with ${slots.length} ${slots.length === 1 ? 'slot' : 'slots'}`);
}

/** Checks the images of the providers and backends that slots use. */
async function checkImages(client: Client): Promise<Check> {
  const [{ slots }, { providers }] = await Promise.all([
    client.request('GET', '/api/slots', SlotsAnswer),
    client.request('GET', '/api/providers', ProvidersAnswer),
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
  if (problems.length > 0) {
    return fail('images', problems.join('; '), 'Set the images in the chart value "toolboxes", by provider and backend');
  }
  const pairs = [...new Set(slots.map(({ status }) => [status.provider ?? 'unknown', status.backend].filter((part) => part).join('/')))];
  return ok('images', pairs.length === 0 ? 'No slot needs one' : `Known for ${pairs.toSorted().join(', ')}`);
}
