/** Slots and toolbox images, read together. */
import path from 'node:path';
import type { SlotSource } from '../reconciler/ports.ts';
import { createToolboxSource, type ToolboxImages } from '../files/toolbox-manifest.ts';
import { ok } from '../schema/failure.ts';
import type { Log } from '../platform/log.ts';

export interface DesiredInputs {
  readonly source: SlotSource;
  /** As of the last reading. */
  toolboxes(): ToolboxImages;
  /** From now on nothing is wanted, whatever the slots say. */
  wantNothing(): void;
}

export interface DesiredInputsOptions {
  readonly slots: SlotSource;
  readonly configDir: string;
  /** `toolboxes/manifest.json`. */
  readonly toolboxManifest: string;
  /** Where the last good `toolboxes.toml` is kept; unset: nowhere. */
  readonly keepToolboxesIn?: string;
  readonly log: Log;
}

export async function createDesiredInputs(options: DesiredInputsOptions): Promise<DesiredInputs> {
  const { slots, configDir, toolboxManifest, keepToolboxesIn, log } = options;
  const manifest = createToolboxSource({
    shipped: toolboxManifest,
    local: path.join(configDir, 'toolboxes.toml'),
    ...(keepToolboxesIn === undefined ? {} : { lastGoodFile: keepToolboxesIn }),
    log,
  });
  let toolboxes = await manifest.read();
  let nothing = false;
  return {
    toolboxes: () => toolboxes,
    wantNothing: () => void (nothing = true),
    source: {
      async read(signal) {
        if (nothing) return ok({ slots: new Map(), refused: new Map() });
        toolboxes = await manifest.read();
        return slots.read(signal);
      },
      changes: (wake, signal) => slots.changes(wake, signal),
    },
  };
}
