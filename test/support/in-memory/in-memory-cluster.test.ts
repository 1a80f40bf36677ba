import { createClock } from '../../../src/platform/clock.ts';
import { createInMemoryCluster } from './in-memory-cluster.ts';
import { describeRuntimeContract } from '../runtimes/runtime-contract.ts';
import { tinyWorkload, type RuntimeWorld } from '../runtimes/runtime-world.ts';

function createClusterWorld(): Promise<RuntimeWorld> {
  const runtime = createInMemoryCluster({ clock: createClock() });
  return Promise.resolve({
    runtime,
    real: false,
    // The runtime and its workloads end together.
    reopen: () => runtime,
    workload: (choice) => ({ ...tinyWorkload(choice, { host: '0.0.0.0', port: 8080 }), port: { host: 8080, container: 8080 } }),
    exit: async (workload, code) => runtime.exit(workload.id, { code }),
    crash: async (workload) => runtime.exit(workload.id, { code: 137 }),
    vanish: async (workload) => runtime.vanish(workload.id),
    // The suite would ask the server for its environment, and there is no server; the tests of the loop cover updates in place.
    alter: undefined,
    occupy: undefined,
    dispose: () => Promise.resolve(),
  });
}

describeRuntimeContract('The in-memory cluster', createClusterWorld);
