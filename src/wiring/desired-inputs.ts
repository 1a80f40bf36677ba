/** Reads slots and toolbox images together, so that each pass sees both in their latest version. */
import path from 'node:path';
import type { SlotSource } from '../reconciler/ports.ts';
import { createToolboxSource, type ToolboxImages } from '../files/toolbox-manifest.ts';
import { ok } from '../schema/failure.ts';
import type { Log } from '../platform/log.ts';

export interface DesiredInputs {
  readonly source: SlotSource;
  /** The images as of the last read of `source`. */
  readonly toolboxes: () => ToolboxImages;
  /** From now on, `source` returns no slots. */
  wantNothing(): void;
}

export interface DesiredInputsOptions {
  readonly slots: SlotSource;
  readonly configDir: string;
  /** Path of the shipped `toolboxes/manifest.json`. */
  readonly toolboxManifest: string;
  /** File for the last valid `toolboxes.toml`. If unset, it is kept in memory only. */
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
  let wantsNothing = false;
  return {
    toolboxes: () => toolboxes,
    wantNothing: () => void (wantsNothing = true),
    source: {
      async read(signal) {
        if (wantsNothing) return ok({ slots: new Map(), refused: new Map() });
        toolboxes = await manifest.read();
        return slots.read(signal);
      },
      changes: (wake, signal) => slots.changes(wake, signal),
    },
  };
}
