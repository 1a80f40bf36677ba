/**
 * Lets only one process install at a time. The lock is a directory, which only one process can create and which its owner touches
 * regularly. A lock that has not been touched for a while and whose processes no longer run is removed.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const TOUCH_MS = 1_000;
/** Ten missed touches: a machine that is swapping may miss some. */
const STALE_MS = 10_000;
const POLL_MS = 250;

/** Calls `work` with a function that registers a child process as a further owner, because it may outlive this process. */
export async function withInstallLock(path, print, work) {
  let reported = false;
  while (!acquire(path)) {
    if (removeStale(path)) continue;
    if (!reported) print('Waiting for another process that is installing the packages');
    reported = true;
    await sleep(POLL_MS);
  }
  const beat = setInterval(() => touch(path), TOUCH_MS);
  try {
    return await work((pid) => writeOwners(path, [process.pid, pid]));
  } finally {
    clearInterval(beat);
    rmSync(path, { recursive: true, force: true });
  }
}

function acquire(path) {
  try {
    mkdirSync(path);
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
  writeOwners(path, [process.pid]);
  return true;
}

function writeOwners(path, pids) {
  writeFileSync(join(path, 'owners'), JSON.stringify({ pids, host: hostname() }));
}

function touch(path) {
  try {
    utimesSync(path, new Date(), new Date());
  } catch {
    // Somebody has removed the lock; the installation continues.
  }
}

function removeStale(path) {
  const lock = readLock(path);
  if (lock === undefined) return true;
  if (Date.now() - lock.touchedAt < STALE_MS || isAlive(lock.owners)) return false;
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    return true;
  }
  // Another process may have replaced the stale lock before the rename: restore its lock.
  if (readLock(aside)?.inode !== lock.inode) renameSync(aside, path);
  else rmSync(aside, { recursive: true, force: true });
  return true;
}

function readLock(path) {
  try {
    const { mtimeMs, ino } = statSync(path);
    return { touchedAt: mtimeMs, inode: ino, owners: readOwners(path) };
  } catch {
    return undefined;
  }
}

function readOwners(path) {
  try {
    return JSON.parse(readFileSync(join(path, 'owners'), 'utf8'));
  } catch {
    return undefined;
  }
}

/** Whether any owner still runs: npm outlives the process that started it for a moment. */
function isAlive(owners) {
  if (owners === undefined || owners.host !== hostname()) return false;
  return owners.pids.some((pid) => {
    try {
      process.kill(pid, 0);
      return true;
    } catch (error) {
      return error.code === 'EPERM';
    }
  });
}
