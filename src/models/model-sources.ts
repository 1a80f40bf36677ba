/**
 * Where the files of a model come from, whatever its name is: an id of the catalogue, a name on the Hub, or a file that was pulled or imported under a name of its
 * own. A name on the Hub is resolved once, at its first pull; what it was resolved to is kept as a pin.
 */
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { ModelId } from '../schema/words/names.ts';
import { DEMO_CATALOGUE, whyNotSelectable, type Catalogue, type CatalogueEntry, type CatalogueFile } from './catalogue/catalogue.ts';
import { needsAcceptance } from './decide/needs-acceptance.ts';
import { parseHubName, type HubName } from './decide/parse-model-name.ts';
import type { Pin, PinnedFile } from './decide/pin.ts';
import { fileUrl, type HubAccess } from './hub/hub-access.ts';
import { createLicenses, type Licenses } from './licenses.ts';
import { createPins, type Pins } from './pins.ts';

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
    const { resolvePin } = await import('./hub/resolve-pin.ts');
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
