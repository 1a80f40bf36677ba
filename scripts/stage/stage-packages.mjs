/** Copies what runs the service, for its image and its release archive: Node, and what the bundle leaves in node_modules, as it was tested. */
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

export const ROOT = dirname(dirname(import.meta.dirname));
/** The package with the Node for this machine. */
export const NODE_PACKAGE = `node-linux-${process.arch}`;
/** Only compilers and readers need these. */
const NOT_FOR_RUNNING = /\.(?:d\.[cm]?ts|map|md|markdown|flow)$/;
const LEGAL = /^(?:licen[cs]e|notice|copying)/i;

/** Packages with native code, which they look for beside themselves. */
export const NOT_BUNDLED = ['argon2'];
/** They build a package, and nothing loads them afterwards. */
const BUILD_TOOLS = ['cross-env', 'node-addon-api'];

/** Copies the packages that are not bundled, and those that they load, into `to`/node_modules. */
export function stagePackages(to) {
  const { packages } = readLock();
  const stage = (path) => {
    copyPackage(join(ROOT, path), join(to, path));
    for (const name of Object.keys(packages[path].dependencies ?? {})) {
      if (!BUILD_TOOLS.includes(name))
        stage(packages[`${path}/node_modules/${name}`] ? `${path}/node_modules/${name}` : `node_modules/${name}`);
    }
  };
  for (const name of NOT_BUNDLED) stage(`node_modules/${name}`);
}

/** Writes the licences of all packages, bundled or not, to `to`/THIRD-PARTY-LICENSES. */
export function stageLicences(to) {
  const { packages } = readLock();
  const texts = productionPackages()
    .toSorted()
    .map((path) => {
      const files = readdirSync(join(ROOT, path)).filter((name) => LEGAL.test(name));
      const legal = files.toSorted().map((name) => readFileSync(join(ROOT, path, name), 'utf8').trim());
      return [`${path.split('node_modules/').at(-1)} ${packages[path].version} (${packages[path].license})`, ...legal].join('\n\n');
    });
  writeFileSync(join(to, 'THIRD-PARTY-LICENSES'), `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`);
}

/** Copies only the program, without headers and manuals. */
export function stageNode(to) {
  if (!productionPackages().includes(`node_modules/${NODE_PACKAGE}`))
    throw new Error(`Build on another platform: no package provides a Node for linux on "${process.arch}"`);
  const from = join(ROOT, 'node_modules', NODE_PACKAGE);
  const here = join(to, 'node_modules', NODE_PACKAGE);
  mkdirSync(join(here, 'bin'), { recursive: true });
  for (const file of ['bin/node', 'LICENSE', 'package.json']) cpSync(join(from, file), join(here, file));
  chmodSync(join(here, 'bin/node'), 0o755);
  mkdirSync(join(to, 'node_modules/.bin'), { recursive: true });
  symlinkSync(`../${NODE_PACKAGE}/bin/node`, join(to, 'node_modules/.bin/node'));
}

/** Copies one package without the packages nested in it. */
function copyPackage(from, to) {
  cpSync(from, to, { recursive: true, filter: (source) => relative(from, source) === '' || isNeeded(basename(source)) });
}

/** Returns the paths of the installed packages that are needed at run time. */
function productionPackages() {
  return Object.entries(readLock().packages)
    .filter(([path, entry]) => path !== '' && entry.dev !== true && entry.devOptional !== true && !path.includes('/@types/'))
    .map(([path]) => path);
}

const readLock = () => JSON.parse(readFileSync(join(ROOT, 'node_modules/.package-lock.json'), 'utf8'));

function isNeeded(name) {
  return name !== 'node_modules' && (LEGAL.test(name) || !NOT_FOR_RUNNING.test(name));
}
