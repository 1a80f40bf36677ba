/** Packs a staged release as a package of Debian: the same tree, with its unit, links and the scripts in `installer/deb`. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ROOT } from './stage-packages.mjs';
import { MANUAL } from './stage-service.mjs';

const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' };
const TEMPLATES = join(ROOT, 'installer/templates');
const MAINTAINER = 'The svc project <svc@localhost>';
const SCRIPTS = ['preinst', 'postinst', 'prerm', 'postrm'];
/** Where a link of the package is, and what it leads to in `/opt/svc/current`. */
const LINKS = {
  'usr/bin/svcctl': 'bin/svcctl',
  'usr/share/bash-completion/completions/svcctl': 'completions/svcctl.bash',
  'usr/share/zsh/vendor-completions/_svcctl': 'completions/svcctl.zsh',
  'usr/share/fish/vendor_completions.d/svcctl.fish': 'completions/svcctl.fish',
  'usr/share/doc/svc/docs': 'docs',
};

/** Returns the path of the package, or undefined on a machine without dpkg-deb. */
export function buildDeb({ release, out, version }) {
  if (!hasDpkg()) return undefined;
  const root = mkdtempSync(join(tmpdir(), 'svc-deb-'));
  try {
    cpSync(release, join(root, 'opt/svc', version), { recursive: true, verbatimSymlinks: true });
    symlinkSync(version, join(root, 'opt/svc/current'));
    for (const [link, target] of Object.entries(LINKS)) linkTo(join(root, link), `/opt/svc/current/${target}`);
    writeText(join(root, 'usr/lib/systemd/system/svc-api.service'), unitText());
    writeText(join(root, 'usr/share/doc/svc/copyright'), readFileSync(join(ROOT, 'installer/deb/copyright'), 'utf8'));
    writeText(join(root, 'usr/share/lintian/overrides/svc'), readFileSync(join(ROOT, 'installer/deb/lintian-overrides'), 'utf8'));
    mkdirSync(join(root, 'usr', MANUAL, '..'), { recursive: true });
    writeFileSync(join(root, 'usr', `${MANUAL}.gz`), gzipSync(readFileSync(join(release, MANUAL)), { level: 9 }));
    writeFileSync(join(root, 'usr/share/doc/svc/changelog.gz'), gzipSync(changelog(version), { level: 9 }));
    execFileSync('chmod', ['-R', 'u=rwX,go=rX', root]);
    writeControl(root, version);
    const architecture = ARCHITECTURES[process.arch];
    const path = join(out, `svc_${debianVersion(version)}_${architecture}.deb`);
    // With the time of the sources and no owners, the same sources and packages yield the same package.
    const env = { PATH: process.env.PATH, SOURCE_DATE_EPOCH: sourceTime() };
    execFileSync('dpkg-deb', ['--root-owner-group', '-Zgzip', '-z6', '--build', root, path], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return path;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Seconds since 1970: `SOURCE_DATE_EPOCH`, or the time of the last commit, or that of the version's file where there is no repository. */
export function sourceTime() {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given !== undefined) return given;
  try {
    return execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return String(Math.floor(statSync(join(ROOT, 'package.json')).mtimeMs / 1000));
  }
}

function changelog(version) {
  const date = new Date(Number(sourceTime()) * 1000).toUTCString().replace('GMT', '+0000');
  return `svc (${debianVersion(version)}) unstable; urgency=medium

  * Release ${version}. /opt/svc/current/CHANGELOG.md lists the changes.

 -- ${MAINTAINER}  ${date}
`;
}

function hasDpkg() {
  try {
    execFileSync('dpkg-deb', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** A version before a release sorts below it. */
const debianVersion = (version) => version.replace('-', '~');

function unitText() {
  const text = readFileSync(join(TEMPLATES, 'svc-api.service'), 'utf8');
  return text
    .replace(/^#.*\n/, '# Of the package svc, which replaces it with each upgrade. Put changes into a drop-in: systemctl edit svc-api\n')
    .replace(/^@GROUPS@\n/m, '');
}

function writeControl(root, version) {
  const from = join(ROOT, 'installer/deb');
  const values = { VERSION: debianVersion(version), RELEASE: version, ARCHITECTURE: ARCHITECTURES[process.arch], KIBIBYTES: sizeKib(root) };
  const render = (name) => readFileSync(join(from, name), 'utf8').replaceAll(/@([A-Z]+)@/g, (place, key) => values[key] ?? place);
  for (const name of ['control', ...SCRIPTS]) writeText(join(root, 'DEBIAN', name), render(name));
  for (const name of SCRIPTS) execFileSync('chmod', ['755', join(root, 'DEBIAN', name)]);
}

function sizeKib(root) {
  return execFileSync('du', ['--apparent-size', '--summarize', '--block-size=1024', root], { encoding: 'utf8' }).split('\t')[0];
}

function linkTo(link, target) {
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(target, link);
}

function writeText(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
