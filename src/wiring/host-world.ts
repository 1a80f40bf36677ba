/** The world of a single machine: slots are files, workloads run in podman or as processes, and there is only one replica. */
import path from 'node:path';
import { createModelStore } from '../models/store.ts';
import type { Runtime } from '../reconciler/ports.ts';
import { createStatusRecords } from '../files/status-records.ts';
import { createHostProbe } from '../host/host-probe.ts';
import { createTomlDirectory } from '../host/slots/toml-directory.ts';
import { createTomlEditor } from '../host/slots/toml-editor.ts';
import { createDesiredInputs } from './desired-inputs.ts';
import type { ServiceOptions, World } from './world.ts';

export async function createHostWorld(options: ServiceOptions, runtime: Runtime): Promise<World> {
  const { settings, log } = options;
  const directory = path.join(settings.SVC_CONFIG_DIR, 'slots');
  const slots = createTomlDirectory({
    directory,
    lastGoodDirectory: path.join(settings.SVC_STATE_DIR, 'slots'),
    quietPeriodMs: settings.SVC_QUIET_PERIOD,
    log,
  });
  const models = createModelStore({ root: settings.SVC_MODELS_DIR });
  return {
    ...(await createDesiredInputs(options, slots, { lastGoodFile: path.join(settings.SVC_STATE_DIR, 'toolboxes.json') })),
    runtime,
    models,
    modelFiles: models,
    host: createHostProbe(),
    records: createStatusRecords(path.join(settings.SVC_STATE_DIR, 'status'), log),
    editor: createTomlEditor({ directory }),
    sinks: [],
    shareTraffic: (local) => local,
    leadership: { leads: () => true, changes: () => undefined },
    publishedView: (view) => view,
    start: () => undefined,
    resign: async () => undefined,
    stop: async () => undefined,
  };
}
