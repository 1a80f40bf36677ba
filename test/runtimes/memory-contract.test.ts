import { createClock } from '../../src/runtimes/clock.ts';
import { createMemoryRuntime } from '../../src/runtimes/memory.ts';
import { describeRuntimeContract } from './runtime-contract.ts';
import { tinyWorkload } from './runtime-world.ts';
import type { RuntimeWorld } from './runtime-world.ts';

function createMemoryWorld(): Promise<RuntimeWorld> {
  const runtime = createMemoryRuntime({ clock: createClock() });
  return Promise.resolve({
    runtime,
    real: false,
    // It lives as long as its workloads.
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

describeRuntimeContract('The memory runtime', createMemoryWorld);
