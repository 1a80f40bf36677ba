/** Brings the files of a catalogue entry into a store: downloads or generates them. Each file appears completely or not at all. */
import path from 'node:path';
import type { Progress } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/failure.ts';
import type { ModelId } from '../../schema/names.ts';
import type { CatalogueEntry, CatalogueFile } from '../catalogue.ts';
import { writeDemoModel } from '../demo/demo-models.ts';
import type { PullFile } from './pull-file.ts';
import { storageFailure } from './storage-failure.ts';

export interface PullEntry {
  /** Absolute path of the store. */
  readonly root: string;
  readonly id: ModelId;
  readonly entry: CatalogueEntry | undefined;
  readonly onProgress: (progress: Progress) => void;
}

export async function pullEntry({ root, id, entry, onProgress }: PullEntry, signal: AbortSignal): Promise<Result<void>> {
  if (entry === undefined)
    return fail('stalled', 'ModelMissing', `Put the file of the model "${id}" into "${root}": the catalogue has no such model`);
  for (const file of entry.files) {
    const target = targetOf(root, id, file);
    if (!target.ok) return target;
    const pulled = await pullEntryFile(file, { target: target.value, onProgress }, signal);
    if (!pulled.ok) return pulled;
  }
  return ok(undefined);
}

/** Returns the absolute path of a catalogue file in this store. */
export function targetOf(root: string, id: ModelId, file: CatalogueFile): Result<string> {
  const target = path.resolve(root, file.path);
  if (target.startsWith(path.resolve(root) + path.sep)) return ok(target);
  return fail('stalled', 'CatalogueInvalid', `Correct the catalogue entry "${id}": its file "${file.path}" is outside the store`);
}

export async function pullEntryFile(
  { from }: CatalogueFile,
  to: Pick<PullFile, 'target' | 'part' | 'onProgress' | 'patience' | 'limits'>,
  signal: AbortSignal,
): Promise<Result<void>> {
  if (from.kind === 'generated') {
    return writeDemoModel(from.model, to.target).then(ok, (error: unknown) => ({
      ok: false,
      failure: storageFailure(path.dirname(to.target), error),
    }));
  }
  // Imported with the first download, because undici is large.
  const { pullFile } = await import('./pull-file.ts');
  return pullFile({ ...from, ...to }, signal);
}
