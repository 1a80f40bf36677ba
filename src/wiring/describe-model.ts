/** What the management API says about a model: a line of the list, and all that is known of one. */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { ModelDetail, ModelListing } from '../api/ports.ts';
import { suggestModels } from '../models/decide/suggest-models.ts';
import { filesOf } from '../models/model-files.ts';
import type { DirectoryModelStore, ListedModel } from '../models/store.ts';
import { fail, ok, type Result } from '../schema/failure.ts';
import type { ModelId } from '../schema/names.ts';

/** Pure. */
export function listModel({ id, entry, presence }: ListedModel): ModelListing {
  const present = presence.kind === 'present';
  const facts = present ? presence.facts : undefined;
  return {
    id,
    kind: entry?.kind,
    provider: entry?.provider ?? facts?.provider ?? 'gguf',
    family: entry === undefined || entry.family === '' ? (facts?.family ?? 'unknown') : entry.family,
    present,
    sizeBytes: present ? presence.facts.sizeBytes : presence.kind === 'pullable' ? presence.sizeBytes : sizeOf(entry),
    memoryBytes: undefined,
    minMemoryBytes: entry?.minMemoryBytes,
    minVramBytes: entry?.minVramBytes,
    context: entry?.context,
    license: entry?.license,
    licenseUrl: entry?.licenseUrl,
    verified: entry?.verified,
    selectable: (entry?.selectable ?? true) && presence.kind !== 'missing',
    reason: presence.kind === 'missing' ? presence.message : undefined,
  };
}

function sizeOf(entry: ListedModel['entry']): number | undefined {
  const sizes = entry?.files.flatMap(({ from }) => (from.kind === 'url' ? [from.sizeBytes] : [])) ?? [];
  return sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size, 0);
}

/** Fails for a name that nothing provides, with those that may have been meant. */
export async function describeModel(store: DirectoryModelStore, id: ModelId, signal: AbortSignal): Promise<Result<ModelDetail>> {
  const { root, sources, catalogue } = store;
  const entry = await sources.known(id);
  const presence = (await store.observe([id], signal)).get(id);
  const isUnknown = presence === undefined || (entry === undefined && presence.kind === 'missing');
  if (isUnknown) return fail('stalled', 'ModelMissing', `There is no model "${id}"${suggestModels(id, catalogue.keys())}`);
  const sourceOf = new Map(entry?.files.map((file) => [file.path, file.from]));
  const files = await Promise.all(
    (await filesOf(store, id)).map(async (file) => {
      const from = sourceOf.get(file.path);
      const storedBytes = await storedSize(path.join(root, file.path));
      return {
        path: file.path,
        sizeBytes: from?.kind === 'url' ? from.sizeBytes : storedBytes,
        sha256: file.sha256,
        url: from?.kind === 'url' ? from.url : undefined,
        present: storedBytes !== undefined,
      };
    }),
  );
  return ok({ ...listModel({ id, entry, presence }), files, sources: entry?.sources ?? [] });
}

async function storedSize(file: string): Promise<number | undefined> {
  return stat(file).then(
    (facts) => (facts.isFile() ? facts.size : undefined),
    () => undefined,
  );
}
