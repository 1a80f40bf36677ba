/**
 * Stops a workload: its Deployment is scaled to zero, and removed once the cluster has done that and its pods
 * terminate, which exit when their requests have been answered. Removed first, it would leave them to the garbage
 * collector, minutes later; until then its ReplicaSet would replace a pod that was removed by name.
 */
import type { KubeObject } from '../client/ports.ts';
import { CONFIG_MAPS, DEPLOYMENTS, RESOURCE_CLAIM_TEMPLATES } from '../client/decide/resource-path.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { WorkloadId } from '../../schema/words/names.ts';
import { LABELS } from '../../schema/pod/kube-fields.ts';
import { isImmediate } from './decide/render-pod.ts';
import { usesDra } from './decide/container-devices.ts';
import { isOver, isTerminating, parseDeployment, type DeploymentFacts, type PodFacts } from './decide/pod-facts.ts';
import { revisionedName } from './decide/object-names.ts';
import type { KeyedLock } from '../../platform/semaphore.ts';
import type { KubeReflectors } from './workload-reflectors.ts';
import type { KubeApplyDeps } from './apply-workload.ts';
import { ABORTED } from './write-objects.ts';
import { sleep } from '../../platform/clock.ts';

interface KubeStopDeps extends Pick<KubeApplyDeps, 'reflectors' | 'writer' | 'podsOf'> {
  /** One writer per slot, so that the objects of a new workload are not removed as leftovers. */
  readonly lock: KeyedLock;
}

/** Time for the cluster to remove pods after their grace period. */
const CLEANUP_MS = 30_000;
/** Pods of other workloads change too, and with thousands of pods each look takes some milliseconds. */
const LOOK_GAP_MS = 200;
/** Time for Kubernetes to act on the Deployment. Later, its stop is repeated. */
const SCALED_WITHIN_MS = 30_000;
const CHECK_CONTROLLERS = 'see whether "kube-controller-manager" runs and keeps up';
/** Time for Kubernetes to terminate the pods of a Deployment without replicas. Later, they are removed by name. */
const TERMINATED_WITHIN_MS = 5000;

export async function stopKubeWorkload(deps: KubeStopDeps, id: WorkloadId, graceMs: number, signal: AbortSignal): Promise<Result<void>> {
  if (signal.aborted) return ABORTED;
  // Looked up before the Deployment is removed, so that its pods are still known afterwards.
  const [newest] = deps.podsOf(id);
  const object = [...deps.reflectors.deployments.items().values()].find(({ metadata }) => metadata.uid === id);
  const facts = object === undefined ? undefined : parseDeployment(object);
  const slot = facts?.slot ?? newest?.metadata.labels[LABELS.slot];
  if (facts !== undefined) {
    const scaled = await deps.lock(facts.slot, async () => await deps.writer.scaleToZero(facts.name, signal));
    const ending = scaled.ok ? await awaitScaledDown(deps, facts, graceMs, signal) : scaled;
    if (!ending.ok) return ending;
    const removed = await deps.lock(facts.slot, async () => await removeObjects(deps, facts, signal));
    if (!removed.ok) return removed;
  }
  if (slot !== undefined) await deps.lock(slot, async () => await removeUnusedConfigMaps(deps, slot, signal));
  return await awaitPods(deps, { id, graceMs, areDone: (pods) => pods.length === 0 }, signal);
}

async function awaitScaledDown(
  deps: KubeStopDeps,
  { id, name }: DeploymentFacts,
  graceMs: number,
  signal: AbortSignal,
): Promise<Result<void>> {
  const until = performance.now() + SCALED_WITHIN_MS;
  for (;;) {
    const ending = await awaitPods(deps, { id, graceMs, areDone: (pods) => pods.every(isLeaving) }, signal);
    const scaled = ending.ok ? await deps.writer.isScaled(name, signal) : ending;
    if (!scaled.ok) return scaled;
    if (scaled.value) return ok(undefined);
    if (performance.now() >= until)
      return fail('retry', 'StopFailed', `The cluster does not scale down Deployment "${name}": ${CHECK_CONTROLLERS}`);
    await sleep(LOOK_GAP_MS, signal);
  }
}

