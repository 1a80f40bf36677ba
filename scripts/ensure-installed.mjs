/**
 * Installs the packages that package-lock.json pins if some are missing, and checks that a Node that can run the sources is available: "npm start" and "npm test" begin with it.
 * With `--check`, as in the other npm scripts, it installs nothing and fails if packages are missing. It runs on Node 18 or newer, imports no packages, and reads two files if nothing has to be done.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkNode } from './install/check-node.mjs';
import { withInstallLock } from './install/install-lock.mjs';
import { missingPackages, readStamp, stampFor, writeStamp } from './install/installed.mjs';
import { installPackages } from './install/install-packages.mjs';
import { userError } from './install/user-error.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const print = (line) => process.stderr.write(`${line}\n`);

try {
  const wanted = stampFor(root);
  if (readStamp(root) !== wanted) {
    if (process.argv.includes('--check')) requirePackages();
    mkdirSync(join(root, '.svc'), { recursive: true });
    await withInstallLock(join(root, '.svc', 'install.lock'), print, (addOwner) => install(wanted, addOwner));
  }
} catch (error) {
  print(error?.isUserError === true ? error.message : `Could not install the packages: ${error?.stack ?? error}`);
  process.exitCode = error?.exitCode ?? 1;
}

function requirePackages() {
  const missing = missingPackages(root);
  if (missing.length > 0)
    throw userError(`Packages are missing: ${missing.length} of package-lock.json, such as "${missing[0]}"; run "npm ci"`);
}

async function install(wanted, addOwner) {
  // Another process may have installed them while this one waited for the lock.
  if (readStamp(root) === wanted) return;
  if (missingPackages(root).length > 0) await installPackages(root, print, addOwner);
  checkNode(root, print);
  writeStamp(root, wanted);
}
