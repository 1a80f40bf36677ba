/** The runtime that runs workloads as Deployments of a Kubernetes cluster. What is there is read from copies that watches keep up to date. */
import type { KubeApi, OwnerReference, Reflector, ResourceType } from '../client/ports.ts';
import { createRequestGate } from '../client/request-gate.ts';
import { CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES } from '../client/resource-types.ts';
import type { InPlaceRepair, Runtime, Workload } from '../../reconciler/ports.ts';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import type { SlotName } from '../../schema/names.ts';
import { appliedSpec, findAlteredObjects } from './decide/kube-drift.ts';
import { MODELS_TARGET } from './decide/kube-names.ts';
import { createKubeObserver } from './decide/kube-observe.ts';
import type { KubeObserver, KubeSight } from './decide/kube-observe.ts';
import type { KubeSettings, KubeWorkload } from './decide/kube-pod.ts';
import { createKeyedLock } from '../../platform/keyed-lock.ts';
import { createGpuAllocation } from './kube-allocation.ts';
import { applyKubeWorkload } from './kube-apply.ts';
import { readKubeLogs } from './kube-logs.ts';
import type { KubeReflectors } from './kube-reflectors.ts';
import { stopKubeWorkload } from './kube-stop.ts';
import { createPodWarnings } from './kube-pod-warnings.ts';
import { createKubeWriter, GIVEN_UP } from './kube-writer.ts';

export interface KubeRuntimeDeps {
  readonly api: KubeApi;
  /** Of `createKubeReflectors()`; started by the caller. */
  readonly reflectors: KubeReflectors;
  readonly settings: KubeSettings;
  /** The SlotSpec of a slot, which owns all that is made for it; undefined: it is gone. */
  readonly ownerOf: (slot: SlotName) => OwnerReference | undefined;
  /** Aborts when this replica may not write any more. */
  readonly term: () => AbortSignal;
  /** Unix milliseconds, on the clock of the reflectors. */
  readonly now: () => number;
}

/** A copy that lags this long because the server does not answer is taken for what is; then it is not known any more what is. */
const TRUSTED_FOR_MS = 30_000;
/** As many as there are requests at once: of thousands of workloads each is made whole before the next begins, and statuses get through in between. */
const APPLIES_AT_ONCE = 16;

const NEVER = new AbortController().signal;

export function createKubeRuntime(deps: KubeRuntimeDeps): Runtime {
  const { api, reflectors, settings, ownerOf, now } = deps;
  const observer = createKubeObserver();
  const lock = createKeyedLock();
  const gate = createRequestGate(APPLIES_AT_ONCE);
  const listed = new Set<Reflector>();
  for (const copy of Object.values<Reflector>({ ...reflectors })) void copy.ready(NEVER).then(() => listed.add(copy));
  const copies = new Map<ResourceType, Reflector>([
    [DEPLOYMENTS, reflectors.deployments],
    [SERVICES, reflectors.services],
    [CONFIG_MAPS, reflectors.configMaps],
    [PODS, reflectors.pods],
  ]);
  const writer = createKubeWriter({ api, copyOf: (type) => copies.get(type), term: deps.term });
  const allocation = createGpuAllocation(api, settings, now);
  const sight = (): KubeSight => ({
    deployments: reflectors.deployments.items(),
    services: reflectors.services.items(),
    configMaps: reflectors.configMaps.items(),
    pods: reflectors.pods.items(),
    warnings: warnings.current(),
  });
  const warnings = createPodWarnings({ api, pods: () => observer.pods(sight()), term: deps.term, now });
  const podsOf = (id: Parameters<KubeObserver['podsOf']>[1]) => observer.podsOf(sight(), id);
  const applyDeps = { api, reflectors, writer, settings, ownerOf, allocation, podsOf };

  return {
    traits: { kind: 'kube', images: true, network: 'pods', modelsTarget: MODELS_TARGET, inPlace: inPlaceRepair(observer, ownerOf) },
    async observe(images, signal) {
      if (signal.aborted) return GIVEN_UP;
      const lost = unreachable(reflectors, listed, api.server, now());
      if (lost !== undefined) return lost;
      // Kubelets fetch images themselves.
      return ok({ workloads: observer.observe(sight()), images: images.map(({ reference }) => ({ reference, present: true })) });
    },
    pull: async () => ok(undefined),
    async apply(workload, signal) {
      const fit = fitForCluster(workload);
      if (!fit.ok) return fit;
      if (!(await gate.enter(signal))) return GIVEN_UP;
      try {
        return await lock(workload.slot, async () => await applyKubeWorkload(applyDeps, fit.value, signal));
      } finally {
        gate.leave();
      }
    },
    stop: async (id, { graceMs }, signal) => await stopKubeWorkload({ reflectors, writer, podsOf, lock }, id, graceMs, signal),
    async *logs(id, options, signal) {
      const [newest] = podsOf(id);
      if (newest !== undefined) yield* readKubeLogs(api, newest, options, signal);
    },
    changes(wake, signal) {
      for (const copy of copies.values()) copy.changes(wake, signal);
      warnings.follow(wake, signal);
    },
  };
}

/** Comparing costs some microseconds; callers remember what they asked. */
function inPlaceRepair(observer: KubeObserver, ownerOf: KubeRuntimeDeps['ownerOf']): InPlaceRepair {
  return {
    findAltered(wanted, observed) {
      const record = observer.recordOf(observed);
      const fit = fitForCluster(wanted);
      if (record === undefined || !fit.ok || wanted.revision !== observed.revision) return [];
      return findAlteredObjects(fit.value, record, appliedSpec(record.deployment), ownerOf(wanted.slot));
    },
    isOutdated(wanted, observed) {
      const record = observer.recordOf(observed);
      const applied = record === undefined ? undefined : appliedSpec(record.deployment);
      return applied !== undefined && wanted.cluster !== undefined && applied.replicas !== wanted.cluster.replicas;
    },
  };
}

function fitForCluster(workload: Workload): Result<KubeWorkload> {
  const { cluster, image } = workload;
  if (image === undefined)
    return fail('stalled', 'ImageUnknown', `Name an image for "${workload.slot}" in the toolbox manifest: pods are made of images`);
  if (cluster === undefined) return fail('stalled', 'InternalError', `The workload "${workload.name}" was not computed for a cluster`);
  return ok({ ...workload, cluster, image });
}

function unreachable(reflectors: KubeReflectors, listed: ReadonlySet<Reflector>, server: string, now: number): Result<never> | undefined {
  for (const [kind, reflector] of Object.entries<Reflector>({ ...reflectors })) {
    const health = reflector.health();
    if (health.kind === 'starting' || !listed.has(reflector)) {
      const why = health.kind === 'unreachable' ? `: ${health.message}` : '';
      return fail('retry', 'RuntimeUnreachable', `The ${kind} of the cluster at "${server}" have not been listed yet${why}`);
    }
    if (health.kind === 'unreachable' && now - health.sinceMs > TRUSTED_FOR_MS) {
      const seconds = Math.round((now - health.sinceMs) / 1000);
      return fail('retry', 'RuntimeUnreachable', `The cluster at "${server}" has not answered for ${seconds} s: ${health.message}`);
    }
  }
  return undefined;
}