async function removeObjects({ writer }: KubeStopDeps, facts: DeploymentFacts, signal: AbortSignal): Promise<Result<void>> {
  const removed = await writer.remove(DEPLOYMENTS, { name: facts.name, uid: facts.id }, {}, signal);
  if (!removed.ok || !usesDra(facts.spec)) return removed;
  return await writer.remove(RESOURCE_CLAIM_TEMPLATES, { name: revisionedName(facts) }, {}, signal);
}

/** Removes ConfigMaps whose Deployment is gone. A failure does no harm: they are removed together with the slot. */
async function removeUnusedConfigMaps({ reflectors, writer }: KubeStopDeps, slot: string, signal: AbortSignal): Promise<void> {
  const inSlot = ({ metadata }: KubeObject): boolean => metadata.labels?.[LABELS.slot] === slot;
  const deployments = [...reflectors.deployments.items().values()].filter(inSlot).flatMap((object) => parseDeployment(object) ?? []);
  const used = new Set(deployments.map(revisionedName));
  const unused = [...reflectors.configMaps.items().values()].filter((object) => inSlot(object) && !used.has(object.metadata.name));
  for (const { metadata } of unused) await writer.remove(CONFIG_MAPS, metadata, {}, signal);
}

/** A ReplicaSet leaves pods that have failed or were evicted. */
const isLeaving = (pod: PodFacts): boolean => isTerminating(pod) || isOver(pod);

interface AwaitedPods {
  readonly id: WorkloadId;
  readonly graceMs: number;
  readonly areDone: (pods: readonly PodFacts[]) => boolean;
}

async function awaitPods(deps: KubeStopDeps, { id, graceMs, areDone }: AwaitedPods, signal: AbortSignal): Promise<Result<void>> {
  const immediate = isImmediate(graceMs);
  const startedAt = performance.now();
  // With zero, the API server would delete the pod's object while its processes still run.
  const graceSeconds = immediate ? Math.max(1, Math.ceil(graceMs / 1000)) : undefined;
  const terminated = new Set<string>();
  for (;;) {
    if (signal.aborted) return ABORTED;
    const pods = deps.podsOf(id);
    if (areDone(pods)) return ok(undefined);
    const waitedMs = performance.now() - startedAt;
    const due = pods.filter(
      (pod) => !terminated.has(pod.metadata.uid) && (isTerminating(pod) ? immediate : waitedMs > TERMINATED_WITHIN_MS),
    );
    for (const { metadata } of due) {
      terminated.add(metadata.uid);
      const written = await deps.writer.terminate(metadata, graceSeconds, signal);
      if (!written.ok) return written;
    }
    if (due.length > 0) continue;
    const ownMs = Math.max(...pods.map(({ spec }) => spec.terminationGracePeriodSeconds)) * 1000;
    const leftMs = (immediate ? graceMs + TERMINATED_WITHIN_MS : ownMs) + CLEANUP_MS - waitedMs;
    if (leftMs <= 0) return stopTimedOut(pods);
    const withinMs = immediate || !pods.every(isTerminating) ? Math.min(leftMs, TERMINATED_WITHIN_MS) : leftMs;
    await Promise.all([nextPodChange(deps.reflectors, withinMs, signal), sleep(LOOK_GAP_MS, signal)]);
  }
}

function stopTimedOut(pods: readonly PodFacts[]): Result<never> {
  const pod = pods.find((each) => !isTerminating(each)) ?? pods[0];
  if (pod !== undefined && !isTerminating(pod)) {
    const found = `The cluster replaces the pod "${pod.metadata.name}" of a Deployment that was removed`;
    return fail('retry', 'StopFailed', `${found}: ${CHECK_CONTROLLERS}`);
  }
  const node = pod?.spec.nodeName === undefined ? 'its node' : `node "${pod.spec.nodeName}"`;
  const fix = `inspect ${node} with "kubectl describe node", or remove it from the cluster if it is lost for good`;
  return fail('retry', 'StopFailed', `The pod "${pod?.metadata.name}" does not terminate: ${fix}`);
}

async function nextPodChange({ pods }: KubeReflectors, withinMs: number, signal: AbortSignal): Promise<void> {
  const changed = new AbortController();
  const ended = AbortSignal.any([signal, changed.signal]);
  pods.changes(() => changed.abort(), ended);
  await sleep(withinMs, ended);
  changed.abort();
}
