/**
 * Installs the packages that package-lock.json pins, if necessary, and checks that a Node that can run the sources is available.
 * Every npm script starts with it. It runs on Node 18 or newer and imports no packages. If nothing has to be done, it reads two files.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkNode } from './install/check-node.mjs';
import { withInstallLock } from './install/install-lock.mjs';
import { missingPackages, readStamp, stampFor, writeStamp } from './install/installed.mjs';
import { installPackages } from './install/install-packages.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const print = (line) => process.stderr.write(`${line}\n`);

try {
  const wanted = stampFor(root);
  if (readStamp(root) !== wanted) {
    mkdirSync(join(root, '.svc'), { recursive: true });
    await withInstallLock(join(root, '.svc', 'install.lock'), print, (addOwner) => install(wanted, addOwner));
  }
} catch (error) {
  print(error?.isUserError === true ? error.message : `Could not install the packages: ${error?.stack ?? error}`);
  process.exitCode = error?.exitCode ?? 1;
}

async function install(wanted, addOwner) {
  // Another process may have installed them while this one waited for the lock.
  if (readStamp(root) === wanted) return;
  if (missingPackages(root).length > 0) await installPackages(root, print, addOwner);
  checkNode(root, print);
  writeStamp(root, wanted);
}
