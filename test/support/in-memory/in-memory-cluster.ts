/**
 * An in-memory runtime that behaves as a cluster does: each workload has pods that are scheduled or wait for room, fetch their model, load, get lost and
 * are replaced; applying a workload again updates it in place; a stopped one is removed when its requests have ended. For tests and simulations.
 */
import type { ObservedWorkload, Workload } from '../../../src/reconciler/ports.ts';
import { fail, ok, type Failure, type Result } from '../../../src/schema/words/failure.ts';
import { WorkloadId } from '../../../src/schema/words/names.ts';
import { addressesOf, factsOf, IN_PLACE, isUp, podAt, restartDelayMs, type Deployed, type Pod } from './in-memory-pods.ts';
import { passTime, type InMemoryBehaviour, type InMemoryRuntime, type InMemoryRuntimeOptions } from './in-memory-runtime.ts';

export interface InMemoryClusterBehaviour extends InMemoryBehaviour {
  /** Milliseconds of one pod from being scheduled until its model is fetched, and from then until it is ready. */
  readonly podMs?: () => readonly [number, number];
  /** Why a pod cannot fetch its model this time; undefined if it can. The pod tries again. */
  readonly fetchFailure?: (workload: Workload) => string | undefined;
  /** Milliseconds that a kubelet waits before it restarts a server that crashed so often. Default: as kubelets do. */
  readonly restartMs?: (crashes: number) => number;
  /** How many pods can be scheduled. Default: all. */
  readonly room?: () => number;
  /** Whether a request is in flight on the workload; its pods end afterwards. */
  readonly inUse?: (id: WorkloadId) => boolean;
}

export interface InMemoryCluster extends InMemoryRuntime {
  /** Removes one pod; another one replaces it. */
  evict(id: WorkloadId): void;
  /** Changes the number of pods from outside. */
  scale(id: WorkloadId, replicas: number): void;
  /** What its pods were created with, and how many there are. */
  podsOf(id: WorkloadId): Workload;
  /** Schedules pending pods, after `room` has changed. */
  place(): void;
}

export interface InMemoryClusterOptions extends Pick<InMemoryRuntimeOptions, 'clock' | 'traits'> {
  readonly behaviour?: InMemoryClusterBehaviour;
}

/** Between two attempts to fetch, and between two checks whether requests have ended. */
const RETRY_MS = 500;
/** Corresponds to the `preStop` hook of a pod: by then, each gateway has seen that the endpoint is gone. */
const LINGER_MS = 200;
const MARGIN_MS = 1000;

