/** The world of a single machine: slots are files, workloads run in podman or as processes, and there is only one replica. */
import path from 'node:path';
import type { Runtime } from '../reconciler/ports.ts';
import { createStatusRecords } from '../files/status-records.ts';
import { readDevices } from '../host/device-probe.ts';
import type { DeviceFacts } from '../schema/device-facts.ts';
import { createHostProbe } from '../host/host-probe.ts';
import { createTomlDirectory } from '../host/slots/toml-directory.ts';
import { createTomlEditor } from '../host/slots/toml-editor.ts';
import { createDesiredInputs } from './desired-inputs.ts';
import { createHostModelStore, createServiceCatalogue } from './model-store.ts';
import type { ServiceOptions, World } from './world.ts';

/** Asked again whenever the devices, as text, may have changed. */
export type ReadPrograms = (devices: string) => Promise<DeviceFacts['programs']>;

/** `programs` looks up what the programs that this runtime starts on the host can compute with; undefined where they run in images. */
export async function createHostWorld(options: ServiceOptions, runtime: Runtime, programs?: ReadPrograms): Promise<World> {
  const { settings, log } = options;
  const directory = path.join(settings.SVC_CONFIG_DIR, 'slots');
  const slots = createTomlDirectory({
    directory,
    lastGoodDirectory: path.join(settings.SVC_STATE_DIR, 'slots'),
    quietPeriodMs: settings.SVC_QUIET_PERIOD,
    log,
  });
  const host = createHostProbe({ devices: async () => readHostDevices(programs) });
  const catalogue = await createServiceCatalogue(options, { lastGoodFile: path.join(settings.SVC_STATE_DIR, 'models.json') });
  const models = createHostModelStore(options, host, catalogue.catalogue);
  return {
    ...(await createDesiredInputs(options, slots, { catalogue, lastGoodFile: path.join(settings.SVC_STATE_DIR, 'toolboxes.json') })),
    runtime,
    models,
    modelFiles: models,
    host,
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

/** In a container, the files of devices say nothing; what programs report counts everywhere. */
async function readHostDevices(programs: ReadPrograms | undefined): Promise<DeviceFacts | undefined> {
  const found = await readDevices();
  if (programs === undefined) return found === undefined ? undefined : { ...found, programs: {} };
  const known = await programs(JSON.stringify(found ?? null));
  if (found !== undefined) return { ...found, programs: known };
  return Object.keys(known).length === 0 ? undefined : { ...NO_DEVICES, programs: known };
}

const NO_DEVICES = { kfd: false, nvidia: false, accel: false, renderDrivers: [] } as const;
