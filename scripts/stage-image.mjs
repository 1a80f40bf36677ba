/**
 * Lays out the context of the service's image: `node scripts/stage-image.mjs DIRECTORY`. Takes what lies in node_modules and belongs to production,
 * which is what was tested, and leaves out what only compilers and people read. One folder for each layer; nothing of the machine gets in.
 */
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';

const root = dirname(import.meta.dirname);
const INSTALLED_IN = 'opt/svc';
/** Beside the packages: the sources as they are, what the service reads at start, and the licence. */
const SERVICE = ['src', 'package.json', 'toolboxes/manifest.json', 'LICENSE'];
const NOT_FOR_RUNNING = /\.(?:d\.[cm]?ts|map|md|markdown|flow)$/;
const LEGAL = /^(?:licen[cs]e|notice|copying)/i;

function stage(to) {
  const node = `node-linux-${process.arch}`;
  const production = productionPackages();
  if (!production.includes(`node_modules/${node}`)) throw new Error(`No package brings a Node for linux on "${process.arch}"`);
  stageNode(join(to, 'node'), node);
  for (const path of production) {
    if (!isNode(path) && !path.includes('/@types/')) copyPackage(path, join(to, 'packages'));
  }
  stageService(join(to, 'service'), node);
}

/** Paths of the installed packages that the program needs when it runs. */
function productionPackages() {
  const { packages } = JSON.parse(readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .filter(([path, entry]) => path !== '' && entry.dev !== true && entry.devOptional !== true)
    .map(([path]) => path);
}

const isNode = (path) => /^node_modules\/node-(?:bin-)?(?:linux|darwin)-/.test(path);

/** The program alone: no headers, no manuals. */
function stageNode(to, node) {
  const from = join(root, 'node_modules', node);
  const here = join(to, 'node_modules', node);
  mkdirSync(join(here, 'bin'), { recursive: true });
  for (const file of ['bin/node', 'LICENSE', 'package.json']) cpSync(join(from, file), join(here, file));
  chmodSync(join(here, 'bin/node'), 0o755);
  mkdirSync(join(to, 'node_modules/.bin'));
  symlinkSync(`../${node}/bin/node`, join(to, 'node_modules/.bin/node'));
}

/** Packages inside of it have an entry of their own. */
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
  // The interpreter by its path: the base may have no "env".
  writeFileSync(program, `#!/${INSTALLED_IN}/node_modules/${node}/bin/node\nimport '../src/cli/svcctl.ts';\n`);
  chmodSync(program, 0o755);
}

const [, , directory] = process.argv;
if (directory === undefined) throw new Error('Name the directory to stage into');
stage(resolve(directory));
