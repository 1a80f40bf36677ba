/** Which world the service lives in: the runtime that the settings name, or the first that is there. */
import { access } from 'node:fs/promises';
import path from 'node:path';
import { ensureEmbeddedEngine } from '../providers/gguf/embedded-engine.ts';
import { findLlamaServer } from '../providers/gguf/find-llama-server.ts';
import type { Runtime } from '../reconciler/ports.ts';
import { createProcessRuntime } from '../host/process/process-runtime.ts';
import { fail, ok, type Result } from '../schema/failure.ts';
import type { Settings } from '../schema/settings.ts';
import { createHostWorld } from './host-world.ts';
import type { Log } from '../platform/log.ts';
import type { World } from './world.ts';

export interface WorldChoice {
  readonly settings: Settings;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly version: string;
  /** The shipped manifest of toolbox images. */
  readonly toolboxManifest: string;
}

export async function chooseWorld(choice: WorldChoice): Promise<Result<World>> {
  const { settings, env } = choice;
  switch (settings.SVC_RUNTIME) {
    case 'process':
      return ok(await createHostWorld(choice, processRuntime(choice)));
    case 'podman': {
      const { createPodmanRuntime, findPodmanSocket } = await loadPodman();
      const socketPath = await findPodmanSocket(env);
      if (socketPath !== undefined)
        return ok(await createHostWorld(choice, createPodmanRuntime({ socketPath, instance: settings.SVC_CONFIG_DIR })));
      const message = 'No podman socket answers: start it with "systemctl enable --now podman.socket", or name it in "SVC_PODMAN_SOCKET"';
      return fail('stalled', 'PodmanNotFound', message);
    }
    case 'kube':
      return clusterWorld(choice);
    case 'auto': {
      const { createPodmanRuntime, findPodmanSocket, podmanAnswers } = await loadPodman();
      const socketPath = await findPodmanSocket(env);
      if (socketPath !== undefined && (await podmanAnswers(socketPath)))
        return ok(await createHostWorld(choice, createPodmanRuntime({ socketPath, instance: settings.SVC_CONFIG_DIR })));
      if (await isFile(SERVICE_ACCOUNT_TOKEN)) return clusterWorld(choice);
      return ok(await createHostWorld(choice, processRuntime(choice)));
    }
    default:
      return settings.SVC_RUNTIME satisfies never;
  }
}

/** Only in a cluster: its client is large. */
async function clusterWorld(choice: WorldChoice): Promise<Result<World>> {
  const { createClusterWorld } = await import('./cluster-world.ts');
  return createClusterWorld(choice);
}

/** Where every pod finds it, unless it asked for none. https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ */
const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

async function isFile(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/** Only where it may be used: its HTTP client is large. */
async function loadPodman() {
  return {
    ...(await import('../host/podman/podman-runtime.ts')),
    ...(await import('../host/podman/podman-api.ts')),
    ...(await import('../host/podman/podman-socket.ts')),
  };
}

function processRuntime({ settings, env, log }: WorldChoice): Runtime {
  const engineDir = path.join(settings.SVC_STATE_DIR, 'engine');
  return createProcessRuntime({
    stateDir: settings.SVC_STATE_DIR,
    env,
    async resolveProgram(name, signal) {
      if (name !== 'llama-server') return fail('stalled', 'StartFailed', `Nothing is known of a program "${name}"`);
      const installed = await findLlamaServer(env['PATH']);
      if (installed !== undefined) return ok([installed]);
      return ensureEmbeddedEngine({ dir: engineDir, env, onProgress: (message) => log.info({}, message) }, signal);
    },
  });
}
