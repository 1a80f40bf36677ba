/**
 * Where the files of a model come from, whatever its name is: an id of the catalogue, a name on the Hub, or a file that was pulled or imported under a name of its
 * own. A name on the Hub is resolved once, at its first pull; what it was resolved to is kept as a pin.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { ModelId } from '../schema/words/names.ts';
import { DEMO_CATALOGUE, whyNotSelectable, type Catalogue, type CatalogueEntry, type CatalogueFile } from './catalogue/catalogue.ts';
import { needsAcceptance, explainRefusal } from './decide/explain-refusal.ts';
import { parseHubName, type HubName } from './decide/parse-model-name.ts';
import type { Pin, PinnedFile } from './decide/pin.ts';
import { fileUrl, type HubAccess } from './hub/hub-access.ts';
import { createPins, type Pins } from './pins.ts';
import { parseJson } from '../platform/decide/parse-json.ts';
import { failUnlessWritable } from './download/disk-room.ts';
import { codeOf, messageOf } from '../platform/error-text.ts';
import { connectTo, discard, openUrl } from './download/open-url.ts';

export interface ModelSources {
  readonly pins: Pins;
  readonly licenses: Licenses;
  readonly hub: HubAccess;
  /** Returns what is known of the model without asking anyone. */
  known(id: ModelId): Promise<CatalogueEntry | undefined>;
  /** Asks the Hub if necessary. `ok(undefined)`: nobody provides this model, so its file must be in the store. */
  resolve(id: ModelId, signal: AbortSignal): Promise<Result<CatalogueEntry | undefined>>;
  /** Fails unless the licence of the model is open or was accepted. */
  checkLicense(entry: CatalogueEntry): Promise<Result<void>>;
}

export interface ModelSourcesOptions {
  /** Absolute path of the store. */
  readonly root: string;
  readonly hub: HubAccess;
  readonly catalogue?: Catalogue | undefined;
  /** What one name was resolved to elsewhere. It comes before the catalogue and the pins of the store. */
  readonly given?: Pin | undefined;
  /** Licences that the settings accept. */
  readonly acceptedLicenses?: readonly string[];
  /** Memory for a model where its name does not say which quantisation is wanted. Undefined: unknown. */
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
    // Imported with the first name that is resolved, because undici is large.
    const { resolvePin } = await import('./hub/hub-client.ts');
    const pin = await resolvePin({ id, name, hub, fitsBytes: await fitsBytes() }, signal);
    if (!pin.ok) return pin;
    await pins.write(pin.value);
    const entry = entryOf(pin.value, hub.endpoint);
    return entry === undefined ? fail('stalled', 'ModelMissing', `Name another file: "${id}" has none`) : ok(entry);
  }

  return {
    pins,
    licenses,
    hub,
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
      return judgeLicense(entry, await licenses.accepted());
    },
  };
}

/** Fails unless the licence of the model is open or was accepted. `accepted`: in lower case. */
export function judgeLicense(entry: CatalogueEntry, accepted: ReadonlySet<string>): Result<void> {
  if (!needsAcceptance(entry, accepted)) return ok(undefined);
  const { id, license, licenseUrl } = entry;
  const read = licenseUrl === '' ? '' : ` (${licenseUrl})`;
  const message = `Read the licence "${license}"${read} of the model "${id}", and accept it with "svcctl model pull ${id} --accept-license": it restricts the use of the model`;
  return fail('stalled', 'LicenseNotAccepted', message);
}

/** Undefined for a pin of which no file can be downloaded: it was imported. */
export function entryOf(pin: Pin, endpoint: string): CatalogueEntry | undefined {
  const { id, isGated, provider = 'gguf', directory, license = '', licenseUrl = '' } = pin;
  const [first, ...more] = pin.files.flatMap((file) => fileOf(file, endpoint) ?? []);
  if (first === undefined) return undefined;
  const facts = { provider, ...(directory === undefined ? {} : { directory }), family: '', minVramBytes: 0, selectable: true };
  return { id, files: [first, ...more], license, licenseUrl, isGated, ...facts };
}

