import { createClock } from '../../../src/platform/clock.ts';
import { createInMemoryRuntime } from './in-memory-runtime.ts';
import { describeRuntimeContract } from '../runtimes/runtime-contract.ts';
import { tinyWorkload, type RuntimeWorld } from '../runtimes/runtime-world.ts';

function createInMemoryWorld(): Promise<RuntimeWorld> {
  const runtime = createInMemoryRuntime({ clock: createClock() });
  return Promise.resolve({
    runtime,
    real: false,
    // The runtime and its workloads end together.
    reopen: () => runtime,
    workload: (choice) => tinyWorkload(choice, { host: '0.0.0.0', port: 8080 }),
    exit: async (workload, code) => runtime.exit(workload.id, { code }),
    crash: async (workload) => runtime.exit(workload.id, { code: 137 }),
    vanish: async (workload) => runtime.vanish(workload.id),
    alter: async (workload) => runtime.alter(workload.id, { env: { GREETING: 'altered' } }),
    async occupy(port) {
      runtime.foreignPorts.add(port);
      return async () => void runtime.foreignPorts.delete(port);
    },
    dispose: () => Promise.resolve(),
  });
}

describeRuntimeContract('The in-memory runtime', createInMemoryWorld);
