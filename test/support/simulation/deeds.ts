/** What the world itself has done to workloads, and what their servers answered: the truth that reports of failures are compared with. */
import type { Endpoint, ProbeIo, Provider } from '../../../src/providers/provider.ts';
import type { Clock } from '../../../src/reconciler/ports.ts';
import type { SlotName, WorkloadId } from '../../../src/schema/words/names.ts';
import type { InMemoryCluster } from '../in-memory/in-memory-cluster.ts';
import type { InMemoryRuntime } from '../in-memory/in-memory-runtime.ts';
import type { Journal } from './journal.ts';

export interface ProbeAnswer {
  /** When it was asked: a port may belong to another workload by the time of the answer. */
  readonly since: number;
  readonly at: number;
  readonly passed: boolean;
  /** Who asked. */
  readonly by: Journal;
  /** For the server of which slot; undefined where that is not known. */
  readonly slot?: SlotName | undefined;
}

export interface Deeds {
  /** When processes of a workload ended by a fault. */
  readonly exits: Map<WorkloadId, number[]>;
  readonly vanished: Map<WorkloadId, number>;
  readonly altered: Set<WorkloadId>;
  /** Workloads that a stop sent its signal to before it failed. */
  readonly signalled: Set<WorkloadId>;
  /** Who asked for the stop of a workload. */
  readonly stops: Map<WorkloadId, Set<Journal>>;
  /** Workloads whose server did not fall asleep or wake when it was told to. */
  readonly sleepless: Set<WorkloadId>;
  /** By `host:port`. */
  readonly probes: Map<string, ProbeAnswer[]>;
}

export function createDeeds(): Deeds {
  return {
    exits: new Map(),
    vanished: new Map(),
    altered: new Set(),
    signalled: new Set(),
    stops: new Map(),
    sleepless: new Set(),
    probes: new Map(),
  };
}

export const endpointKey = ({ host, port }: Endpoint): string => `${host}:${port}`;

/** The same runtime; what is done to its workloads from outside is noted. */
export function witnessRuntime(runtime: InMemoryRuntime, deeds: Deeds, clock: Clock): InMemoryRuntime {
  return {
    ...runtime,
    exit(id, exit) {
      // A machine notes the end of its processes itself.
      if (runtime.traits.kind !== 'process' && runtime.list().some((each) => each.id === id && each.phase === 'running')) {
        deeds.exits.set(id, [...(deeds.exits.get(id) ?? []), clock.now()]);
      }
      runtime.exit(id, exit);
    },
    vanish(id) {
      deeds.vanished.set(id, clock.now());
      runtime.vanish(id);
    },
    alter(id, part) {
      deeds.altered.add(id);
      runtime.alter(id, part);
    },
  };
}

export function witnessCluster(cluster: InMemoryCluster, deeds: Deeds, clock: Clock): InMemoryCluster {
  return {
    ...cluster,
    ...witnessRuntime(cluster, deeds, clock),
    scale(id, replicas) {
      deeds.altered.add(id);
      cluster.scale(id, replicas);
    },
  };
}

/** What one controller learns of the health of servers. `probes`: the ones to ask, while nobody witnesses the single requests. */
export function witnessProvider(provider: Provider, probes: ProbeIo, witness: ProbeWitness): Provider {
  const witnessed =
    (ask: Provider['health']): Provider['health'] =>
    async (endpoint, _io, slot, signal) => {
      const asked = { endpoint, signal, since: witness.clock.now(), slot: slot.name };
      witness.began.set(signal, asked.since);
      try {
        const health = await ask(endpoint, probes, slot, signal);
        note(witness, asked, health.kind === 'passing');
        return health;
      } catch (error) {
        note(witness, asked, false);
        throw error;
      }
    };
  const { health, readiness } = provider;
  return { ...provider, health: witnessed(health), ...(readiness === undefined ? {} : { readiness: witnessed(readiness) }) };
}

/** What is asked besides, while a server computes: whether it responds at all. An answer says nothing of its health. */
export function witnessProbes(probes: ProbeIo, witness: ProbeWitness): ProbeIo {
  return {
    async request(endpoint, options) {
      const asked = { endpoint, signal: options.signal, since: witness.began.get(options.signal) ?? witness.clock.now() };
      try {
        const answer = await probes.request(endpoint, options);
        if (answer.status === 0) note(witness, asked, false);
        return answer;
      } catch (error) {
        note(witness, asked, false);
        throw error;
      }
    },
  };
}

export interface ProbeWitness {
  readonly deeds: Deeds;
  readonly clock: Clock;
  readonly by: Journal;
  /** When the probes under way began, by their signals. */
  readonly began: WeakMap<AbortSignal, number>;
}

interface Asked extends Pick<ProbeAnswer, 'slot'> {
  readonly endpoint: Endpoint;
  readonly signal: AbortSignal;
  readonly since: number;
}

/** A probe that was given up shows nothing. */
function note({ deeds, clock, by }: ProbeWitness, { endpoint, signal, since, slot }: Asked, passed: boolean): void {
  if (signal.aborted) return;
  const key = endpointKey(endpoint);
  const answers = deeds.probes.get(key) ?? [];
  deeds.probes.set(key, answers);
  answers.push({ since, at: clock.now(), passed, by, slot });
}
