/**
 * Creates the build context of the service image: `node scripts/stage-image.mjs DIRECTORY`. Copies the production packages from node_modules, which
 * are those that were tested, without files that only compilers and users read. There is one folder for each layer of the image.
 */
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';

const root = dirname(import.meta.dirname);
const INSTALLED_IN = 'opt/svc';
/** Copied in addition to the packages. */
const SERVICE = ['src', 'package.json', 'toolboxes/manifest.json', 'LICENSE'];
const NOT_FOR_RUNNING = /\.(?:d\.[cm]?ts|map|md|markdown|flow)$/;
const LEGAL = /^(?:licen[cs]e|notice|copying)/i;

function stage(to) {
  const node = `node-linux-${process.arch}`;
  const production = productionPackages();
  if (!production.includes(`node_modules/${node}`))
    throw new Error(`Build the image on another platform: no package provides a Node for linux on "${process.arch}"`);
  stageNode(join(to, 'node'), node);
  for (const path of production) {
    if (!isNode(path) && !path.includes('/@types/')) copyPackage(path, join(to, 'packages'));
  }
  stageService(join(to, 'service'), node);
}

/** Returns the paths of the installed packages that are needed at run time. */
function productionPackages() {
  const { packages } = JSON.parse(readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .filter(([path, entry]) => path !== '' && entry.dev !== true && entry.devOptional !== true)
    .map(([path]) => path);
}

const isNode = (path) => /^node_modules\/node-(?:bin-)?(?:linux|darwin)-/.test(path);

/** Copies only the program, without headers and manuals. */
function stageNode(to, node) {
  const from = join(root, 'node_modules', node);
  const here = join(to, 'node_modules', node);
  mkdirSync(join(here, 'bin'), { recursive: true });
  for (const file of ['bin/node', 'LICENSE', 'package.json']) cpSync(join(from, file), join(here, file));
  chmodSync(join(here, 'bin/node'), 0o755);
  mkdirSync(join(to, 'node_modules/.bin'));
  symlinkSync(`../${node}/bin/node`, join(to, 'node_modules/.bin/node'));
}

/** Copies one package; nested packages have their own entries. */
function copyPackage(path, to) {
  const from = join(root, path);
  cpSync(from, join(to, path), {
    recursive: true,
    filter: (source) => relative(from, source) === '' || isNeeded(basename(source)),
  });
}

function isNeeded(name) {
  return name !== 'node_modules' && (LEGAL.test(name) || !NOT_FOR_RUNNING.test(name));
}

function stageService(to, node) {
  for (const path of SERVICE) cpSync(join(root, path), join(to, path), { recursive: true });
  const program = join(to, 'bin/svcctl');
  mkdirSync(dirname(program));
  // An absolute path, because the base image may not have "env".
  writeFileSync(program, `#!/${INSTALLED_IN}/node_modules/${node}/bin/node\nimport '../src/cli/svcctl.ts';\n`);
  chmodSync(program, 0o755);
}

const [, , directory] = process.argv;
if (directory === undefined) throw new Error('Pass the directory to stage into');
stage(resolve(directory));
