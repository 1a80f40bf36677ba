/**
 * The record of a model: the pin, from which every pod takes the same files, and the text of these files, from which
 * every replica derives the same facts. One immutable ConfigMap for each model. Pure.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { CatalogueEntry } from '../../../models/catalogue/catalogue.ts';
import { Pin, PIN_KEY } from '../../../models/decide/pin.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { ModelFacts } from '../../../providers/provider.ts';
import { fail, ok, type Result } from '../../../schema/words/failure.ts';
import { ProviderName, type ModelId } from '../../../schema/words/names.ts';
import { defined, LABEL_PREFIX, LABELS, MANAGER } from '../../../schema/pod/kube-fields.ts';
import type { KubeManifest, KubeObject } from '../../client/ports.ts';

const ModelText = z.object({
  provider: ProviderName.optional(),
  family: z.string().optional(),
  contents: z.record(z.string(), z.unknown()).optional(),
});
export type ModelText = Readonly<z.output<typeof ModelText>>;

export interface ModelRecord {
  readonly pin: Pin;
  readonly text: ModelText;
}

const TEXT_KEY = 'model';
/** Shown to users, since the name of the object is a hash. */
const NAME_ANNOTATION = `${LABEL_PREFIX}/model-name`;
/** Linux allows 128 KiB for one variable of an environment. */
const MAX_PIN_BYTES = 100_000;
/** A ConfigMap has at most 1 MiB. */
const MAX_TEXT_BYTES = 800_000;

const keyOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 20);

/** Names of models may be longer than names of objects, and have other characters. */
export const recordName = (id: ModelId): string => `svc-model-${keyOf(id)}`;

export function recordManifest({ pin, text }: ModelRecord): Result<KubeManifest> {
  const data = { [PIN_KEY]: JSON.stringify(pin), [TEXT_KEY]: JSON.stringify(text) };
  if (Buffer.byteLength(data[PIN_KEY]) > MAX_PIN_BYTES || Buffer.byteLength(data[TEXT_KEY]) > MAX_TEXT_BYTES) {
    const problem = `The list of the ${pin.files.length} files of "${pin.id}" is too long for a cluster`;
    return fail('stalled', 'ModelUnusable', `${problem}: name a quantisation with fewer files`);
  }
  const labels = { [LABELS.managedBy]: MANAGER, [LABELS.model]: keyOf(pin.id) };
  return ok({ metadata: { name: recordName(pin.id), labels, annotations: { [NAME_ANNOTATION]: pin.id } }, immutable: true, data });
}

const RecordObject = z.object({ data: z.object({ [PIN_KEY]: z.string(), [TEXT_KEY]: z.string() }) });

/** Undefined if the object is something else, or was altered. */
export function parseRecordObject({ metadata, ...object }: KubeObject): ModelRecord | undefined {
  const parsed = RecordObject.safeParse(object).data;
  if (parsed === undefined) return undefined;
  const pin = Pin.safeParse(parseJson(parsed.data[PIN_KEY])).data;
  const text = ModelText.safeParse(parseJson(parsed.data[TEXT_KEY])).data;
  return pin === undefined || text === undefined || recordName(pin.id) !== metadata.name ? undefined : { pin, text };
}

export function factsOfRecord(root: string, { pin, text }: ModelRecord): ModelFacts {
  const digest = createHash('sha256').update(JSON.stringify(pin)).digest('hex').slice(0, 12);
  return {
    id: pin.id,
    hostPath: join(root, pin.directory ?? pin.files[0]?.path ?? ''),
    sizeBytes: pin.files.reduce((sum, file) => sum + file.sizeBytes, 0),
    ...text,
    pinnedBy: { object: recordName(pin.id), digest },
  };
}

/** Undefined for an entry with generated files. */
export function pinOfEntry(id: ModelId, entry: CatalogueEntry): Pin | undefined {
  const files = entry.files.flatMap(({ path, from, archive }) => {
    if (from.kind !== 'url') return [];
    const { url, repo, sizeBytes, others } = from;
    const source = { kind: 'url' as const, url, ...(repo === undefined ? {} : { repo }) };
    return [{ path, sha256: from.sha256.toLowerCase(), sizeBytes, from: source, ...defined({ archive, others: others && [...others] }) }];
  });
  if (files.length < entry.files.length) return undefined;
  const { provider, directory, license, licenseUrl, isGated = false } = entry;
  return { version: 1, id, files, provider, ...(directory === undefined ? {} : { directory }), license, licenseUrl, isGated };
}

/** Whether a record has the files of the present catalogue: another version of this service may have another one. */
export function isOfEntry({ pin }: ModelRecord, entry: CatalogueEntry): boolean {
  const own = pinOfEntry(pin.id, entry);
  const listOf = (each: Pin | undefined): string => (each?.files ?? []).map(({ path, sha256 }) => `${path} ${sha256}`).join('\n');
  return listOf(own) === listOf(pin) && entry.directory === pin.directory;
}

const LICENSE_LABEL = 'license';

/** One object for each licence, so that two people who accept never overwrite each other. */
export function licenseManifest(license: string, model: string, at: string): KubeManifest {
  const labels = { [LABELS.managedBy]: MANAGER, [LABELS.model]: LICENSE_LABEL };
  return { metadata: { name: `svc-license-${keyOf(license.toLowerCase())}`, labels }, immutable: true, data: { license, model, at } };
}

const LicenseObject = z.object({
  metadata: z.object({ name: z.string().startsWith('svc-license-') }),
  data: z.object({ license: z.string() }),
});

/** The licence in lower case; undefined if the object is something else. */
export function parseLicenseObject(object: KubeObject): string | undefined {
  return LicenseObject.safeParse(object).data?.data.license.toLowerCase();
}