export function createInMemoryCluster({ clock, traits, behaviour = {} }: InMemoryClusterOptions): InMemoryCluster {
  const deployed = new Map<WorkloadId, Deployed>();
  /** Every start of a pod there was, by workload and time of the wall clock. */
  const begun = new Map<string, number>();
  const wakes = new Set<(withinMs?: number) => void>();
  let made = 0;

  const changed = (): void => {
    if (behaviour.losesWake?.() !== true) for (const wake of wakes) wake();
  };
  const touch = (each: Deployed): void => {
    each.facts = factsOf(each);
    changed();
  };
  const later = (ms: number, pod: Pod, of: Deployed, act: () => void): void => {
    clock.at(clock.now() + ms, () => {
      if (of.pods.includes(pod)) act();
    });
  };
  const load = (pod: Pod, of: Deployed, readyMs: number): void => {
    const { crashes } = pod;
    pod.stage = 'loading';
    pod.startedAt = clock.wallNow();
    pod.begunAt = clock.now();
    begun.set(`${of.id} ${pod.startedAt}`, pod.begunAt);
    touch(of);
    later(readyMs, pod, of, () => {
      if (pod.stage !== 'loading' || pod.crashes !== crashes) return;
      pod.stage = 'ready';
      touch(of);
    });
  };
  const fetchModel = (pod: Pod, of: Deployed): void => {
    const [fetchMs, readyMs] = behaviour.podMs?.() ?? [0, 0];
    pod.stage = 'fetching';
    touch(of);
    later(fetchMs, pod, of, () => {
      pod.failure = behaviour.fetchFailure?.(of.workload);
      if (pod.failure === undefined) return load(pod, of, readyMs);
      touch(of);
      later(RETRY_MS, pod, of, () => fetchModel(pod, of));
    });
  };
  const place = (newest?: Deployed): void => {
    const room = behaviour.room?.() ?? Number.POSITIVE_INFINITY;
    const all = room === Number.POSITIVE_INFINITY && newest !== undefined ? [newest] : [...deployed.values()];
    let free = room - all.flatMap(({ pods }) => pods).filter(({ stage }) => stage !== 'pending').length;
    for (const each of all) {
      for (const pod of each.pods) {
        if (pod.stage !== 'pending' || free <= 0) continue;
        free -= 1;
        fetchModel(pod, each);
      }
    }
  };
  const adjustPods = (each: Deployed): void => {
    const wanted = each.endsAt === undefined ? each.replicas : each.pods.length;
    while (each.pods.length > wanted) each.pods.pop();
    for (; each.pods.length < wanted; made += 1) each.pods.push(podAt(addressesOf(made, each.workload)));
    touch(each);
    place(each);
  };
  const remove = (id: WorkloadId): void => {
    if (!deployed.delete(id)) return;
    changed();
    place();
  };
  const create = (workload: Workload): WorkloadId => {
    made += 1;
    const id = WorkloadId.parse(`pods-${made}-${workload.name}`);
    const replicas = workload.cluster?.replicas ?? 1;
    const each: Deployed = { id, workload, replicas, container: workload, pods: [], endsAt: undefined, facts: undefined };
    deployed.set(id, each);
    adjustPods(each);
    return id;
  };
  const applyNow = (workload: Workload): Result<WorkloadId> => {
    // One that is being removed has given its name away: its Deployment is gone, and only its pods are left.
    const same = deployed.values().find(({ workload: other, endsAt }) => other.name === workload.name && endsAt === undefined);
    if (same === undefined) return ok(create(workload));
    const updated = updateInPlace(same, workload);
    if (updated.ok) adjustPods(same);
    return updated;
  };
  const end = (each: Deployed): void => {
    const used = behaviour.inUse?.(each.id) === true;
    if (!used || clock.now() >= (each.endsAt ?? 0)) {
      if (used) behaviour.onKilled?.(each.id);
      return remove(each.id);
    }
    clock.at(clock.now() + RETRY_MS, () => end(each));
  };
  /** Its Deployment is gone at once, and its pods end when their requests have. */
  const leave = (each: Deployed): void => {
    each.endsAt = clock.now() + (each.workload.cluster?.drainTimeoutMs ?? 0) + MARGIN_MS;
    touch(each);
    clock.at(clock.now() + LINGER_MS, () => end(each));
  };
  const facts = (): ObservedWorkload[] => [...deployed.values()].map((each) => (each.facts ??= factsOf(each)));

  return {
    traits: { kind: 'in-memory', images: false, network: 'pods', modelsTarget: '/models', inPlace: IN_PLACE, ...traits },
    foreignPorts: new Set(),
    list: facts,
    at: ({ host, port }) =>
      facts().find(({ phase, endpoints }) => phase === 'running' && endpoints.some((each) => each.host === host && each.port === port)),
    begunAt: ({ id, startedAt }) => begun.get(`${id} ${startedAt}`),
    runningMs(id) {
      const pod = deployed.get(id)?.pods.find(isUp);
      return pod === undefined ? 0 : clock.now() - pod.begunAt;
    },
    exit(id, { code = 1, outOfMemory = false } = {}) {
      const each = deployed.get(id);
      if (each?.facts?.phase !== 'running') return;
      for (const pod of each.pods.filter(isUp)) {
        pod.stage = 'crashed';
        pod.crashes += 1;
        pod.exit = { code, outOfMemory, at: clock.wallNow() };
        // As a kubelet does: a crashed server is restarted, with growing delays.
        later((behaviour.restartMs ?? restartDelayMs)(pod.crashes), pod, each, () => {
          if (each.endsAt === undefined) load(pod, each, behaviour.podMs?.()[1] ?? 0);
        });
      }
      touch(each);
    },
    vanish(id) {
      const each = deployed.get(id);
      if (each !== undefined && each.endsAt === undefined) leave(each);
    },
    alter(id, part) {
      const each = deployed.get(id);
      if (each === undefined || each.endsAt !== undefined) return;
      each.container = {
        ...each.container,
        ...(part.argv === undefined ? {} : { argv: part.argv }),
        ...(part.env === undefined ? {} : { env: part.env }),
      };
      touch(each);
    },
    evict(id) {
      const each = deployed.get(id);
      if (each === undefined || each.endsAt !== undefined) return;
      each.pods.shift();
      adjustPods(each);
    },
    scale(id, replicas) {
      const each = deployed.get(id);
      if (each === undefined || each.endsAt !== undefined) return;
      each.replicas = replicas;
      adjustPods(each);
    },
    podsOf(id) {
      const each = deployed.get(id);
      if (each?.workload.cluster === undefined) throw new Error(`There are no pods of "${id}"`);
      return { ...each.workload, cluster: { ...each.workload.cluster, replicas: each.pods.length } };
    },
    place: () => place(),
    plant: create,
    addImage: () => undefined,
    removeImage: () => undefined,
    hasImage: () => false,
    async observe(wanted, signal) {
      if (signal.aborted) return GIVEN_UP;
      const failure = outageOf(behaviour);
      const workloads = facts();
      await passTime(clock, behaviour.observeMs?.() ?? 0);
      const images = wanted.map(({ reference }) => ({ reference, present: true }));
      return failure === undefined ? ok({ workloads, images }) : { ok: false, failure };
    },
    pull: async () => ok(undefined),
    async apply(workload, signal) {
      if (signal.aborted) return GIVEN_UP;
      const [doMs, answerMs] = behaviour.applyMs?.() ?? [0, 0];
      const ordered = behaviour.applyFailure?.(workload);
      await passTime(clock, doMs);
      // A request that was aborted before it was sent is not sent.
      if (signal.aborted) return GIVEN_UP;
      const failure = outageOf(behaviour) ?? ordered;
      const answer = failure === undefined || ordered?.late === true ? applyNow(workload) : undefined;
      await passTime(clock, answerMs);
      return failure === undefined && answer !== undefined ? answer : { ok: false, failure: failure ?? NEVER };
    },
    async stop(id, _options, signal) {
      if (signal.aborted) return GIVEN_UP;
      const [doMs, answerMs] = behaviour.stopMs?.() ?? [0, 0];
      await passTime(clock, doMs);
      if (signal.aborted) return GIVEN_UP;
      const failure = outageOf(behaviour) ?? behaviour.stopFailure?.();
      const each = deployed.get(id);
      if (failure === undefined && each !== undefined && each.endsAt === undefined) leave(each);
      while (failure === undefined && deployed.has(id) && !signal.aborted) await passTime(clock, LINGER_MS);
      await passTime(clock, answerMs);
      if (failure === undefined && deployed.has(id)) return GIVEN_UP;
      return failure === undefined ? ok(undefined) : { ok: false, failure };
    },
    async *logs(id) {
      if (deployed.has(id)) yield { stream: 'stderr', text: `last line of "${id}"` };
    },
    changes(wake, signal) {
      if (signal.aborted) return;
      wakes.add(wake);
      signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
    },
  };
}

function outageOf({ unreachable }: InMemoryClusterBehaviour): Failure | undefined {
  const down = unreachable?.();
  return down === undefined ? undefined : { kind: 'retry', reason: 'RuntimeUnreachable', message: down };
}

/** Reverts changes from outside, and applies the number of replicas. Pods keep everything else that they were created with. */
function updateInPlace(each: Deployed, { name, revision, generation, cluster }: Workload): Result<WorkloadId> {
  if (each.workload.revision !== revision) return fail('retry', 'NameTaken', `Remove "${name}" first: it has another revision`);
  const replicas = cluster?.replicas ?? 1;
  const present = each.workload;
  each.workload = { ...present, generation, ...(present.cluster === undefined ? {} : { cluster: { ...present.cluster, replicas } }) };
  each.container = present;
  each.replicas = replicas;
  each.pods = each.pods.filter(({ stage }) => stage !== 'crashed');
  return ok(each.id);
}

const GIVEN_UP = fail('retry', 'Aborted', 'It was given up before it began');
const NEVER: Failure = { kind: 'retry', reason: 'StartFailed', message: 'It did not start' };
