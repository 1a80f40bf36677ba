/** Chooses the world of the service: the runtime in the settings, or the first one that is available. */
import { existsSync } from 'node:fs';
import { createProcessRuntime, type ProcessRuntimeOptions } from '../host/process/process-runtime.ts';
import { fail, type Result } from '../schema/words/failure.ts';
import { createHostWorld } from './host-world.ts';
import type { ServiceOptions, World } from './world.ts';

export async function chooseWorld(choice: ServiceOptions): Promise<Result<World>> {
  const { settings, env } = choice;
  const { SVC_RUNTIME: wanted } = settings;
  if (wanted === 'kube') return clusterWorld(choice);
  if (wanted === 'process') return processWorld(choice);
  const { createPodmanRuntime, findPodmanSocket, podmanAnswers } = await loadPodman();
  const socketPath = await findPodmanSocket(env);
  if (socketPath !== undefined && (wanted === 'podman' || (await podmanAnswers(socketPath)))) {
    return await createHostWorld(choice, (deviceMemory) =>
      createPodmanRuntime({ socketPath, instance: settings.SVC_CONFIG_DIR, deviceMemory }),
    );
  }
  if (wanted === 'podman') {
    const message = 'No podman socket was found: start podman with "systemctl enable --now podman.socket", or set "SVC_PODMAN_SOCKET"';
    return fail('stalled', 'PodmanNotFound', message);
  }
  if (existsSync(SERVICE_ACCOUNT_TOKEN)) return clusterWorld(choice);
  return processWorld(choice);
}

/** Imported only in a cluster, because the Kubernetes client is large. */
async function clusterWorld(choice: ServiceOptions): Promise<Result<World>> {
  const { createClusterWorld } = await import('./cluster-world.ts');
  return createClusterWorld(choice);
}

/** Mounted unless the pod opts out. https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ */
const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** Imported only if podman may be used, because its HTTP client is large. */
async function loadPodman() {
  return {
    ...(await import('../host/podman/podman-runtime.ts')),
    ...(await import('../host/podman/podman-api.ts')),
  };
}

async function processWorld(choice: ServiceOptions): Promise<Result<World>> {
  const { settings, env, log } = choice;
  const host = { env, stateDir: settings.SVC_STATE_DIR, onProgress: (message: string) => log.info({}, message) };
  const programs = Object.values(choice.providers).map(({ kind, program, openProgram }) => ({ kind, name: program, ...openProgram(host) }));
  const resolveProgram: ProcessRuntimeOptions['resolveProgram'] = async (name, signal) => {
    const program = programs.find((each) => each.name === name);
    if (program !== undefined) return program.resolve(signal);
    return fail('stalled', 'StartFailed', `The program "${name}" is not known: install a version that supports it`);
  };
  const { SVC_STATE_DIR: stateDir } = settings;
  return createHostWorld(choice, (deviceMemory) => createProcessRuntime({ stateDir, env, resolveProgram, deviceMemory }), programs);
}
