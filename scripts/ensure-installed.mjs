/**
 * Sees to it that what package-lock.json pins is installed, and that a Node that can run the sources is among it.
 * Every npm script begins with it. It runs on any Node from 18 on and imports no package; when nothing is to do it reads two files.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkNode } from './install/check-node.mjs';
import { withInstallLock } from './install/install-lock.mjs';
import { missingPackages, readStamp, stampFor, writeStamp } from './install/installed.mjs';
import { installPackages } from './install/install-packages.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const say = (line) => process.stderr.write(`${line}\n`);

try {
  const wanted = stampFor(root);
  if (readStamp(root) !== wanted) {
    mkdirSync(join(root, '.svc'), { recursive: true });
    await withInstallLock(join(root, '.svc', 'install.lock'), say, (own) => install(wanted, own));
  }
} catch (error) {
  say(error?.told === true ? error.message : `Could not install the packages: ${error?.stack ?? error}`);
  process.exitCode = error?.exitCode ?? 1;
}

async function install(wanted, own) {
  // Another process may have done it while this one waited for the lock.
  if (readStamp(root) === wanted) return;
  if (missingPackages(root).length > 0) await installPackages(root, say, own);
  checkNode(root, say);
  writeStamp(root, wanted);
}