function fileOf({ path, sha256, sizeBytes, from, ...pinned }: PinnedFile, endpoint: string): CatalogueFile | undefined {
  const archive = pinned.archive === undefined ? {} : { archive: pinned.archive };
  switch (from.kind) {
    case 'hub':
      return {
        path,
        from: { kind: 'url', url: fileUrl(endpoint, from.repo, from.commit, from.path), sha256, sizeBytes, repo: from.repo },
        ...archive,
      };
    case 'url':
      return {
        path,
        from: { kind: 'url', url: from.url, sha256, sizeBytes, ...(from.repo === undefined ? {} : { repo: from.repo }) },
        ...archive,
      };
    case 'import':
      return undefined;
    default:
      return from satisfies never;
  }
}

/** Which licences were accepted: those of the setting, and those that somebody accepted for this store, who stay accepted. */

export interface Licenses {
  /** In lower case. */
  accepted(): Promise<ReadonlySet<string>>;
  /** Remembers that a licence was accepted, when, and for which model. */
  accept(license: string, model: string): Promise<void>;
}

const Accepted = z.array(z.object({ license: z.string(), model: z.string(), at: z.string() }));

/** Relative to the root of the store. */
const FILE = '.svc/accepted-licenses.json';

export function createLicenses(root: string, fromSettings: readonly string[]): Licenses {
  const file = path.join(root, FILE);
  const read = async (): Promise<z.output<typeof Accepted>> =>
    Accepted.safeParse(parseJson(await readFile(file, 'utf8').catch(() => '[]'))).data ?? [];
  return {
    async accepted() {
      return new Set([...fromSettings, ...(await read()).map(({ license }) => license)].map((license) => license.toLowerCase()));
    },
    async accept(license, model) {
      const all = [...(await read()), { license, model, at: new Date().toISOString() }];
      const part = `${file}.${randomUUID()}.part`;
      await failUnlessWritable(path.dirname(file));
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(part, `${JSON.stringify(all, undefined, 2)}\n`);
      await rename(part, file);
    },
  };
}

/** Gives a file at an address a name in the store, so that it can be pulled like any other model: asks for its size, and keeps its hash. */

export interface UrlModel {
  /** The name of the model, which is the path of its file in the store. */
  readonly id: ModelId;
  readonly url: string;
  /** Hexadecimal. */
  readonly sha256: string;
}

const SILENCE_MS = 30_000;

export async function pinUrl(sources: ModelSources, { id, url, sha256 }: UrlModel, signal: AbortSignal): Promise<Result<Pin>> {
  const known = await sources.known(id);
  const isOwn = known === undefined || (known.files[0].from.kind === 'url' && known.files[0].from.url === url);
  if (!isOwn || parseHubName(id).kind !== 'other' || !/\.gguf$/i.test(id))
    return fail('stalled', 'ModelMissing', `Use the path of a new ".gguf" file in the store as the name of the model, not "${id}"`);
  const sizeBytes = await askSize(url, signal);
  if (!sizeBytes.ok) return sizeBytes;
  const file = { path: id, sha256: sha256.toLowerCase(), sizeBytes: sizeBytes.value, from: { kind: 'url' as const, url } };
  const pin: Pin = { version: 1, id, files: [file], isGated: false };
  await sources.pins.write(pin);
  return ok(pin);
}

async function askSize(url: string, signal: AbortSignal): Promise<Result<number>> {
  const dispatcher = connectTo(url, SILENCE_MS);
  try {
    const opened = await openUrl({ url, dispatcher, headers: { range: 'bytes=0-0' } }, signal);
    if (!opened.ok) return opened;
    const { status, headers, body } = opened.value;
    discard(body);
    if (status !== 200 && status !== 206) return { ok: false, failure: explainRefusal(opened.value).failure };
    const range = /\/([0-9]+)$/.exec(String(headers['content-range'] ?? ''))?.[1];
    const size = Number(status === 206 ? range : headers['content-length']);
    if (Number.isSafeInteger(size) && size > 0) return ok(size);
    return fail('stalled', 'ModelSourceRefused', `Use another address than "${url}": its server does not say how large the file is`);
  } catch (error) {
    if (signal.aborted) throw error;
    return fail('retry', 'ModelPullFailed', `Check the address "${url}": ${messageOf(error) || codeOf(error)}`);
  } finally {
    await dispatcher.destroy().catch(() => undefined);
  }
}
