#!/usr/bin/env node
/**
 * The program "svcctl". This file is JavaScript, because Node keeps the compiled form only of what is loaded after `enableCompileCache`: it would strip the types of a TypeScript file again at each start,
 * with a compiler that takes longer to load, and more memory, than most verbs.
 */
import { enableCompileCache } from 'node:module';

// Importing "node:fs" would also load what most verbs do not need.
const { mkdirSync, statSync } = process.getBuiltinModule('node:fs');
const { homedir } = process.getBuiltinModule('node:os');
const { join } = process.getBuiltinModule('node:path');

/**
 * Returns the directory for compiled code, or undefined if there is none that is safe: who can write to it decides what this program does, so it must be of this user alone. Node's own default is in the
 * directory for temporary files, where another user may have been first. With "sudo", the home directory can be that of another user.
 */
function findCompileCache() {
  const { XDG_CACHE_HOME: cacheHome = '' } = process.env;
  const home = cacheHome.startsWith('/') ? cacheHome : homedir();
  const user = process.geteuid();
  try {
    if (statSync(home).uid !== user) return undefined;
    let directory = home;
    // One after another, because "recursive" never returns where the kernel refuses new names, as in /proc.
    for (const name of [...(home === cacheHome ? [] : ['.cache']), 'svc', 'compile']) {
      directory = join(directory, name);
      const facts = statSync(directory, { throwIfNoEntry: false });
      if (facts === undefined) mkdirSync(directory, { mode: 0o700 });
      else if (facts.uid !== user || (name !== '.cache' && (facts.mode & 0o022) !== 0)) return undefined;
    }
    return directory;
  } catch {
    // A home directory that is missing or cannot be written to: without the cache, the program only starts more slowly.
    return undefined;
  }
}

// NODE_COMPILE_CACHE has the last word: services and containers name a directory of their own with it.
const directory = process.env.NODE_COMPILE_CACHE === undefined ? findCompileCache() : undefined;
if (directory !== undefined) enableCompileCache(directory);
await import('./svcctl.ts');
