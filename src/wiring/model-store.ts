/** Creates the model store of a host from the settings and the variables of Hugging Face's tools. */
import { createHash } from 'node:crypto';
import { readHubAccess } from '../models/hub/hub-access.ts';
import { createModelSources } from '../models/model-sources.ts';
import { createDiskRoom } from '../models/pull/disk-room.ts';
import { createThrottle } from '../models/pull/throttle.ts';
import { createModelStore, type DirectoryModelStore } from '../models/store.ts';
import { modelFormats } from '../providers/model-formats.ts';
import type { HostProbe } from '../reconciler/ports.ts';
import type { ServiceOptions } from './world.ts';

/** What a model may have of the memory for slots. The rest is for its context and for computing. */
const WEIGHTS_SHARE = 0.8;
/** What slots get of the memory of a host without `SVC_MEMORY_BUDGET`; the same share as in admission. */
const HOST_SHARE = 0.9;
const PROBE_TIMEOUT_MS = 5000;

export function createHostModelStore({ settings, env, providers }: ServiceOptions, host: HostProbe): DirectoryModelStore {
  const root = settings.SVC_MODELS_DIR;
  return createModelStore({
    root,
    formats: modelFormats(providers),
    sources: createModelSources({
      root,
      hub: readHubAccess(env),
      acceptedLicenses: settings.SVC_ACCEPTED_LICENSES,
      async fitsBytes() {
        const { memoryTotalBytes } = await host.read(AbortSignal.timeout(PROBE_TIMEOUT_MS));
        const forSlots = settings.SVC_MEMORY_BUDGET ?? (memoryTotalBytes === undefined ? undefined : HOST_SHARE * memoryTotalBytes);
        return forSlots === undefined ? undefined : WEIGHTS_SHARE * forSlots;
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
