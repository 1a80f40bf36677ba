/** Brings one file of a catalogue entry into a store: downloads or generates it. The file appears completely or not at all. */
import path from 'node:path';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { ModelId } from '../../schema/words/names.ts';
import type { CatalogueFile, Download } from '../catalogue/catalogue.ts';
import { writeDemoModel } from '../demo/demo-models.ts';
import type { HubAccess } from '../hub/hub-access.ts';
import type { PullFile } from '../download/pull-file.ts';
import { storageFailure } from './storage-failure.ts';

export interface PullEntryFile extends Pick<PullFile, 'target' | 'part' | 'onProgress' | 'patience' | 'limits'> {
  /** For files on the Hub. */
  readonly hub?: HubAccess | undefined;
}

/** Returns the absolute path of a catalogue file in this store. */
export function targetOf(root: string, id: ModelId, file: CatalogueFile): Result<string> {
  const target = path.resolve(root, file.path);
  if (target.startsWith(path.resolve(root) + path.sep)) return ok(target);
  return fail('stalled', 'CatalogueInvalid', `Correct the catalogue entry "${id}": its file "${file.path}" is outside the store`);
}

export async function pullEntryFile({ from }: CatalogueFile, { hub, ...to }: PullEntryFile, signal: AbortSignal): Promise<Result<void>> {
  if (from.kind === 'generated') {
    return writeDemoModel(from.model, to.target).then(ok, (error: unknown) => ({
      ok: false,
      failure: storageFailure(path.dirname(to.target), error),
    }));
  }
  // Imported with the first download, because undici is large.
  const { pullFile } = await import('../download/pull-file.ts');
  return pullFile({ ...from, ...to, ...(await hubFacts(from, hub)) }, signal);
}

/** The token belongs to the Hub alone, wherever the file is sent from. */
async function hubFacts({ repo }: Download, hub: HubAccess | undefined): Promise<Pick<PullFile, 'bearer' | 'hub'>> {
  if (repo === undefined || hub === undefined) return {};
  const token = await hub.token();
  const bearer = token === undefined ? undefined : { origin: new URL(hub.endpoint).origin, token };
  return { bearer, hub: { repo, page: `${hub.endpoint}/${repo}` } };
}
