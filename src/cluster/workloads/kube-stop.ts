/** Ends a workload: its Deployment goes at once, its pods when the requests they have are answered. */
import { setTimeout as pause } from 'node:timers/promises';
import type { KubeObject } from '../client/ports.ts';
import { CONFIG_MAPS, DEPLOYMENTS, RESOURCE_CLAIM_TEMPLATES } from '../client/resource-types.ts';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import type { WorkloadId } from '../../schema/names.ts';
import { LABELS } from '../../schema/object-labels.ts';
import { isHurried } from './decide/kube-drain.ts';
import { isTerminating, readDeployment } from './decide/kube-facts.ts';
import type { DeploymentFacts, PodFacts } from './decide/kube-facts.ts';
import { revisionedName } from './decide/kube-names.ts';
import type { KeyedLock } from '../../platform/keyed-lock.ts';
import type { KubeReflectors } from './kube-reflectors.ts';
import { GIVEN_UP } from './kube-writer.ts';
import type { KubeWriter } from './kube-writer.ts';

export interface KubeStopDeps {
  readonly reflectors: KubeReflectors;
  readonly writer: KubeWriter;
  readonly podsOf: (id: WorkloadId) => readonly PodFacts[];
  /** One writer a slot: what is made for a new workload is not taken for something left behind. */
  readonly lock: KeyedLock;
}

/** What the cluster itself needs to end pods, beyond the time they are given. */
const CLEANUP_MS = 30_000;
/** Pods of others change too, and with thousands of them a look at all costs some milliseconds. */
const LOOK_GAP_MS = 200;
/** A pod whose Deployment is gone is told to end soon; one that is not by then has somebody else's finger in it. */
const TOLD_WITHIN_MS = 5000;

export async function stopKubeWorkload(deps: KubeStopDeps, id: WorkloadId, graceMs: number, signal: AbortSignal): Promise<Result<void>> {
  if (signal.aborted) return GIVEN_UP;
  // Before the Deployment goes, so that its pods are known by it afterwards.
  const [newest] = deps.podsOf(id);
  const object = [...deps.reflectors.deployments.items().values()].find(({ metadata }) => metadata.uid === id);
  const facts = object === undefined ? undefined : readDeployment(object);
  const slot = facts?.slot ?? newest?.metadata.labels[LABELS.slot];
  if (object !== undefined && facts !== undefined) {
    const removed = await deps.lock(facts.slot, async () => await removeObjects(deps, object, facts, signal));
    if (!removed.ok) return removed;
  }
  if (slot !== undefined) await deps.lock(slot, async () => await sweep(deps, slot, signal));
  return await untilPodsEnd(deps, id, graceMs, signal);
}

async function removeObjects(deps: KubeStopDeps, object: KubeObject, facts: DeploymentFacts, signal: AbortSignal): Promise<Result<void>> {
  const removed = await deps.writer.remove(DEPLOYMENTS, object, {}, signal);
  if (!removed.ok) return removed;
  if (!JSON.stringify(facts.spec).includes('"resourceClaimTemplateName"')) return removed;
  return await deps.writer.remove(RESOURCE_CLAIM_TEMPLATES, { metadata: { name: revisionedName(facts) } }, {}, signal);
}

/** Environments of workloads of this slot that are gone, whoever removed them. The slot's end would remove them too, so that a failure does no harm. */
async function sweep({ reflectors, writer }: KubeStopDeps, slot: string, signal: AbortSignal): Promise<void> {
  const used = new Set(
    [...reflectors.deployments.items().values()].flatMap((object) => {
      const facts = object.metadata.labels?.[LABELS.slot] === slot ? readDeployment(object) : undefined;
      return facts === undefined ? [] : [revisionedName(facts)];
    }),
  );
  const left = [...reflectors.configMaps.items().values()].filter(
    ({ metadata: { name, labels } }) => labels?.[LABELS.slot] === slot && !used.has(name),
  );
  for (const object of left) await writer.remove(CONFIG_MAPS, object, {}, signal);
}

async function untilPodsEnd(deps: KubeStopDeps, id: WorkloadId, graceMs: number, signal: AbortSignal): Promise<Result<void>> {
  const hurried = isHurried(graceMs);
  const begun = performance.now();
  const told = new Set<string>();
  for (;;) {
    if (signal.aborted) return GIVEN_UP;
    const pods = deps.podsOf(id);
    if (pods.length === 0) return ok(undefined);
    const waitedMs = performance.now() - begun;
    if (hurried) {
      const due = pods.filter((pod) => !told.has(pod.metadata.uid) && (isTerminating(pod) || waitedMs > TOLD_WITHIN_MS));
      for (const { metadata } of due) {
        told.add(metadata.uid);
        // Zero would forget the pod while it still runs.
        const ended = await deps.writer.hurry(
          { metadata: { name: metadata.name, uid: metadata.uid } },
          Math.max(1, Math.ceil(graceMs / 1000)),
          signal,
        );
        if (!ended.ok) return ended;
      }
      if (due.length > 0) continue;
    }
    const ownMs = Math.max(...pods.map(({ spec }) => spec.terminationGracePeriodSeconds)) * 1000;
    const leftMs = (hurried ? graceMs + TOLD_WITHIN_MS : ownMs) + CLEANUP_MS - waitedMs;
    if (leftMs <= 0) return stillThere(pods);
    await Promise.all([change(deps.reflectors, Math.min(leftMs, hurried ? TOLD_WITHIN_MS : leftMs), signal), pause(LOOK_GAP_MS)]);
  }
}

function stillThere(pods: readonly PodFacts[]): Result<never> {
  const [pod] = pods;
  const node = pod?.spec.nodeName === undefined ? 'its node' : `node "${pod.spec.nodeName}"`;
  return fail(
    'retry',
    'StopFailed',
    `Look at ${node} with "kubectl describe node": the pod "${pod?.metadata.name}" does not end. If the node is lost for good, remove it from the cluster`,
  );
}

/** Resolves at the next change of a pod, after a while, or when the signal aborts. */
async function change({ pods }: KubeReflectors, withinMs: number, signal: AbortSignal): Promise<void> {
  const done = new AbortController();
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, withinMs);
    const end = (): void => {
      clearTimeout(timer);
      resolve();
    };
    pods.changes(end, AbortSignal.any([signal, done.signal]));
    signal.addEventListener('abort', end, { once: true, signal: done.signal });
    if (signal.aborted) end();
  });
  done.abort();
}
