/** Runs workloads as Deployments, and observes them through local copies. */
import type { KubeApi, OwnerReference, Reflector, ResourceType } from '../client/ports.ts';
import { createRequestGate } from '../client/http-client.ts';
import { CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES } from '../client/decide/resource-path.ts';
import type { Clock, InPlaceRepair, Runtime } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { PodListing } from '../../schema/status/cluster-listing.ts';
import type { SlotName, WorkloadId } from '../../schema/words/names.ts';
import { appliedSpec } from './decide/applied-spec.ts';
import { findAlteredObjects } from './decide/template-drift.ts';
import { MODELS_TARGET, parseKubeWorkload, slotObjectName, type KubeSettings } from './decide/object-names.ts';
import { createKeyedLock } from '../../platform/semaphore.ts';
import { createGpuAllocation, ABORTED, createKubeWriter } from './write-objects.ts';
import { applyKubeWorkload } from './apply-workload.ts';
import { readKubeLogs } from './pod-logs.ts';
import { createKubeObserver, type KubeObserver, type KubeSnapshot } from './observe-workloads.ts';
import type { KubeReflectors } from './workload-reflectors.ts';
import { stopKubeWorkload } from './stop-workload.ts';
import { createFetchPoller, createWarningPoller } from './pollers.ts';
import { listPods } from './decide/select-pods.ts';

interface KubeRuntimeDeps {
  readonly api: KubeApi;
  readonly reflectors: KubeReflectors;
  readonly settings: KubeSettings;
  /** Undefined if the SlotSpec is gone. */
  readonly ownerOf: (slot: SlotName) => OwnerReference | undefined;
  /** Aborts when this replica may no longer write. */
  readonly term: () => AbortSignal;
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
}

/** While the API server is unreachable, a local copy counts as current for this long. */
const TRUSTED_FOR_MS = 30_000;
/** Fewer than requests in flight: each workload is completed before the next, and edits and statuses get through. */
const STARTS_AT_ONCE = 10;
/** Slots that have been started before have a queue of their own: an edit does not wait for a thousand new slots. */
const CHANGES_AT_ONCE = 4;

interface KubeRuntime extends Runtime {
  pods(): readonly PodListing[];
}

export function createKubeRuntime(deps: KubeRuntimeDeps): KubeRuntime {
  const { api, reflectors, settings, ownerOf, clock } = deps;
  const observer = createKubeObserver();
  const lock = createKeyedLock();
  const starts = createRequestGate(STARTS_AT_ONCE);
  const changes = createRequestGate(CHANGES_AT_ONCE);
  const copies = new Map<ResourceType, Reflector>([
    [DEPLOYMENTS, reflectors.deployments],
    [SERVICES, reflectors.services],
    [CONFIG_MAPS, reflectors.configMaps],
    [PODS, reflectors.pods],
  ]);
  const writer = createKubeWriter({ api, copyOf: (type) => copies.get(type), term: deps.term });
  const allocation = createGpuAllocation(api, settings, clock.now);
  const snapshot = (): KubeSnapshot => ({
    deployments: reflectors.deployments.items(),
    services: reflectors.services.items(),
    configMaps: reflectors.configMaps.items(),
    pods: reflectors.pods.items(),
    warnings: poller.current(),
    fetched: fetches.current(),
    isPartial: deps.term().aborted,
  });
  const poller = createWarningPoller({ api, pods: () => observer.pods(snapshot()), term: deps.term, clock });
  const fetches = createFetchPoller({ api, pods: () => observer.pods(snapshot()), term: deps.term });
  const podsOf = (id: WorkloadId) => observer.podsOf(snapshot(), id);
  const applyDeps = { api, reflectors, writer, settings, ownerOf, allocation, podsOf };

  return {
    traits: { kind: 'kube', images: true, network: 'pods', modelsTarget: MODELS_TARGET, inPlace: inPlaceRepair(observer, ownerOf) },
    async observe(images, signal) {
      if (signal.aborted) return ABORTED;
      const { deployments, pods } = reflectors;
      const lost = findUnreachable(deps.term().aborted ? { deployments, pods } : reflectors, api.server, clock.now());
      if (lost !== undefined) return lost;
      // Kubelets pull images themselves.
      return ok({ workloads: observer.observe(snapshot()), images: images.map(({ reference }) => ({ reference, present: true })) });
    },
    pods() {
      const now = snapshot();
      return listPods(observer.pods(now), { warnings: now.warnings });
    },
    pull: async () => ok(undefined),
    async apply(workload, signal) {
      const fit = parseKubeWorkload(workload);
      if (!fit.ok) return fit;
      const apply = async () => await applyKubeWorkload(applyDeps, fit.value, signal);
      const gate = reflectors.services.items().has(slotObjectName(workload.slot)) ? changes : starts;
      return (await gate(signal, async () => await lock(workload.slot, apply))) ?? ABORTED;
    },
    stop: async (id, { graceMs }, signal) => await stopKubeWorkload({ reflectors, writer, podsOf, lock }, id, graceMs, signal),
    async *logs(id, options, signal) {
      const [newest] = podsOf(id);
      if (newest !== undefined) yield* readKubeLogs(api, newest, options, signal);
    },
    changes(wake, signal) {
      for (const copy of copies.values()) copy.changes(wake, signal);
      poller.follow(wake, signal);
      fetches.follow(wake, signal);
    },
  };
}

/** A comparison takes some microseconds; callers cache the results. */
function inPlaceRepair(observer: KubeObserver, ownerOf: KubeRuntimeDeps['ownerOf']): InPlaceRepair {
  return {
    findAltered(wanted, observed) {
      const record = observer.recordOf(observed);
      const fit = parseKubeWorkload(wanted);
      if (record === undefined || !fit.ok || wanted.revision !== observed.revision) return [];
      return findAlteredObjects(fit.value, record, ownerOf(wanted.slot));
    },
    isOutdated(wanted, observed) {
      const record = observer.recordOf(observed);
      const applied = record === undefined ? undefined : appliedSpec(record.deployment);
      return applied !== undefined && wanted.cluster !== undefined && applied.replicas !== wanted.cluster.replicas;
    },
  };
}

function findUnreachable(reflectors: Partial<KubeReflectors>, server: string, now: number): Result<never> | undefined {
  for (const [kind, reflector] of Object.entries(reflectors)) {
    const health = reflector.health();
    if (health.kind === 'starting' || (health.kind === 'unreachable' && !health.listed)) {
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
