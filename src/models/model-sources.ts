/** Resolves a model name to the source of its files. A name on the Hub is kept as a pin from its first pull on. */
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { ModelId } from '../schema/words/names.ts';
import { DEMO_CATALOGUE, whyNotSelectable, type Catalogue, type CatalogueEntry, type CatalogueFile } from './catalogue/catalogue.ts';
import { needsAcceptance } from './decide/explain-refusal.ts';
import { parseHubName, type HubName } from './decide/parse-model-name.ts';
import { Pin, pinPath, PINS_DIRECTORY, type PinnedFile } from './decide/pin.ts';
import { fileUrl, type HubAccess } from './hub/hub-access.ts';
import type { AcceptedFiles } from './catalogue/accepted-files.ts';
import { defined } from '../schema/pod/kube-fields.ts';
import { LARGE_TEXT_BYTES, readRegularFile } from '../files/regular-file.ts';
import { parseJson } from '../platform/decide/parse-json.ts';
import { inTurns } from '../platform/semaphore.ts';
import { writeStoreFile } from './download/disk-room.ts';

export interface ModelSources {
  readonly pins: ReturnType<typeof createPins>;
  readonly licenses: ReturnType<typeof createLicenses>;
  readonly hub: HubAccess;
  /** Undefined where nobody can accept another file than that of the catalogue. */
  readonly acceptedFiles?: AcceptedFiles | undefined;
  /** Needs no network. */
  known(id: ModelId): Promise<CatalogueEntry | undefined>;
  /** `ok(undefined)`: the model must already be in the store. */
  resolve(id: ModelId, signal: AbortSignal): Promise<Result<CatalogueEntry | undefined>>;
  checkLicense(entry: CatalogueEntry): Promise<Result<void>>;
}

export interface ModelSourcesOptions {
  readonly root: string;
  readonly hub: HubAccess;
  readonly catalogue?: Catalogue | undefined;
  readonly given?: Pin | undefined;
  readonly acceptedLicenses?: readonly string[];
  readonly acceptedFiles?: AcceptedFiles | undefined;
  /** Memory for a model whose name leaves the quantisation open. */
  readonly fitsBytes?: () => Promise<number | undefined>;
}

export function createModelSources(options: ModelSourcesOptions): ModelSources {
  const { root, hub, given, catalogue = DEMO_CATALOGUE, acceptedLicenses = [], fitsBytes = async () => undefined } = options;
  const pins = createPins(root);
  const licenses = createLicenses(root, acceptedLicenses);

  async function known(id: ModelId): Promise<CatalogueEntry | undefined> {
    const entry = given?.id === id ? undefined : catalogue.get(id);
    if (entry !== undefined) return entry;
    const pin = given?.id === id ? given : await pins.read(id);
    return pin === undefined ? undefined : entryOf(pin, hub.endpoint);
  }

  async function resolveOnHub(id: ModelId, name: HubName, signal: AbortSignal): Promise<Result<CatalogueEntry>> {
    // Imported lazily, because undici is large.
    const { resolvePin } = await import('./hub/hub-client.ts');
    const pin = await resolvePin({ id, name, hub, fitsBytes: await fitsBytes() }, signal);
    if (!pin.ok) return pin;
    await pins.write(pin.value);
    const entry = entryOf(pin.value, hub.endpoint);
    return entry === undefined ? fail('stalled', 'ModelMissing', `"${id}" has no files; name another model`) : ok(entry);
  }

  return {
    pins,
    licenses,
    hub,
    acceptedFiles: options.acceptedFiles,
    known,
    async resolve(id, signal) {
      const found = await known(id);
      const refusal = found === undefined ? undefined : whyNotSelectable(found);
      if (refusal !== undefined) return fail('stalled', 'ModelMissing', refusal);
      if (found !== undefined) return ok(found);
      const parsed = parseHubName(id);
      if (parsed.kind === 'other') return ok(undefined);
      if (parsed.kind === 'invalid') return fail('stalled', 'ModelMissing', parsed.message);
      return resolveOnHub(id, parsed.name, signal);
    },
    async checkLicense(entry) {
      return needsAcceptance(entry, new Set()) ? judgeLicense(entry, await licenses.accepted()) : ok(undefined);
    },
  };
}

export function judgeLicense(entry: CatalogueEntry, accepted: ReadonlySet<string>): Result<void> {
  if (!needsAcceptance(entry, accepted)) return ok(undefined);
  const { id, license, licenseUrl } = entry;
  const read = licenseUrl === '' ? '' : ` (${licenseUrl})`;
  const problem = `The licence "${license}"${read} restricts the use of the model "${id}" and was not accepted`;
  return fail('stalled', 'LicenseNotAccepted', `${problem}; accept it with "svcctl model pull ${id} --accept-license"`);
}

