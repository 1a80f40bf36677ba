/** Creates the catalogue and a host's model store from the settings and the variables of Hugging Face's tools. */
import { createHash } from 'node:crypto';
import path from 'node:path';
import { ACCEPTED_FILES } from '../models/catalogue/accepted-files.ts';
import { createCatalogueSource, UPDATED_CATALOGUE, type CatalogueSource } from '../models/catalogue/catalogue-source.ts';
import { readHubAccess } from '../models/hub/hub-access.ts';
import { createModelSources } from '../models/model-sources.ts';
import { createDiskRoom } from '../models/download/disk-room.ts';
import { createThrottle } from '../platform/throttle.ts';
import { createModelStore, type DirectoryModelStore, type OwnModelSource } from '../models/store.ts';
import { DIRECTORY_FORMATS, modelFormats } from '../providers/registry.ts';
import type { HostProbe } from '../reconciler/ports.ts';
import { budgetOf } from '../reconciler/remember/desire.ts';
import { PROVIDER_KIND_NAMES } from '../schema/slot/provider-kinds.ts';
import type { ServiceOptions } from './world.ts';

/** Share of the slots' memory for a model. The rest is for its context and for computing. */
const WEIGHTS_SHARE = 0.8;
const PROBE_TIMEOUT_MS = 5000;

/** The largest model that is chosen without being asked for. Undefined where the memory for slots is not known. */
export function fitsWeights(settings: Parameters<typeof budgetOf>[0], memoryTotalBytes: number | undefined): number | undefined {
  const forSlots = budgetOf(settings, memoryTotalBytes);
  return forSlots && WEIGHTS_SHARE * forSlots;
}

/** `keeps`: stores the last valid `models.toml` and what users have accepted, in the state directory. */
export async function createServiceCatalogue(
  { settings, env, log, providers }: ServiceOptions,
  { keeps }: { readonly keeps: boolean },
): Promise<CatalogueSource> {
  const inState = (name: string): string => path.join(settings.SVC_STATE_DIR, name);
  const source = await createCatalogueSource({
    local: path.join(settings.SVC_CONFIG_DIR, 'models.toml'),
    hub: readHubAccess(env),
    providers: PROVIDER_KIND_NAMES.filter((kind) => providers[kind] !== undefined),
    quietPeriodMs: settings.SVC_QUIET_PERIOD,
    log,
    updated: { file: inState(UPDATED_CATALOGUE), key: settings.SVC_CATALOGUE_KEY },
    ...(keeps ? { lastGoodFile: inState('models.json'), acceptedFile: inState(ACCEPTED_FILES) } : {}),
  });
  await source.read();
  return source;
}

export function createHostModelStore(
  { settings, env, providers }: ServiceOptions,
  host: HostProbe,
  { catalogue, acceptedFiles, own }: Pick<CatalogueSource, 'catalogue' | 'acceptedFiles'> & { readonly own: OwnModelSource },
): DirectoryModelStore {
  const root = settings.SVC_MODELS_DIR;
  return createModelStore({
    root,
    catalogue,
    own,
    formats: [...modelFormats(providers), ...DIRECTORY_FORMATS],
    sources: createModelSources({
      root,
      catalogue,
      acceptedFiles,
      hub: readHubAccess(env),
      acceptedLicenses: settings.SVC_ACCEPTED_LICENSES,
      async fitsBytes() {
        return fitsWeights(settings, (await host.read(AbortSignal.timeout(PROBE_TIMEOUT_MS))).memoryTotalBytes);
      },
    }),
    // Only one service uses a state directory, so no other one uses its parts.
    writer: `svc-${createHash('sha256').update(settings.SVC_STATE_DIR).digest('hex').slice(0, 12)}`,
    limits: {
      connections: settings.SVC_PULL_CONNECTIONS,
      throttle: createThrottle(settings.SVC_PULL_BANDWIDTH),
      room: createDiskRoom(),
    },
  });
}
