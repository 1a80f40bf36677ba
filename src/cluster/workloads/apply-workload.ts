/** Applies the Deployment of a workload and the objects beside it: creates them, or updates them in place. */
import type { KubeApi, KubeManifest, KubeObject, OwnerReference, ResourceType } from '../client/ports.ts';
import {
  CLAIMS,
  CONFIG_MAPS,
  DEPLOYMENTS,
  DISRUPTION_BUDGETS,
  PODS,
  SERVICES,
  RESOURCE_CLAIM_TEMPLATES,
} from '../client/decide/resource-path.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { WorkloadId, type SlotName } from '../../schema/words/names.ts';
import type { Reason } from '../../schema/status/reasons.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { usesDra, type GpuAllocation } from './decide/container-devices.ts';
import { appliedSpec, recordApplied, restoreApplied, type DeploymentSpec } from './decide/applied-spec.ts';
import { findDifferences, isUpToDate, overriddenEnv, withEnv } from './decide/template-drift.ts';
import { isReady, isTerminating, parseDeployment, type DeploymentFacts, type PodFacts } from './decide/pod-facts.ts';
import { deploymentManifest, deploymentSpec, kubeObjects, type KubeContext, type KubeObjects } from './decide/render-deployment.ts';
import { isCrashed } from './decide/kubelet-restarts.ts';
import type { KubeSettings, KubeWorkload } from './decide/object-names.ts';
import { ABORTED, type FindAllocation, type KubeWriter } from './write-objects.ts';
import type { KubeReflectors } from './workload-reflectors.ts';

export interface KubeApplyDeps {
  readonly api: Pick<KubeApi, 'get'>;
  readonly reflectors: KubeReflectors;
  readonly writer: KubeWriter;
  readonly settings: KubeSettings;
  readonly ownerOf: (slot: SlotName) => OwnerReference | undefined;
  readonly allocation: FindAllocation;
  readonly podsOf: (id: WorkloadId) => readonly PodFacts[];
}

interface Application extends KubeApplyDeps {
  readonly workload: KubeWorkload;
  readonly owner: OwnerReference;
  readonly signal: AbortSignal;
}

export async function applyKubeWorkload(deps: KubeApplyDeps, workload: KubeWorkload, signal: AbortSignal): Promise<Result<WorkloadId>> {
  if (signal.aborted) return ABORTED;
  const owner = deps.ownerOf(workload.slot);
  if (owner === undefined) return fail('retry', 'SlotGone', `The slot "${workload.slot}" was deleted, so nothing is started for it`);
  const application = { ...deps, workload, owner, signal };
  if (!deps.reflectors.deployments.items().has(workload.name)) {
    const created = await create(application, false);
    if (created.ok || !TAKEN_REASONS.has(created.failure.reason)) return created;
  }
  const present = await findPresent(application);
  if (!present.ok) return present;
  return present.value === undefined ? await create(application) : await updateInPlace(application, present.value);
}

/** An apply that is not forced takes over no Deployment of another client: its fields differ, or cannot be changed. */
const TAKEN_REASONS: ReadonlySet<Reason> = new Set(['Conflict', 'Invalid']);

/** The copy lacks other clients' Deployments, so the server is asked. */
async function findPresent({ api, reflectors, workload, signal }: Application): Promise<Result<DeploymentFacts | undefined>> {
  const { name, slot, revision } = workload;
  const copied = reflectors.deployments.items().get(name);
  const found = copied === undefined ? await api.get(DEPLOYMENTS, name, signal) : ok(copied);
  if (!found.ok) return found.failure.reason === 'NotFound' ? ok(undefined) : found;
  const facts = parseDeployment(found.value);
  if (facts?.slot !== slot || facts.revision !== revision) {
    const message = `The Deployment "${name}" has the name of this workload but does not belong to it: remove it with "kubectl delete deployment ${name}"`;
    return fail('retry', 'NameTaken', message);
  }
  return facts.deleting ? beingDeleted(name) : ok(facts);
}

const beingDeleted = (name: string): Result<never> =>
  fail('retry', 'NameTaken', `The Deployment "${name}" is being deleted: wait until it is gone`);

async function create(application: Application, force = true): Promise<Result<WorkloadId>> {
  const { workload, owner, settings, signal } = application;
  const allocation = await application.allocation(workload.cluster, signal);
  if (!allocation.ok) return allocation;
  const objects = kubeObjects(workload, { settings, owner, allocation: allocation.value });
  const failed = await applyDependencies(application, objects);
  if (failed !== undefined) return failed;
  return await withBudget(application, objects, async () =>
    idOf(await application.writer.apply(DEPLOYMENTS, objects.deployment, signal, force)),
  );
}

