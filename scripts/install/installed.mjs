/** Checks whether node_modules contains what package-lock.json pins: quickly by a stamp file, or else by npm's own record. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const stampFile = (root) => join(root, 'node_modules', '.svc-stamp');

/** Returns the stamp for the lock file and the platform, because a checkout may be mounted on another machine. */
export function stampFor(root) {
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  return `${lock} ${process.platform}-${process.arch}\n`;
}

export function readStamp(root) {
  try {
    return readFileSync(stampFile(root), 'utf8');
  } catch {
    return undefined;
  }
}

export function writeStamp(root, stamp) {
  const temporary = `${stampFile(root)}.${process.pid}`;
  writeFileSync(temporary, stamp);
  renameSync(temporary, stampFile(root));
}

/** Returns the paths of locked packages that this platform needs and that are not installed in the locked version. */
export function missingPackages(root) {
  const locked = readPackages(join(root, 'package-lock.json')) ?? {};
  const present = readPackages(join(root, 'node_modules', '.package-lock.json')) ?? {};
  return Object.entries(locked)
    .filter(([path, entry]) => path !== '' && isNeeded(entry))
    .filter(([path, entry]) => present[path]?.version !== entry.version || !existsSync(join(root, path, 'package.json')))
    .map(([path]) => path);
}

/** An optional package is needed only if it is for this platform. If it also requires a certain libc, npm decides. */
function isNeeded(entry) {
  if (entry.optional !== true) return true;
  if (entry.os === undefined || entry.cpu === undefined || entry.libc !== undefined) return false;
  return fits(entry.os, process.platform) && fits(entry.cpu, process.arch);
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    return undefined;
  }
}

/** Evaluates the `os` or `cpu` of a package: a list of supported names, or of unsupported ones with a leading "!". */
function fits(names, own) {
  if (names === undefined) return true;
  const list = [names].flat();
  if (list.includes(`!${own}`)) return false;
  return list.includes(own) || list.includes('any') || list.every((name) => name.startsWith('!'));
}
