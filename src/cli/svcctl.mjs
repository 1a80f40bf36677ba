#!/usr/bin/env node
/**
 * The program "svcctl". It is JavaScript because Node caches the compiled form only of modules that are loaded after
 * `enableCompileCache`: it would strip the types of a TypeScript entry at each start, with a compiler that takes longer
 * to load than most verbs.
 */
import { enableCompileCache } from 'node:module';

// Importing "node:fs" would load modules that most verbs do not need.
const { mkdirSync, statSync } = process.getBuiltinModule('node:fs');
const { homedir } = process.getBuiltinModule('node:os');
const { join } = process.getBuiltinModule('node:path');

/**
 * Returns the directory for compiled code; undefined if none is safe. A user who can write to it controls this program,
 * so it must belong to this user alone. Node's default is below /tmp, where another user may have created it first.
 * The home directory may belong to another user under "sudo".
 */
function findCompileCache() {
  const { XDG_CACHE_HOME: cacheHome = '' } = process.env;
  const home = cacheHome.startsWith('/') ? cacheHome : homedir();
  const user = process.geteuid();
  try {
    if (statSync(home).uid !== user) return undefined;
    let directory = home;
    // One by one, because "recursive" never returns where the kernel refuses new names, as in /proc.
    for (const name of [...(home === cacheHome ? [] : ['.cache']), 'svc', 'compile']) {
      directory = join(directory, name);
      const facts = statSync(directory, { throwIfNoEntry: false });
      if (facts === undefined) mkdirSync(directory, { mode: 0o700 });
      else if (facts.uid !== user || (name !== '.cache' && (facts.mode & 0o022) !== 0)) return undefined;
    }
    return directory;
  } catch {
    // The home directory is missing or not writable: the program starts without the cache, more slowly.
    return undefined;
  }
}

// NODE_COMPILE_CACHE takes precedence: services and containers set a directory of their own.
const directory = process.env.NODE_COMPILE_CACHE === undefined ? findCompileCache() : undefined;
if (directory !== undefined) enableCompileCache(directory);
await import('./svcctl.ts');
