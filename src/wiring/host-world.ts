/** One machine: slots are files, workloads run in podman or as processes, and this is the only replica. */
import path from 'node:path';
import { createModelStore } from '../models/store.ts';
import type { Runtime } from '../reconciler/ports.ts';
import { createHostProbe } from '../host/host-probe.ts';
import { createTomlDirectory } from '../host/slots/toml-directory.ts';
import { createTomlEditor } from '../host/slots/toml-editor.ts';
import type { Settings } from '../schema/settings.ts';
import { createDesiredInputs } from './desired-inputs.ts';
import type { Log } from '../platform/log.ts';
import { ALWAYS_LEADS, type World } from './world.ts';

export interface HostWorldOptions {
  readonly settings: Settings;
  readonly toolboxManifest: string;
  readonly log: Log;
}

export async function createHostWorld({ settings, toolboxManifest, log }: HostWorldOptions, runtime: Runtime): Promise<World> {
  const directory = path.join(settings.SVC_CONFIG_DIR, 'slots');
  const slots = createTomlDirectory({
    directory,
    lastGoodDirectory: path.join(settings.SVC_STATE_DIR, 'slots'),
    quietPeriodMs: settings.SVC_QUIET_PERIOD,
    log,
  });
  const models = createModelStore({ root: settings.SVC_MODELS_DIR });
  return {
    ...(await createDesiredInputs({
      slots,
      configDir: settings.SVC_CONFIG_DIR,
      toolboxManifest,
      keepToolboxesIn: path.join(settings.SVC_STATE_DIR, 'toolboxes.json'),
      log,
    })),
    runtime,
    models,
    modelFiles: models,
    host: createHostProbe(),
    editor: createTomlEditor({ directory }),
    sinks: [],
    shareTraffic: (local) => local,
    leadership: ALWAYS_LEADS,
    show: (view) => view,
    start: () => undefined,
    resign: async () => undefined,
    stop: async () => undefined,
  };
}
