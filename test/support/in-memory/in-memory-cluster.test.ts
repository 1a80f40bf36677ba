import { createClock } from '../../../src/platform/clock.ts';
import { createInMemoryCluster } from './in-memory-cluster.ts';
import { describeRuntimeContract } from '../runtimes/runtime-contract.ts';
import { TINY_CLUSTER, tinyWorkload, type RuntimeWorld } from '../runtimes/runtime-world.ts';

function createClusterWorld(): Promise<RuntimeWorld> {
  const runtime = createInMemoryCluster({ clock: createClock() });
  return Promise.resolve({
    runtime,
    real: false,
    // The runtime and its workloads end together.
    reopen: () => runtime,
    workload: (choice) => ({
      ...tinyWorkload(choice, { host: '0.0.0.0', port: 8080 }),
      port: { host: 8080, container: 8080 },
      cluster: TINY_CLUSTER,
    }),
    exit: async (workload, code) => runtime.exit(workload.id, { code }),
    crash: async (workload) => runtime.exit(workload.id, { code: 137 }),
    vanish: async (workload) => runtime.vanish(workload.id),
    alter: async (workload) => runtime.alter(workload.id, { env: { GREETING: 'altered' } }),
    scale: async (workload, replicas) => runtime.scale(workload.id, replicas),
    shows: async (workload) => {
      const { argv, memoryLimitBytes, cluster } = runtime.podsOf(workload.id);
      const { provider: _provider, backend: _backend, gpus: _gpus, model: _model, ...visible } = cluster ?? {};
      return { argv, memoryLimitBytes, ...visible };
    },
    occupy: undefined,
    dispose: () => Promise.resolve(),
  });
}

describeRuntimeContract('The in-memory cluster', createClusterWorld);
