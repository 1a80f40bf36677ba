/**
 * Adds the platform packages to package-lock.json that npm omits if the registry does not have them: "npm ci" refuses a lock file without them.
 * An entry has the version that the parent names, and the platforms that the name of the package states.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unlockedPackages } from './install/unlocked-packages.mjs';

const file = join(dirname(dirname(fileURLToPath(import.meta.url))), 'package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8'));

for (const { name, version, parent } of unlockedPackages(lock.packages)) {
  const [, os, cpu, abi = ''] =
    /(?:^|[/-])(aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32)-([a-z0-9]+)(?:-(\w+))?$/.exec(name) ?? [];
  if (os === undefined || !/^\d/.test(version))
    throw new Error(`Add "${name}" to package-lock.json: its name states no platform, or its parent no exact version`);
  const libc = { gnu: 'glibc', musl: 'musl' }[abi];
  const { dev, license, engines } = lock.packages[parent];
  const entry = { version, cpu: [cpu], dev, ...(libc && { libc: [libc] }), license, optional: true, os: [os], engines };
  lock.packages[`node_modules/${name}`] = entry;
}
const [[root, own], ...others] = Object.entries(lock.packages);
lock.packages = Object.fromEntries([[root, own], ...others.sort(([a], [b]) => a.localeCompare(b, 'en'))]);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
