/**
 * Instead of pulling, a cluster decides what a name means, whether its licence was accepted, and what the files say,
 * and keeps that as a record, from which the pods fetch.
 */
import path from 'node:path';
import { loadedPath, whyNotSelectable, type Catalogue, type CatalogueEntry } from '../../models/catalogue/catalogue.ts';
import { completeContents, type Pin } from '../../models/decide/pin.ts';
import { parseHubName } from '../../models/decide/parse-model-name.ts';
import { Failed } from '../../models/download/disk-room.ts';
import type { HubAccess } from '../../models/hub/hub-access.ts';
import { entryOf, judgeLicense, type ModelSources } from '../../models/model-sources.ts';
import { readByFormat } from '../../models/read-model.ts';
import type { ModelFormat } from '../../providers/provider.ts';
import { defined } from '../../schema/pod/kube-fields.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { ModelId } from '../../schema/words/names.ts';
import { pinOfEntry, type ModelText } from './decide/model-record.ts';
import type { ModelRecords } from './model-records.ts';

export interface ClusterSourcesOptions {
  readonly records: ModelRecords;
  readonly hub: HubAccess;
  readonly catalogue: Catalogue;
  readonly formats: readonly ModelFormat[];
  /** Memory for a model whose name leaves the quantisation open. */
  readonly fitsBytes?: number | undefined;
}

export interface ClusterSources extends Pick<ModelSources, 'known' | 'resolve' | 'checkLicense' | 'licenses'> {
  /** Keeps a record if the licence of the model is open or was accepted. */
  decide(id: ModelId, signal: AbortSignal): Promise<Result<void>>;
}

const ANSWER_WITHIN_MS = 20_000;

export function createClusterSources(options: ClusterSourcesOptions): ClusterSources {
  const { records, hub, catalogue } = options;
  /** Models on the Hub whose licence was not accepted, and which have no record therefore. */
  const refused = new Map<ModelId, CatalogueEntry>();
  const known = async (id: ModelId): Promise<CatalogueEntry | undefined> => {
    const pin = records.read(id)?.pin;
    return catalogue.get(id) ?? (pin === undefined ? refused.get(id) : entryOf(pin, hub.endpoint));
  };
  const checkLicense = async (entry: CatalogueEntry): Promise<Result<void>> => judgeLicense(entry, records.acceptedLicenses());
  return {
    known,
    checkLicense,
    licenses: {
      accepted: async () => records.acceptedLicenses(),
      accept: async (license, model) => records.acceptLicense(license, model, AbortSignal.timeout(ANSWER_WITHIN_MS)),
    },
    async resolve(id, signal) {
      const found = await known(id);
      const refusal = found === undefined ? undefined : whyNotSelectable(found);
      if (refusal !== undefined) return fail('stalled', 'ModelMissing', refusal);
      if (found !== undefined || parseHubName(id).kind === 'other') return ok(found);
      const pin = await resolveName(options, id, signal);
      return pin.ok ? ok(entryOf(pin.value, hub.endpoint)) : pin;
    },
    async decide(id, signal) {
      const entry = catalogue.get(id);
      const refusal = entry === undefined ? undefined : whyNotSelectable(entry);
      if (refusal !== undefined) return fail('stalled', 'ModelMissing', refusal);
      const pin = entry === undefined ? await resolveName(options, id, signal) : ok(pinOfEntry(id, entry));
      if (!pin.ok) return pin;
      // Nobody downloads a generated model: the pods make it.
      const download = pin.value === undefined ? undefined : entryOf(pin.value, hub.endpoint);
      if (pin.value === undefined || download === undefined) return ok(undefined);
      const allowed = await checkLicense(download);
      if (!allowed.ok && entry === undefined) refused.set(id, download);
      if (!allowed.ok) return allowed;
      const text = await readText(options, id, entry ?? download, signal);
      return text.ok ? records.create({ pin: pin.value, text: text.value }, signal) : text;
    },
  };
}

async function resolveName({ hub, fitsBytes }: ClusterSourcesOptions, id: ModelId, signal: AbortSignal): Promise<Result<Pin>> {
  const parsed = parseHubName(id);
  if (parsed.kind !== 'hub') {
    const unknown = `Nothing provides the model "${id}": name one of the catalogue or of the Hugging Face Hub`;
    return fail('stalled', 'ModelMissing', parsed.kind === 'invalid' ? parsed.message : unknown);
  }
  // Imported with the first name that is resolved, because undici is large.
  const { resolvePin } = await import('../../models/hub/hub-client.ts');
  return resolvePin({ id, name: parsed.name, hub, fitsBytes }, signal);
}

/** The facts in the files of a model: from the catalogue, otherwise as its provider reads them from the source. */
async function readText(
  { formats, hub }: ClusterSourcesOptions,
  id: ModelId,
  entry: CatalogueEntry,
  signal: AbortSignal,
): Promise<Result<ModelText>> {
  const { provider, files, headerFacts, stated: completing, directory } = entry;
  const paths = files.map((file) => file.path);
  // Nobody can read a file within an archive without fetching all of it.
  if (files.some(({ archive }) => archive !== undefined)) return ok({ provider, ...statedContents(formats, entry) });
  const stated = headerFacts === undefined ? undefined : formats.find(({ kind }) => kind === provider)?.contentsFrom(headerFacts, paths);
  if (stated !== undefined) return ok({ provider, contents: stated });
  const parent = directory ?? path.dirname(loadedPath(entry));
  const byName = new Map(
    files.flatMap((file) => (file.path.startsWith(`${parent}/`) ? [[file.path.slice(parent.length + 1), file] as const] : [])),
  );
  const name = path.basename(loadedPath(entry));
  const storeEntry = directory === undefined ? { name } : { name, names: [...byName.keys()] };
  const { openRemoteFiles } = await import('../../models/hub/remote-model-files.ts');
  const remote = openRemoteFiles(byName, hub, signal);
  try {
    const found = await readByFormat(formats, { entry: storeEntry, provider }, async (format) => ({
      ...(await format.read({ id, entry: storeEntry }, remote)),
      provider: format.kind,
    }));
    if (found === undefined) return ok({ provider });
    if (found.kind === 'unusable') return fail('stalled', 'ModelUnusable', found.message);
    const { family } = found;
    const contents = completeContents(found.contents, completing) ?? found.contents;
    return ok({ provider: found.provider, contents, ...defined({ family }) });
  } catch (error) {
    if (error instanceof Failed) return { ok: false, failure: error.failure };
    throw error;
  } finally {
    await remote.close();
  }
}

function statedContents(formats: readonly ModelFormat[], { provider, files, stated }: CatalogueEntry): Pick<ModelText, 'contents'> {
  const paths = files.map((file) => file.path);
  return defined({ contents: formats.find(({ kind }) => kind === provider)?.contentsFrom(stated, paths) });
}
