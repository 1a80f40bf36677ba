/** Real podman for the tests of runtimes, and its command line for changes that the runtime does not make itself. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { ObservedWorkload } from '../../../src/reconciler/ports.ts';
import { createPodmanRuntime } from '../../../src/host/podman/podman-runtime.ts';
import { PODMAN, PODMAN_SOCKET, WORKLOAD_IMAGE } from '../../support/require/require-podman.ts';
import { occupyPort, TEST_SLOT, tinyWorkload, type RuntimeWorld } from '../../support/runtimes/runtime-world.ts';

const run = promisify(execFile);

/** Runs podman's command line against the tests' socket. */
export const podman = async (...args: readonly string[]): Promise<string> => (await run('podman', [...PODMAN, ...args])).stdout.trim();

export async function createPodmanWorld(): Promise<RuntimeWorld> {
  const open = () => createPodmanRuntime({ socketPath: PODMAN_SOCKET, instance: TEST_SLOT });
  await removeOurs();
  return {
    runtime: open(),
    real: true,
    reopen: open,
    workload: (choice) => ({ ...tinyWorkload(choice, { host: '0.0.0.0', port: 8080 }), image: { reference: WORKLOAD_IMAGE } }),
    async exit(workload, code) {
      await fetch(`http://127.0.0.1:${workload.endpoints[0]?.port}/exit/${code}`).catch(() => undefined);
    },
    crash: async (workload) => void (await podman('kill', workload.name)),
    vanish: async (workload) => void (await podman('rm', '--force', workload.name)),
    alter,
    async occupy(port) {
      const taken = await occupyPort(port);
      return () => taken.close();
    },
    dispose: removeOurs,
  };
}

async function removeOurs(): Promise<void> {
  const ids = (await podman('ps', '--all', '--quiet', '--filter', `label=inference.svc.dev/slot=${TEST_SLOT}`))
    .split('\n')
    .filter((id) => id !== '');
  if (ids.length > 0) await podman('rm', '--force', '--time', '0', ...ids);
}

async function alter(workload: ObservedWorkload): Promise<void> {
  const labels: Record<string, string> = JSON.parse(await podman('inspect', '--format', '{{json .Config.Labels}}', workload.name));
  await podman('rm', '--force', '--time', '0', workload.name);
  const given = Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`]);
  const rest = ['--entrypoint', '["sleep"]', WORKLOAD_IMAGE, '600'];
  await podman('run', '--detach', '--stop-timeout', '0', '--name', workload.name, ...given, '--env', 'GREETING=altered', ...rest);
}
