/** Whether node_modules holds what package-lock.json pins. The stamp answers at once; without it, npm's own record is compared. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const stampFile = (root) => join(root, 'node_modules', '.svc-stamp');

/** Changes with the lock file, and with the platform: a checkout may be mounted on another machine. */
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

/** Paths of locked packages that this platform needs and that are not there in the locked version. Empty after `npm ci` by hand as well. */
export function missingPackages(root) {
  const locked = readPackages(join(root, 'package-lock.json')) ?? {};
  const present = readPackages(join(root, 'node_modules', '.package-lock.json')) ?? {};
  return Object.entries(locked)
    .filter(([path, entry]) => path !== '' && isNeeded(entry))
    .filter(([path, entry]) => present[path]?.version !== entry.version || !existsSync(join(root, path, 'package.json')))
    .map(([path]) => path);
}

/** An optional package may be absent unless it was made for this platform; where a libc is named too, npm knows better. */
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

/** A package's `os` or `cpu`: names that fit, or names with "!" in front that do not. */
function fits(names, own) {
  if (names === undefined) return true;
  const list = [names].flat();
  if (list.includes(`!${own}`)) return false;
  return list.includes(own) || list.includes('any') || list.every((name) => name.startsWith('!'));
}
