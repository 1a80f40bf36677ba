/**
 * Builds the release archive for this platform: `npm run release [-- --out DIRECTORY] [--version VERSION]`. It contains everything that the service needs on a host: its
 * bundle, Node, the engines, the documentation, and the installer.
 *
 * `dist/` then holds the archive, its checksum, the installer, and, where dpkg-deb is installed, a package for Debian with the same contents. The same sources and packages yield the same archive, byte for byte: entries are sorted, have the time of the last commit and
 * belong to root. Nothing is downloaded if `node_modules` and the engines in `.svc` are complete.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { EMBEDDED_ENGINE } from '../src/providers/gguf/gguf-server.ts';
import { ensureEngine } from '../src/providers/install-engine.ts';
import { SPEECH_ENGINE } from '../src/providers/speech/speech-server.ts';
import { buildDashboard } from './stage/build-dashboard.mjs';
import { buildDeb, sourceTime } from './stage/build-deb.mjs';
import { NODE_PACKAGE, ROOT, stageNode, stagePackages } from './stage/stage-packages.mjs';
import { stageService } from './stage/stage-service.mjs';

const TOOLBOXES = ['embedded', 'gguf', 'image', 'npu', 'speech'].map((folder) => `toolboxes/${folder}`);
const INSTALLER = ['installer/install.sh', 'installer/render-chat-env.sh', 'installer/lib', 'installer/templates'];
const SHELLS = ['bash', 'zsh', 'fish'];
/** Links for shells, the sources that node-llama-cpp could build itself from, and what it has for other machines. */
const NOT_FOR_THE_ENGINE =
  /\/(?:\.bin|\.compile-cache|node-llama-cpp\/(?:llama\/gitRelease\.bundle|templates)|@node-llama-cpp\/linux-(?!ARCH(?:\/|$))[^/]+)(?:\/|$)/;

/** Finds its own place, so that the folder can be moved, and does not depend on what else is on the PATH. */
const LAUNCHER = `#!/bin/sh
# Runs svcctl with the Node of this release.
root=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$root/node_modules/${NODE_PACKAGE}/bin/node" "$root/src/cli/svcctl.mjs" "$@"
`;

async function buildRelease({ out, version }) {
  const name = `svc-${version}-linux-${process.arch}`;
  const work = mkdtempSync(join(tmpdir(), 'svc-release-'));
  try {
    const root = join(work, name);
    await buildDashboard();
    stageNode(root);
    stagePackages(root);
    await stageService(root, [...TOOLBOXES, ...INSTALLER, 'engines', 'CHANGELOG.md']);
    setVersion(root, version);
    await stageEngine(root, EMBEDDED_ENGINE, 'engine');
    await stageEngine(root, SPEECH_ENGINE, 'speech-engine');
    writeProgram(join(root, 'bin'), 'svcctl', LAUNCHER);
    writeCompletions(root);
    writeFileSync(join(root, 'SHA256SUMS'), checksums(root));
    execFileSync('chmod', ['-R', 'u=rwX,go=rX', root]);
    mkdirSync(out, { recursive: true });
    const archive = join(out, `${name}.tar.gz`);
    pack(work, name, archive);
    writeFileSync(`${archive}.sha256`, `${sha256(archive)}  ${name}.tar.gz\n`);
    writeProgram(out, 'install.sh', readFileSync(join(ROOT, 'installer/install.sh'), 'utf8'));
    const deb = buildDeb({ release: root, out, version });
    if (deb === undefined) process.stderr.write('No package for Debian was built: dpkg-deb is missing\n');
    else writeFileSync(`${deb}.sha256`, `${sha256(deb)}  ${basename(deb)}\n`);
    return [archive, ...(deb === undefined ? [] : [deb])];
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function setVersion(root, version) {
  const path = join(root, 'package.json');
  writeFileSync(path, readFileSync(path, 'utf8').replace(/("version": ")[^"]+/, `$1${version}`));
}

/** Copies the packages of an engine, so that models run on a host without npm and network. They are installed in `.svc`, as for the tests. */
async function stageEngine(root, engine, folder) {
  const dir = join(ROOT, '.svc', folder);
  const to = join(root, 'toolboxes', basename(engine.sources), 'shipped');
  const onProgress = (message) => process.stderr.write(`${message}\n`);
  const installed = await ensureEngine({ engine, dir, env: process.env, onProgress }, new AbortController().signal);
  if (!installed.ok) throw new Error(installed.failure.message);
  const unneeded = new RegExp(NOT_FOR_THE_ENGINE.source.replaceAll('ARCH', process.arch));
  cpSync(join(dir, 'node_modules'), join(to, 'node_modules'), { recursive: true, filter: (source) => !unneeded.test(source) });
  cpSync(join(dir, 'installed'), join(to, 'installed'));
}

function writeCompletions(root) {
  mkdirSync(join(root, 'completions'));
  for (const shell of SHELLS) {
    const script = execFileSync(join(root, 'bin/svcctl'), ['completion', shell], { env: { NODE_DISABLE_COMPILE_CACHE: '1' } });
    writeFileSync(join(root, `completions/svcctl.${shell}`), script);
  }
}

function writeProgram(folder, name, text) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text);
  chmodSync(join(folder, name), 0o755);
}

/** In the form that `sha256sum --check` reads. Links are left out: the installer checks that they lead to a file of the release. */
function checksums(root) {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
  return paths
    .toSorted()
    .map((path) => `${sha256(join(root, path))}  ${path}\n`)
    .join('');
}

const sha256 = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

function pack(work, name, archive) {
  const tar = join(work, 'release.tar');
  const owner = ['--owner=0', '--group=0', '--numeric-owner'];
  execFileSync('tar', [
    '--create',
    '--file',
    tar,
    '--format=gnu',
    '--sort=name',
    `--mtime=@${sourceTime()}`,
    ...owner,
    '--directory',
    work,
    name,
  ]);
  execFileSync('gzip', ['--no-name', '--force', tar]);
  cpSync(`${tar}.gz`, archive);
}

const { values } = parseArgs({ options: { out: { type: 'string', default: 'dist' }, version: { type: 'string' } } });
const { version: own } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const version = values.version ?? own;
if (!/^[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?$/.test(version))
  throw new Error(`Write --version as "1.2.3" or "1.2.3-rc.1", not "${version}"`);
process.stdout.write(`${(await buildRelease({ out: resolve(values.out), version })).join('\n')}\n`);
