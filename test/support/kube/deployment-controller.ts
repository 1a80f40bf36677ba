/**
 * What "kube-controller-manager" does with Deployments, each part after a lag of its own: a Deployment makes a ReplicaSet, which makes and removes pods. It goes on when its Deployment is
 * gone, until the garbage collector comes by.
 */
import { z } from 'zod';
import type { KubeApi } from '../../../src/cluster/client/ports.ts';
import { DEPLOYMENTS, PODS } from '../../../src/cluster/client/decide/resource-path.ts';
import type { FakeKubeApi } from './fake-kube-api.ts';
import type { StoredObject } from './fake-kube-types.ts';

/** In milliseconds, asked for each event. */
export interface ControllerLags {
  readonly deployment: () => number;
  readonly replicaSet: () => number;
  readonly garbage: () => number;
}

interface ControllerDeps {
  readonly fake: FakeKubeApi;
  readonly api: KubeApi;
  readonly namespace: string;
  readonly lags: ControllerLags;
  readonly signal: AbortSignal;
}

const Spec = z.object({
  replicas: z.number().default(1),
  template: z.object({ metadata: z.record(z.string(), z.unknown()), spec: z.record(z.string(), z.unknown()) }),
});

interface ReplicaSet {
  readonly uid: string;
  readonly deployment: string;
  readonly name: string;
  readonly template: z.output<typeof Spec>['template'];
  replicas: number;
}

const READY = {
  phase: 'Running',
  podIP: '127.0.0.1',
  conditions: [{ type: 'Ready', status: 'True' }],
  containerStatuses: [{ name: 'server', ready: true, started: true, restartCount: 0, state: { running: {} } }],
};

export function startDeploymentController({ fake, api, namespace, lags, signal }: ControllerDeps): void {
  const sets = new Map<string, ReplicaSet>();
  const dueAt = new Map<string, number>();
  let pods = 0;

  function later(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      if (!signal.aborted) act();
    }, ms);
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  }

  /** Changes of a Deployment are seen in their order. */
  function inOrder(uid: string, act: () => void): void {
    const now = performance.now();
    const at = Math.max(now + lags.deployment(), dueAt.get(uid) ?? 0);
    dueAt.set(uid, at);
    later(at - now, act);
  }

  /** Acts on what it has been told, which may be over. */
  function syncDeployment(known: StoredObject): void {
    const { uid } = known.metadata;
    const { replicas, template } = Spec.parse(known['spec']);
    const own = [...sets.values()].filter(({ deployment }) => deployment === uid);
    const isPresent = (set: ReplicaSet): boolean => JSON.stringify(set.template) === JSON.stringify(template);
    if (!own.some(isPresent)) {
      const set = { uid: `${uid}-${own.length}`, deployment: uid, name: `${known.metadata.name}-${own.length}`, template, replicas };
      sets.set(set.uid, set);
      own.push(set);
    }
    for (const set of own) {
      set.replicas = isPresent(set) ? replicas : 0;
      later(lags.replicaSet(), () => syncSet(set.uid));
    }
    const present = fake.objects(DEPLOYMENTS, namespace).find(({ metadata }) => metadata.uid === uid);
    const status = { observedGeneration: known.metadata.generation };
    if (present !== undefined && JSON.stringify(present['status']) !== JSON.stringify(status))
      fake.put(DEPLOYMENTS, namespace, { ...present, status });
  }

  const podsOf = (uid: string): readonly StoredObject[] =>
    fake.objects(PODS, namespace).filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid) === true);

  function syncSet(uid: string): void {
    const set = sets.get(uid);
    if (set === undefined) return;
    const running = podsOf(uid).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    for (const { metadata } of running.slice(set.replicas)) terminate(metadata.name);
    for (let missing = set.replicas - running.length; missing > 0; missing -= 1) {
      pods += 1;
      const { metadata, spec } = set.template;
      const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: set.name, uid, controller: true }];
      fake.put(PODS, namespace, {
        metadata: { ...metadata, name: `${set.name}-${pods}`, ownerReferences },
        spec: { ...spec, nodeName: 'node1' },
        status: READY,
      });
    }
  }

  function terminate(name: string): void {
    // As every controller does, it tries again at the next event where this fails.
    void api.remove(PODS, name, {}, signal);
  }

  const unsubscribe = fake.store.subscribe(({ resource, type, object }) => {
    const { uid, ownerReferences = [] } = object.metadata;
    if (resource.plural === 'deployments' && type !== 'DELETED') inOrder(uid, () => syncDeployment(object));
    else if (resource.plural === 'deployments') later(lags.garbage(), () => collect(uid));
    else if (resource.plural === 'pods' && type !== 'ADDED')
      for (const owner of ownerReferences) later(lags.replicaSet(), () => syncSet(owner.uid));
  });
  signal.addEventListener('abort', unsubscribe, { once: true });

  function collect(deployment: string): void {
    for (const { uid } of [...sets.values()].filter((set) => set.deployment === deployment)) {
      sets.delete(uid);
      for (const { metadata } of podsOf(uid)) terminate(metadata.name);
    }
  }
}
