/** The Node that npm's scripts will find first must run the sources as they are: type stripping without a flag or a warning. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { told } from './told.mjs';

const NEEDED = [24, 12];

export function checkNode(root, say) {
  const bundled = join(root, 'node_modules', '.bin', 'node');
  const version = versionOf(bundled);
  if (version !== undefined && isNewEnough(version)) return;
  const own = process.execPath.startsWith(join(root, 'node_modules')) ? undefined : process.version;
  if (own !== undefined && isNewEnough(own)) {
    // One that is there but does not run here (another libc, say) would stand in front of the one that does.
    if (version === undefined) rmSync(bundled, { force: true });
    else say(`Using Node ${own} of this system`);
    return;
  }
  const platform = `${process.platform}-${process.arch}`;
  throw told(
    `Install Node ${NEEDED.join('.')} or newer and run this again: no npm package brings a Node that runs on "${platform}"${own === undefined ? '' : `, and this system has ${own}`}`,
  );
}

function versionOf(program) {
  const run = spawnSync(program, ['--version'], { encoding: 'utf8', timeout: 20_000 });
  return run.status === 0 ? run.stdout.trim() : undefined;
}

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  return major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
}