export function entryOf(pin: Pin, endpoint: string): CatalogueEntry | undefined {
  const { id, isGated, provider = 'gguf', directory, license = '', licenseUrl = '' } = pin;
  const [first, ...more] = pin.files.flatMap((file) => fileOf(file, endpoint) ?? []);
  if (first === undefined) return undefined;
  const facts = { provider, ...(directory === undefined ? {} : { directory }), family: '', minVramBytes: 0, selectable: true };
  return { id, files: [first, ...more], license, licenseUrl, isGated, ...facts };
}

function fileOf({ path: file, sha256, sizeBytes, others, from, archive }: PinnedFile, endpoint: string): CatalogueFile | undefined {
  if (from.kind === 'import') return undefined;
  const url = from.kind === 'url' ? from.url : fileUrl(endpoint, from.repo, from.commit, from.path);
  const repo = from.repo === undefined ? {} : { repo: from.repo };
  return {
    path: file,
    from: { kind: 'url', url, sha256, sizeBytes, ...defined({ others }), ...repo },
    ...(archive === undefined ? {} : { archive }),
  };
}

const Accepted = z.array(z.object({ license: z.string(), model: z.string(), at: z.string() }));

const FILE = '.svc/accepted-licenses.json';

function createLicenses(root: string, fromSettings: readonly string[]) {
  const file = path.join(root, FILE);
  const read = async (): Promise<z.output<typeof Accepted>> =>
    Accepted.safeParse(parseJson(await readRegularFile(file).catch(() => '[]'))).data ?? [];
  return {
    /** Lower case. Includes those of the settings. */
    async accepted(): Promise<ReadonlySet<string>> {
      return new Set([...fromSettings, ...(await read()).map(({ license }) => license)].map((license) => license.toLowerCase()));
    },
    async accept(license: string, model: string): Promise<Result<void>> {
      await writeStoreFile(file, [...(await read()), { license, model, at: new Date().toISOString() }]);
      return ok(undefined);
    },
  };
}

export interface UrlModel {
  readonly id: ModelId;
  readonly url: string;
  readonly sha256: string;
}

/** Names a file at an address, so that it can be pulled like any other model. */
export async function pinUrl(sources: ModelSources, { id, url, sha256 }: UrlModel, signal: AbortSignal): Promise<Result<Pin>> {
  const known = await sources.known(id);
  const isOwn = known === undefined || (known.files[0].from.kind === 'url' && known.files[0].from.url === url);
  if (!isOwn || parseHubName(id).kind !== 'other' || !/\.gguf$/i.test(id))
    return fail('stalled', 'ModelMissing', `"${id}" cannot be the name of the model; use the path of a new ".gguf" file in the store`);
  const { askSource } = await import('./download/open-url.ts');
  const stated = await askSource(url, undefined, signal);
  if (!stated.ok) return stated;
  const { sizeBytes } = stated.value;
  const file = { path: id, sha256: sha256.toLowerCase(), sizeBytes, from: { kind: 'url' as const, url } };
  const pin: Pin = { version: 1, id, files: [file], isGated: false };
  await sources.pins.write(pin);
  return ok(pin);
}

export function createPins(root: string) {
  const parse = async (file: string): Promise<Pin | undefined> => {
    const text = await readRegularFile(path.join(root, file), { mostBytes: LARGE_TEXT_BYTES }).catch(() => undefined);
    return text === undefined ? undefined : Pin.safeParse(parseJson(text)).data;
  };
  return {
    /** Undefined if there is none or it cannot be read; then the name is resolved again. */
    async read(id: ModelId): Promise<Pin | undefined> {
      const pin = await parse(pinPath(id));
      return pin?.id === id ? pin : undefined;
    },
    async write(pin: Pin): Promise<void> {
      await writeStoreFile(path.join(root, pinPath(pin.id)), pin);
    },
    async remove(id: ModelId): Promise<void> {
      await rm(path.join(root, pinPath(id)), { force: true });
    },
    async list(): Promise<readonly Pin[]> {
      const names = await readdir(path.join(root, PINS_DIRECTORY)).catch(() => []);
      const pins = await inTurns(
        names.filter((name) => name.endsWith('.json')),
        async (name) => parse(`${PINS_DIRECTORY}/${name}`),
      );
      return pins.flatMap((pin) => pin ?? []);
    },
  };
}

/** Loads the generators of the demo models, which few services need. */
export const loadDemoToolbox = async () => await import('../../toolboxes/demo/demo-models.ts');
