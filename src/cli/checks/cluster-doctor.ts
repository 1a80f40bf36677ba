/** What `svcctl doctor` looks at where the service runs in a cluster. */
import { ProvidersShape, SlotsShape, StatusShape } from '../connect/api-shapes.ts';
import { checkApi, checkDefinition, checkLeader, checkNodes, checkReplicas } from './cluster-checks.ts';
import type { ClusterAccess } from '../connect/cluster-access.ts';
import { checkRights } from './cluster-rights.ts';
import { createClusterTransport } from '../connect/cluster-transport.ts';
import { createClient, type Client } from '../connect/client.ts';
import type { Check } from './doctor-checks.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { Reason } from '../../schema/reasons.ts';

/** Conditions that say that an image is the waitingReason. */
const IMAGE_REASONS: ReadonlySet<string> = new Set([
  'ImageUnknown',
  'ImagePullBackOff',
  'ErrImagePull',
  'InvalidImageName',
  'ImageInspectError',
  'ErrImageNeverPull',
] satisfies Reason[]);

export async function lookAtCluster(cluster: ClusterAccess, now: () => number): Promise<readonly Check[]> {
  const api = await checkApi(cluster);
  if (api.result === 'fail') return [api];
  const [definition, leader, replicas, rights, nodes] = await Promise.all([
    checkDefinition(cluster),
    checkLeader(cluster),
    checkReplicas(cluster),
    checkRights(cluster),
    checkNodes(cluster),
  ]);
  const before = [api, definition, rights, nodes, leader];
  // without a leader, an answer would be waited for in vain
  if (leader.result === 'fail') return leader.found.startsWith('there is none') ? before : [...before, replicas];
  const client = createClient(createClusterTransport({ cluster, now, onWait: () => undefined }));
  return [...before, replicas, ...(await Promise.all([checkAnswer(client), checkImages(client)]))];
}

async function checkAnswer(client: Client): Promise<Check> {
  return check('answer', async () => {
    const { version, slots } = await client.request('GET', '/api/status', StatusShape);
    return {
      name: 'answer',
      result: 'ok',
      found: `svc ${version} with ${slots.length} ${slots.length === 1 ? 'slot' : 'slots'}`,
      hint: '',
    };
  });
}

/** Of the providers and backends that slots use. */
async function checkImages(client: Client): Promise<Check> {
  return check('images', async () => {
    const [{ slots }, { providers }] = await Promise.all([
      client.request('GET', '/api/slots', SlotsShape),
      client.request('GET', '/api/providers', ProvidersShape),
    ]);
    const problems = slots.flatMap(({ name, status }) => {
      const told = status.conditions.find(
        ({ type, status: value, reason }) => type !== 'SpecValid' && IMAGE_REASONS.has(reason) && value !== 'Unknown',
      );
      return told === undefined ? [] : [`${name}: ${told.message}`];
    });
    const used = [...new Set(slots.flatMap(({ status }) => status.provider ?? []))];
    const missing = providers
      .filter(({ kind, available }) => used.includes(kind) && !available)
      .map(({ kind, reason }) => `${kind}: ${reason}`);
    const found = [...problems, ...missing];
    const hint = 'Name images in the chart’s value "toolboxes", by provider and backend';
    if (found.length > 0) return { name: 'images', result: 'fail', found: found.join('; '), hint };
    const pairs = [...new Set(slots.map(({ status }) => `${status.provider ?? 'unknown'}/${status.backend ?? 'unknown'}`))];
    return {
      name: 'images',
      result: 'ok',
      found: pairs.length === 0 ? 'no slot needs one' : `known for ${pairs.toSorted().join(', ')}`,
      hint: '',
    };
  });
}

async function check(name: string, look: () => Promise<Check>): Promise<Check> {
  try {
    return await look();
  } catch (error) {
    const found = messageOf(error);
    const hint = error instanceof Error && 'hint' in error && typeof error.hint === 'string' ? error.hint : '';
    return { name, result: 'fail', found, hint };
  }
}
