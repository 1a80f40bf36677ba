/** Brings a workload's objects to what they should be: makes them, or inPlace them in place. */
import type { KubeApi, KubeManifest, KubeObject, OwnerReference, ResourceType } from '../client/ports.ts';
import { CLAIMS, CONFIG_MAPS, DEPLOYMENTS, PODS, RESOURCE_CLAIM_TEMPLATES, SERVICES } from '../client/resource-types.ts';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import { WorkloadId } from '../../schema/names.ts';
import type { SlotName } from '../../schema/names.ts';
import { isSameValue } from '../../schema/same-value.ts';
import type { GpuAllocation } from './decide/kube-devices.ts';
import { findDifferences } from './decide/kube-difference.ts';
import { appliedSpec, isAsWanted, overriddenEnv, withEnv } from './decide/kube-drift.ts';
import { isReady, isTerminating, readDeployment } from './decide/kube-facts.ts';
import type { DeploymentFacts, PodFacts } from './decide/kube-facts.ts';
import { deploymentManifest, deploymentSpec, kubeObjects } from './decide/kube-objects.ts';
import type { DeploymentSpec, KubeContext, KubeObjects } from './decide/kube-objects.ts';
import { isCrashed } from './decide/kube-phase.ts';
import type { KubeSettings, KubeWorkload } from './decide/kube-pod.ts';
import type { FindAllocation } from './kube-allocation.ts';
import type { KubeReflectors } from './kube-reflectors.ts';
import { GIVEN_UP } from './kube-writer.ts';
import type { KubeWriter } from './kube-writer.ts';

export interface KubeApplyDeps {
  readonly api: Pick<KubeApi, 'get'>;
  readonly reflectors: KubeReflectors;
  readonly writer: KubeWriter;
  readonly settings: KubeSettings;
  readonly ownerOf: (slot: SlotName) => OwnerReference | undefined;
  readonly allocation: FindAllocation;
  readonly podsOf: (id: WorkloadId) => readonly PodFacts[];
}

interface Present {
  readonly object: KubeObject;
  readonly facts: DeploymentFacts;
}

export async function applyKubeWorkload(deps: KubeApplyDeps, workload: KubeWorkload, signal: AbortSignal): Promise<Result<WorkloadId>> {
  if (signal.aborted) return GIVEN_UP;
  const owner = deps.ownerOf(workload.slot);
  if (owner === undefined) {
    return fail('retry', 'SlotGone', `The slot "${workload.slot}" is not in the cluster any more: nothing is started for it`);
  }
  const present = await findPresent(deps, workload, signal);
  if (!present.ok) return present;
  if (present.value === undefined) return await create(deps, workload, owner, signal);
  return await mend(deps, present.value, workload, owner, signal);
}

/** Looked for on the server where the copy has none: it has no foreign ones, and a server-side apply would take one over. */
async function findPresent(
  { api, reflectors }: KubeApplyDeps,
  workload: KubeWorkload,
  signal: AbortSignal,
): Promise<Result<Present | undefined>> {
  const copied = reflectors.deployments.items().get(workload.name);
  const found = copied === undefined ? await api.get(DEPLOYMENTS, workload.name, signal) : ok(copied);
  if (!found.ok) return found.failure.reason === 'NotFound' ? ok(undefined) : found;
  const object = found.value;
  const facts = readDeployment(object);
  if (facts?.slot !== workload.slot || facts.revision !== workload.revision) return nameTaken(workload.name);
  if (facts.deleting) return fail('retry', 'NameTaken', `Wait until the Deployment "${workload.name}" is gone: it is being removed`);
  return ok({ object, facts });
}

async function create(
  deps: KubeApplyDeps,
  workload: KubeWorkload,
  owner: OwnerReference,
  signal: AbortSignal,
): Promise<Result<WorkloadId>> {
  const allocation = await deps.allocation(workload.cluster, signal);
  if (!allocation.ok) return allocation;
  const objects = kubeObjects(workload, { settings: deps.settings, owner, allocation: allocation.value });
  const failed = await writeAround(deps, objects, signal);
  if (failed !== undefined) return failed;
  return idOf(await deps.writer.apply(DEPLOYMENTS, objects.deployment, signal));
}

