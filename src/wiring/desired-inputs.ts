/** Slots and toolbox images, read together. */
import path from 'node:path';
import type { SlotSource } from '../reconciler/ports.ts';
import { readToolboxManifest, type ToolboxImages } from '../sources/toolbox-manifest.ts';
import { ok } from '../spec/failure.ts';
import type { Settings } from '../spec/settings.ts';
import type { Log } from './log.ts';

export interface DesiredInputs {
  readonly source: SlotSource;
  /** As of the last reading. */
  toolboxes(): ToolboxImages;
  /** From now on nothing is wanted, whatever the slots say. */
  wantNothing(): void;
}

export async function createDesiredInputs(
  slots: SlotSource,
  settings: Pick<Settings, 'SVC_CONFIG_DIR'>,
  shippedManifest: string,
  log: Log,
): Promise<DesiredInputs> {
  const manifest = { shipped: shippedManifest, local: path.join(settings.SVC_CONFIG_DIR, 'toolboxes.toml') };
  let toolboxes = await readToolboxManifest(manifest);
  let said = '';
  let nothing = false;
  return {
    toolboxes: () => toolboxes,
    wantNothing: () => void (nothing = true),
    source: {
      async read(signal) {
        if (nothing) return ok({ slots: new Map(), refused: new Map() });
        toolboxes = await readToolboxManifest(manifest);
        const problems = toolboxes.problems
          .map(({ file, line, message }) => `${file ?? ''}${line === undefined ? '' : `:${line}`}: ${message}`)
          .join('; ');
        if (problems !== said && problems !== '') log.warn({}, problems);
        said = problems;
        return slots.read(signal);
      },
      changes: (wake, signal) => slots.changes(wake, signal),
    },
  };
}
