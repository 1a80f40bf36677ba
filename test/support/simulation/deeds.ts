/** What the world itself has done to workloads, and what their servers answered: the truth that reports of failures are compared with. */
import type { Endpoint, ProbeIo } from '../../../src/providers/provider.ts';
import type { Clock } from '../../../src/reconciler/ports.ts';
import type { WorkloadId } from '../../../src/schema/names.ts';
import type { InMemoryCluster } from '../in-memory/in-memory-cluster.ts';
import type { InMemoryRuntime } from '../in-memory/in-memory-runtime.ts';
import type { Journal } from './journal.ts';

export interface ProbeAnswer {
  readonly at: number;
  readonly passed: boolean;
  /** Who asked. */
  readonly by: Journal;
}

export interface Deeds {
  /** When processes of a workload ended by a fault. */
  readonly exits: Map<WorkloadId, number[]>;
  readonly vanished: Map<WorkloadId, number>;
  readonly altered: Set<WorkloadId>;
  /** Who asked for the stop of a workload. */
  readonly stops: Map<WorkloadId, Set<Journal>>;
  /** By `host:port`. */
  readonly probes: Map<string, ProbeAnswer[]>;
}

export function createDeeds(): Deeds {
  return { exits: new Map(), vanished: new Map(), altered: new Set(), stops: new Map(), probes: new Map() };
}

export const endpointKey = ({ host, port }: Endpoint): string => `${host}:${port}`;

/** The same runtime; what is done to its workloads from outside is noted. */
export function witnessRuntime(runtime: InMemoryRuntime, deeds: Deeds, clock: Clock): InMemoryRuntime {
  return {
    ...runtime,
    exit(id, exit) {
      if (runtime.list().some((each) => each.id === id && each.phase === 'running')) {
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

export function witnessProbes(probes: ProbeIo, deeds: Deeds, clock: Clock, by: Journal): ProbeIo {
  return {
    async request(endpoint, ...rest) {
      const key = endpointKey(endpoint);
      const answers = deeds.probes.get(key) ?? [];
      deeds.probes.set(key, answers);
      try {
        const answer = await probes.request(endpoint, ...rest);
        answers.push({ at: clock.now(), passed: answer.status === 200, by });
        return answer;
      } catch (error) {
        answers.push({ at: clock.now(), passed: false, by });
        throw error;
      }
    },
  };
}
