/** Reads the catalogue for a command, as a service with the same environment does. */
import path from 'node:path';
import { readCatalogueOnce } from '../models/catalogue/catalogue-source.ts';
import { readHubAccess } from '../models/hub/hub-access.ts';
import { PROVIDERS } from '../providers/registry.ts';
import { PROVIDER_KIND_NAMES } from '../schema/slot/provider-kinds.ts';

/** The same default as in `settings.ts`, whose other settings need not be valid here. */
const CONFIG_DIR = '/etc/svc';

export async function readCatalogue(env: Readonly<Record<string, string | undefined>>) {
  const local = path.join(path.resolve(env['SVC_CONFIG_DIR'] ?? CONFIG_DIR), 'models.toml');
  const providers = PROVIDER_KIND_NAMES.filter((kind) => Object.hasOwn(PROVIDERS, kind));
  return await readCatalogueOnce({ local, hub: readHubAccess(env), providers });
}
