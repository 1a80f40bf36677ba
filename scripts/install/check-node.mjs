/** Checks that the Node that npm scripts find first runs the sources unchanged, with type stripping and without flags or warnings. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { userError } from './user-error.mjs';

const NEEDED = [24, 12];

export function checkNode(root, print) {
  const bundled = linkBundled(root);
  const version = versionOf(bundled);
  if (version !== undefined && isNewEnough(version)) return;
  const own = process.execPath.startsWith(join(root, 'node_modules')) ? undefined : process.version;
  if (own !== undefined && isNewEnough(own)) {
    // A bundled Node that does not run here (because of another libc, for example) would be found before the one that does.
    if (version === undefined) rmSync(bundled, { force: true });
    else print(`Using Node ${own} of this system`);
    return;
  }
  const platform = `${process.platform}-${process.arch}`;
  throw userError(
    `Install Node ${NEEDED.join('.')} or newer and run this again: no npm package provides a Node for "${platform}"${own === undefined ? '' : `, and this system has ${own}`}`,
  );
}

/** npm 10 removes this link again where the lock file lists the same program for other platforms. Returns its path. */
function linkBundled(root) {
  const link = join(root, 'node_modules', '.bin', 'node');
  const name = `node-${process.platform}-${process.arch}`;
  if (!existsSync(link) && existsSync(join(root, 'node_modules', name, 'bin', 'node'))) {
    mkdirSync(join(root, 'node_modules', '.bin'), { recursive: true });
    rmSync(link, { force: true });
    symlinkSync(join('..', name, 'bin', 'node'), link);
  }
  return link;
}

function versionOf(program) {
  const run = spawnSync(program, ['--version'], { encoding: 'utf8', timeout: 20_000 });
  return run.status === 0 ? run.stdout.trim() : undefined;
}

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  return major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
}
