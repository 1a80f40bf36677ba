/** Which runtime the service uses: the one that the settings name, or the first that is there. */
import path from 'node:path';
import { ensureEmbeddedEngine } from '../providers/gguf/embedded-engine.ts';
import { findLlamaServer } from '../providers/gguf/find-llama-server.ts';
import type { Runtime } from '../reconciler/ports.ts';
import { createProcessRuntime } from '../runtimes/process.ts';
import { fail, ok, type Result } from '../spec/failure.ts';
import type { Settings } from '../spec/settings.ts';
import type { Log } from './log.ts';

export interface RuntimeChoice {
  readonly settings: Pick<Settings, 'SVC_RUNTIME' | 'SVC_STATE_DIR' | 'SVC_CONFIG_DIR'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

export async function chooseRuntime(choice: RuntimeChoice): Promise<Result<Runtime>> {
  const { settings, env } = choice;
  switch (settings.SVC_RUNTIME) {
    case 'process':
      return ok(processRuntime(choice));
    case 'podman': {
      const { createPodmanRuntime, findPodmanSocket } = await loadPodman();
      const socketPath = await findPodmanSocket(env);
      if (socketPath !== undefined) return ok(createPodmanRuntime({ socketPath, instance: settings.SVC_CONFIG_DIR }));
      const message = 'No podman socket answers: start it with "systemctl enable --now podman.socket", or name it in "SVC_PODMAN_SOCKET"';
      return fail('stalled', 'PodmanNotFound', message);
    }
    case 'kube':
      return fail(
        'stalled',
        'RuntimeNotBuilt',
        'The runtime "kube" is not part of this version; set "SVC_RUNTIME" to "podman", "process" or "auto"',
      );
    case 'auto': {
      const { createPodmanRuntime, findPodmanSocket, podmanAnswers } = await loadPodman();
      const socketPath = await findPodmanSocket(env);
      if (socketPath !== undefined && (await podmanAnswers(socketPath)))
        return ok(createPodmanRuntime({ socketPath, instance: settings.SVC_CONFIG_DIR }));
      return ok(processRuntime(choice));
    }
    default:
      return settings.SVC_RUNTIME satisfies never;
  }
}

/** Only where it may be used: its HTTP client is large. */
async function loadPodman() {
  return {
    ...(await import('../runtimes/podman.ts')),
    ...(await import('../runtimes/podman-api.ts')),
    ...(await import('../runtimes/podman-socket.ts')),
  };
}

function processRuntime({ settings, env, log }: RuntimeChoice): Runtime {
  const engineDir = path.join(settings.SVC_STATE_DIR, 'engine');
  return createProcessRuntime({
    stateDir: settings.SVC_STATE_DIR,
    env,
    async resolveProgram(name, signal) {
      if (name !== 'llama-server') return fail('stalled', 'ProgramUnknown', `Nothing is known of a program "${name}"`);
      const installed = await findLlamaServer(env['PATH']);
      if (installed !== undefined) return ok([installed]);
      return ensureEmbeddedEngine({ dir: engineDir, env, onProgress: (message) => log.info({}, message) }, signal);
    },
  });
}