/** In place: pods that run well are not restarted, so that their template stays as it was applied. */
async function mend(
  deps: KubeApplyDeps,
  { object, facts }: Present,
  workload: KubeWorkload,
  owner: OwnerReference,
  signal: AbortSignal,
): Promise<Result<WorkloadId>> {
  const pods = deps.podsOf(facts.id).filter((pod) => !isTerminating(pod));
  const crashed = pods.filter(isCrashed);
  const applied = appliedSpec(facts);
  const allocation = applied === undefined ? await deps.allocation(workload.cluster, signal) : ok(allocationIn(applied));
  if (!allocation.ok) return allocation;
  const context: KubeContext = { settings: deps.settings, owner, allocation: allocation.value };
  const rendered = deploymentSpec(workload, context);
  const changed = applied !== undefined && !isSameValue(applied['template'], rendered['template']);
  if (changed && crashed.length > 0 && !pods.some(isReady)) {
    // Nothing runs that could be kept: with what is rendered now it may come up. Not by a roll-out, whose new pods would wait for the old ones.
    const removed = await deps.writer.remove(DEPLOYMENTS, object, {}, signal);
    return removed.ok ? await create(deps, workload, owner, signal) : removed;
  }
  const failed = await writeAround(deps, kubeObjects(workload, context), signal);
  if (failed !== undefined) return failed;
  const kept = { ...(applied ?? rendered), replicas: workload.cluster.replicas };
  const written = await writeDeployment(deps, facts, workload, owner, withEnv(kept, overriddenEnv(workload, facts)), signal);
  if (!written.ok) return written;
  for (const { metadata } of crashed) {
    const replaced = await deps.writer.remove(PODS, { metadata: { name: metadata.name, uid: metadata.uid } }, { graceSeconds: 1 }, signal);
    if (!replaced.ok) return replaced;
  }
  return written;
}

async function writeDeployment(
  { writer }: KubeApplyDeps,
  facts: DeploymentFacts,
  workload: KubeWorkload,
  owner: OwnerReference,
  spec: DeploymentSpec,
  signal: AbortSignal,
): Promise<Result<WorkloadId>> {
  const manifest = deploymentManifest(workload, owner, spec);
  const { labels, ownerReferences } = manifest.metadata;
  const same = findDifferences({ labels, ownerReferences, spec }, facts).length === 0;
  const noted = isSameValue(appliedSpec(facts), spec);
  return same && noted ? ok(facts.id) : idOf(await writer.apply(DEPLOYMENTS, manifest, signal));
}

/** What the pods need is there before they are. */
async function writeAround(deps: KubeApplyDeps, objects: KubeObjects, signal: AbortSignal): Promise<Result<never> | undefined> {
  const { configMaps, services } = deps.reflectors;
  const written = await Promise.all([
    writeUnlessThere(deps, CONFIG_MAPS, objects.configMap, configMaps.items().get(objects.configMap.metadata.name), signal),
    writeUnlessThere(deps, SERVICES, objects.service, services.items().get(objects.service.metadata.name), signal),
    objects.claim === undefined ? DONE : deps.writer.apply(CLAIMS, objects.claim, signal),
    objects.claimTemplate === undefined ? DONE : deps.writer.apply(RESOURCE_CLAIM_TEMPLATES, objects.claimTemplate, signal),
  ]);
  return written.find((result) => !result.ok);
}

/** What cannot be altered into what it should be, such as the contents of an environment, is made anew. */
async function writeUnlessThere(
  { writer }: KubeApplyDeps,
  type: ResourceType,
  manifest: KubeManifest,
  live: KubeObject | undefined,
  signal: AbortSignal,
): Promise<Result<unknown>> {
  if (isAsWanted(manifest, live)) return DONE;
  const written = await writer.apply(type, manifest, signal);
  if (written.ok || written.failure.reason !== 'Invalid' || live === undefined) return written;
  const removed = await writer.remove(type, live, {}, signal);
  return removed.ok ? await writer.apply(type, manifest, signal) : removed;
}

const DONE = ok(undefined);

const idOf = (written: Result<KubeObject>): Result<WorkloadId> => (written.ok ? ok(WorkloadId.parse(written.value.metadata.uid)) : written);

/** The way GPUs were asked for stays the same for the life of a workload. */
const allocationIn = (applied: DeploymentSpec): GpuAllocation =>
  JSON.stringify(applied).includes('"resourceClaimTemplateName"') ? 'dra' : 'device-plugin';

const nameTaken = (name: string): Result<never> =>
  fail(
    'retry',
    'NameTaken',
    `Remove the Deployment "${name}" with "kubectl delete deployment ${name}": it is in the way and is not the one wanted`,
  );
