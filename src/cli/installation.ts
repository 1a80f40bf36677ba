/** The installed program: its version, its files, its default directories, and its settings in a checkout. */
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseEnv } from 'node:util';

export type Environment = Readonly<Record<string, string | undefined>>;

export const CHECKOUT = path.resolve(import.meta.dirname, '../..');

/** The toolbox images that are shipped. */
export const TOOLBOX_MANIFEST = path.join(CHECKOUT, 'manifests/toolboxes.toml');

/** `unknown` if the package has no readable `package.json`. */
export function readVersion(): string {
  try {
    return /"version": "([^"]+)"/.exec(readFileSync(path.join(CHECKOUT, 'package.json'), 'utf8'))?.[1] ?? 'unknown';
  } catch {
    return 'unknown';
  }
}

/** Settings for `--checkout`: everything in `.svc`, processes, loopback only. `env` takes precedence. */
export function withCheckoutSettings(env: Environment): Environment {
  const root = path.join(CHECKOUT, '.svc');
  return {
    SVC_LISTEN: '127.0.0.1:8080',
    SVC_CONFIG_DIR: path.join(root, 'config'),
    SVC_STATE_DIR: path.join(root, 'state'),
    SVC_RUNTIME: 'process',
    SVC_ON_EXIT: 'stop',
    ...env,
  };
}

/** Settings of the service of this machine, as far as this user may read its `api.env`. `env` takes precedence. */
export function withServiceSettings(env: Environment): Environment {
  const file = path.join(configDirOf(env), 'api.env');
  try {
    // Reading a named pipe would wait for a writer.
    return statSync(file).isFile() ? { ...parseEnv(readFileSync(file, 'utf8')), ...env } : env;
  } catch {
    return env;
  }
}

/** The same default as in `settings.ts`, whose other settings need not be valid here. */
export const configDirOf = ({ SVC_CONFIG_DIR: dir = '/etc/svc' }: Environment): string => path.resolve(dir);

/** The same default as in `settings.ts`. An empty variable counts as unset. */
export function stateDirOf({ SVC_STATE_DIR: dir }: Environment): string {
  return path.resolve(dir === undefined || dir === '' ? '/var/lib/svc' : dir);
}

/** Reads the catalogue as a service with this environment does. */
export async function readCatalogue(env: Environment) {
  const [{ readCatalogueOnce, UPDATED_CATALOGUE }, { ACCEPTED_FILES }, { readHubAccess }, { PROVIDERS }, { PROVIDER_KIND_NAMES }] =
    await Promise.all([
      import('../models/catalogue/catalogue-source.ts'),
      import('../models/catalogue/accepted-files.ts'),
      import('../models/hub/hub-access.ts'),
      import('../providers/registry.ts'),
      import('../schema/slot/provider-kinds.ts'),
    ]);
  const providers = PROVIDER_KIND_NAMES.filter((kind) => Object.hasOwn(PROVIDERS, kind));
  const acceptedFile = path.join(stateDirOf(env), ACCEPTED_FILES);
  const updated = { file: path.join(stateDirOf(env), UPDATED_CATALOGUE), key: env['SVC_CATALOGUE_KEY'] };
  const local = path.join(configDirOf(env), 'models.toml');
  return readCatalogueOnce({ local, acceptedFile, updated, hub: readHubAccess(env), providers });
}
