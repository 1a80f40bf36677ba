/** Copies what runs the service, for its image and its release archive: Node, and the production packages from node_modules, which are those that were tested. */
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

export const ROOT = dirname(dirname(import.meta.dirname));
/** The package with the Node for this machine. */
export const NODE_PACKAGE = `node-linux-${process.arch}`;
/** Only compilers and readers need these. */
const NOT_FOR_RUNNING = /\.(?:d\.[cm]?ts|map|md|markdown|flow)$/;
const LEGAL = /^(?:licen[cs]e|notice|copying)/i;

/** Copies the packages into `to`/node_modules, without Node. */
export function stagePackages(to) {
  for (const path of productionPackages()) {
    if (!isNode(path) && !path.includes('/@types/')) copyPackage(join(ROOT, path), join(to, path));
  }
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
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'node_modules/.package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .filter(([path, entry]) => path !== '' && entry.dev !== true && entry.devOptional !== true)
    .map(([path]) => path);
}

const isNode = (path) => /^node_modules\/node-(?:bin-)?(?:linux|darwin)-/.test(path);

function isNeeded(name) {
  return name !== 'node_modules' && (LEGAL.test(name) || !NOT_FOR_RUNNING.test(name));
}
