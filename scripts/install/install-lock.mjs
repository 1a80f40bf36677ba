/**
 * One installation at a time, over processes: a directory is made (which only one can do) and touched while its owner lives.
 * A lock that nobody has touched for a while, and whose processes are gone, is taken over.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const TOUCH_MS = 1_000;
/** Ten missed touches: a machine that swaps may miss some. */
const STALE_MS = 10_000;
const LOOK_MS = 250;

/** `work` is given a function with which it names a process of its own that may outlive it. */
export async function withInstallLock(path, say, work) {
  let told = false;
  while (!take(path)) {
    if (removeStale(path)) continue;
    if (!told) say('Waiting for another process that is installing the packages');
    told = true;
    await sleep(LOOK_MS);
  }
  const beat = setInterval(() => touch(path), TOUCH_MS);
  try {
    return await work((pid) => writeOwners(path, [process.pid, pid]));
  } finally {
    clearInterval(beat);
    rmSync(path, { recursive: true, force: true });
  }
}

function take(path) {
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
    // Taken away by hand; the work under way goes on.
  }
}

function removeStale(path) {
  const seen = look(path);
  if (seen === undefined) return true;
  if (Date.now() - seen.touchedAt < STALE_MS || isAlive(seen.owners)) return false;
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    return true;
  }
  // Someone else may have replaced the stale lock between the look and the rename: give theirs back.
  if (look(aside)?.inode !== seen.inode) renameSync(aside, path);
  else rmSync(aside, { recursive: true, force: true });
  return true;
}

function look(path) {
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

/** Any of the owners: npm outlives the process that started it for a moment. */
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
