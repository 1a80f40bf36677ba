/** Reads slots, toolbox images and the catalogue together, so that each pass sees all of them in their latest version. */
import path from 'node:path';
import type { SlotSource } from '../reconciler/ports.ts';
import { createToolboxSource } from '../files/toolbox-manifest.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import type { CatalogueSource } from '../models/catalogue/catalogue-source.ts';
import { ok } from '../schema/words/failure.ts';
import type { ServiceOptions, World } from './world.ts';

/** `lastGoodFile` keeps the last valid `toolboxes.toml`. Without it, that is kept in memory only. */
export async function createDesiredInputs(
  { settings, toolboxManifest, log }: ServiceOptions,
  slots: SlotSource,
  { catalogue, ...keep }: { readonly catalogue: CatalogueSource; readonly lastGoodFile?: string },
): Promise<Pick<World, 'source' | 'toolboxes' | 'wantNothing'>> {
  const local = path.join(settings.SVC_CONFIG_DIR, 'toolboxes.toml');
  const manifest = createToolboxSource({ shipped: toolboxManifest, local, log, ...keep });
  let toolboxes = await manifest.read();
  let wantsNothing = false;
  return {
    toolboxes: () => toolboxes,
    wantNothing: () => void (wantsNothing = true),
    source: {
      async read(signal) {
        if (wantsNothing) return ok({ slots: new Map(), refused: new Map() });
        toolboxes = await manifest.read();
        await catalogue.read();
        return slots.read(signal);
      },
      changes(wake, signal) {
        slots.changes(wake, signal);
        catalogue.changes(wake, signal);
        const own = { directory: path.dirname(local), names: [path.basename(local)], quietPeriodMs: settings.SVC_QUIET_PERIOD, log };
        watchDirectory(own, () => wake(), signal);
      },
    },
  };
}
