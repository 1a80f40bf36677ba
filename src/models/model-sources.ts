/**
 * Where the files of a model come from, whatever its name is: an id of the catalogue, a name on the Hub, or a file that was pulled or imported under a name of its
 * own. A name on the Hub is resolved once, at its first pull; what it was resolved to is kept as a pin.
 */
import { fail, ok, type Result } from '../schema/failure.ts';
import type { ModelId } from '../schema/names.ts';
import { DEMO_CATALOGUE, whyNotSelectable, type Catalogue, type CatalogueEntry, type CatalogueFile } from './catalogue.ts';
import { chooseFiles } from './decide/choose-files.ts';
import { needsAcceptance } from './decide/needs-acceptance.ts';
import { parseHubName, type HubName } from './decide/parse-model-name.ts';
import { pinnedFiles, type Pin, type PinnedFile } from './decide/pin.ts';
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
  /** Licences that the settings accept. */
  readonly acceptedLicenses?: readonly string[];
  /** Memory for a model where its name does not say which quantisation is wanted. Undefined: unknown. */
  readonly fitsBytes?: () => Promise<number | undefined>;
}

export function createModelSources(options: ModelSourcesOptions): ModelSources {
  const { root, hub, catalogue = DEMO_CATALOGUE, acceptedLicenses = [], fitsBytes = async () => undefined } = options;
  const pins = createPins(root);
  const licenses = createLicenses(root, acceptedLicenses);

  async function known(id: ModelId): Promise<CatalogueEntry | undefined> {
    const entry = catalogue.get(id);
    if (entry !== undefined) return entry;
    const pin = await pins.read(id);
    return pin === undefined ? undefined : entryOf(pin, hub.endpoint);
  }

  async function resolveOnHub(id: ModelId, name: HubName, signal: AbortSignal): Promise<Result<CatalogueEntry>> {
    // Imported with the first name that is resolved, because undici is large.
    const { createHubClient } = await import('./hub/hub-client.ts');
    const client = createHubClient(hub);
    const repo = await client.describe(name.repo, signal);
    if (!repo.ok) return repo;
    const { commit, license, licenseUrl, isGated } = repo.value;
    const files = await client.list(name.repo, commit, signal);
    if (!files.ok) return files;
    const choice = chooseFiles(files.value, name, await fitsBytes());
    if (choice.kind === 'none') return fail('stalled', 'ModelMissing', choice.message);
    if (choice.kind === 'too-large') return fail('stalled', 'ModelTooLarge', choice.message);
    const pinned = pinnedFiles({ repo: name.repo, commit, chosen: choice.files });
    if ('problem' in pinned) return fail('stalled', 'ModelMissing', `Use another file or repository: ${pinned.problem}`);
    const pin: Pin = {
      version: 1,
      id,
      files: [...pinned.files],
      isGated,
      ...(license === undefined ? {} : { license }),
      ...(licenseUrl === undefined ? {} : { licenseUrl }),
    };
    await pins.write(pin);
    const entry = entryOf(pin, hub.endpoint);
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
      if (!needsAcceptance(entry, await licenses.accepted())) return ok(undefined);
      const { id, license, licenseUrl } = entry;
      const read = licenseUrl === '' ? '' : ` (${licenseUrl})`;
      const message = `Read the licence "${license}"${read} of the model "${id}", and accept it with "svcctl model pull ${id} --accept-license": it restricts the use of the model`;
      return fail('stalled', 'LicenseNotAccepted', message);
    },
  };
}

/** Undefined for a pin of which no file can be downloaded: it was imported. */
function entryOf(pin: Pin, endpoint: string): CatalogueEntry | undefined {
  const { id, isGated, license = '', licenseUrl = '' } = pin;
  const [first, ...more] = pin.files.flatMap((file) => fileOf(file, endpoint) ?? []);
  if (first === undefined) return undefined;
  const facts = { provider: 'gguf', family: '', minVramBytes: 0, selectable: true } as const;
  return { id, files: [first, ...more], license, licenseUrl, isGated, ...facts };
}

function fileOf({ path, sha256, sizeBytes, from }: PinnedFile, endpoint: string): CatalogueFile | undefined {
  switch (from.kind) {
    case 'hub':
      return { path, from: { kind: 'url', url: fileUrl(endpoint, from.repo, from.commit, from.path), sha256, sizeBytes, repo: from.repo } };
    case 'url':
      return { path, from: { kind: 'url', url: from.url, sha256, sizeBytes } };
    case 'import':
      return undefined;
    default:
      return from satisfies never;
  }
}