/** Keeps the pod template as it was applied, so that healthy pods are not restarted. */
async function updateInPlace(application: Application, facts: DeploymentFacts): Promise<Result<WorkloadId>> {
  const { workload, owner, settings, writer, signal } = application;
  const pods = application.podsOf(facts.id).filter((pod) => !isTerminating(pod));
  const crashed = pods.filter(isCrashed);
  const applied = appliedSpec(facts);
  // A workload keeps its way of requesting GPUs for life.
  const allocation =
    applied === undefined
      ? await application.allocation(workload.cluster, signal)
      : ok<GpuAllocation>(usesDra(applied) ? 'dra' : 'device-plugin');
  if (!allocation.ok) return allocation;
  const context: KubeContext = { settings, owner, allocation: allocation.value };
  const rendered = deploymentSpec(workload, context);
  const changed = applied !== undefined && !isSameValue(recordApplied(applied)['template'], recordApplied(rendered)['template']);
  if (changed && crashed.length > 0 && !pods.some(isReady)) {
    // No pod is worth keeping, and the new template may work. In a roll-out, its pods would wait for the old ones.
    const removed = await writer.remove(DEPLOYMENTS, { name: facts.name, uid: facts.id }, {}, signal);
    return removed.ok ? await create(application) : removed;
  }
  const objects = kubeObjects(workload, context);
  const failed = await applyDependencies(application, objects);
  if (failed !== undefined) return failed;
  const spec = { ...(restoreApplied(applied, [facts.spec, rendered]) ?? rendered), replicas: workload.cluster.replicas };
  const env = overriddenEnv(workload, facts);
  const written = await withBudget(application, objects, async () => await applyDeployment(application, facts, withEnv(spec, env)));
  // Replacing a pod would end the back-off of its kubelet, and an autoscaler may scale a slot again and again.
  const onlyScaled = !changed && applied !== undefined && applied.replicas !== workload.cluster.replicas;
  if (!written.ok || onlyScaled) return written;
  for (const { metadata } of crashed) {
    const removed = await writer.remove(PODS, metadata, { graceSeconds: 1 }, signal);
    if (!removed.ok) return removed;
  }
  return written;
}

async function applyDeployment(
  { writer, workload, owner, signal }: Application,
  facts: DeploymentFacts,
  spec: DeploymentSpec,
): Promise<Result<WorkloadId>> {
  const manifest = deploymentManifest(workload, owner, spec);
  const { labels, ownerReferences } = manifest.metadata;
  const applied = appliedSpec(facts);
  const isRecorded = applied !== undefined && isSameValue(recordApplied(applied), recordApplied(spec));
  const isCurrent = isRecorded && findDifferences({ labels, ownerReferences, spec }, facts).length === 0;
  return isCurrent ? ok(facts.id) : idOf(await writer.apply(DEPLOYMENTS, manifest, signal));
}

async function applyDependencies(application: Application, objects: KubeObjects): Promise<Result<never> | undefined> {
  const { writer, signal, reflectors } = application;
  const { configMap, service, claim, claimTemplate } = objects;
  const written = await Promise.all([
    applyIfChanged(application, CONFIG_MAPS, configMap, reflectors.configMaps.items().get(configMap.metadata.name)),
    applyIfChanged(application, SERVICES, service, reflectors.services.items().get(service.metadata.name)),
    claim === undefined ? UNCHANGED : writer.apply(CLAIMS, claim, signal),
    claimTemplate === undefined ? UNCHANGED : writer.apply(RESOURCE_CLAIM_TEMPLATES, claimTemplate, signal),
  ]);
  return written.find((result) => !result.ok);
}

/** No pod needs its budget before it is ready, so both are written at the same time. */
async function withBudget<T>(
  { writer, signal }: Application,
  { disruptionBudget }: KubeObjects,
  write: () => Promise<Result<T>>,
): Promise<Result<T>> {
  if (disruptionBudget === undefined) return await write();
  const apply = async () => orNotServed(await writer.apply(DISRUPTION_BUDGETS, disruptionBudget, signal));
  const [budget, written] = await Promise.all([apply(), write()]);
  return budget.ok ? written : budget;
}

/** A server without this type has no budgets; pods are evicted there without them. */
const orNotServed = (written: Result<KubeObject>): Result<KubeObject | undefined> =>
  written.ok || written.failure.reason !== 'NotFound' ? written : UNCHANGED;

/** Replaces an object whose change the server rejects, such as an immutable ConfigMap. */
async function applyIfChanged(
  { writer, signal }: Application,
  type: ResourceType,
  manifest: KubeManifest,
  live: KubeObject | undefined,
): Promise<Result<unknown>> {
  if (isUpToDate(manifest, live)) return UNCHANGED;
  const written = await writer.apply(type, manifest, signal);
  if (written.ok || written.failure.reason !== 'Invalid' || live === undefined) return written;
  const removed = await writer.remove(type, live.metadata, {}, signal);
  return removed.ok ? await writer.apply(type, manifest, signal) : removed;
}

const UNCHANGED = ok(undefined);

function idOf(written: Result<KubeObject>): Result<WorkloadId> {
  if (!written.ok) return written;
  const { name, uid, deletionTimestamp } = written.value.metadata;
  return deletionTimestamp === undefined ? ok(WorkloadId.parse(uid)) : beingDeleted(name);
}
