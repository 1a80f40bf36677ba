/**
 * Installs the embedded engine on demand: its packages are some 100 MB on disk, which a machine with llama-server or podman never
 * needs. They go into a directory of the state, exactly as `toolboxes/embedded/package-lock.json` has them, and no script of them runs.
 */
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { copyFile, link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fail, ok, type Result } from '../../schema/failure.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';

export interface EmbeddedEngineOptions {
  /** Absolute; where the engine's `node_modules` go. */
  readonly dir: string;
  /** What npm is run with: its `PATH` must have npm. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called with a line to show when something takes long. */
  readonly onProgress: (message: string) => void;
  /** The engine's sources. Default: this checkout's. */
  readonly sources?: string;
}

const SOURCES = path.resolve(import.meta.dirname, '../../../toolboxes/embedded');
const LOCKED = ['package.json', 'package-lock.json'] as const;
const LOCK_POLL_MS = 200;
/** As much of npm's output as tells why it failed. */
const SHOWN_CHARACTERS = 600;

/** Answers the beginning of an argument vector that takes llama-server's flags. Cheap when it is installed already. */
export async function ensureEmbeddedEngine(
  options: EmbeddedEngineOptions,
  signal: AbortSignal,
): Promise<Result<readonly [string, ...string[]]>> {
  const { dir, sources = SOURCES } = options;
  const command = [process.execPath, path.join(sources, 'main.ts'), '--modules', dir] as const;
  try {
    const wanted = await fingerprint(sources);
    if ((await installed(dir)) === wanted) return ok(command);
    await mkdir(dir, { recursive: true });
    await takeLock(options, signal);
    try {
      // another process may have done it while this one waited
      if ((await installed(dir)) === wanted) return ok(command);
      const done = await install(options, sources, signal);
      if (!done.ok) return done;
      await writeFile(stampOf(dir), wanted);
      return ok(command);
    } finally {
      await rm(lockOf(dir), { force: true });
    }
  } catch (error) {
    return fail('retry', 'EngineInstallFailed', `The embedded engine cannot be installed into "${dir}": ${messageOf(error)}`);
  }
}

const stampOf = (dir: string): string => path.join(dir, 'installed');
const lockOf = (dir: string): string => path.join(dir, 'install.lock');

async function fingerprint(sources: string): Promise<string> {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}\n`);
  for (const name of LOCKED) hash.update(await readFile(path.join(sources, name)));
  return hash.digest('hex');
}

async function installed(dir: string): Promise<string | undefined> {
  return readFile(stampOf(dir), 'utf8').catch(() => undefined);
}

/** The lock holds its owner's process id, so that one that a crash left behind is found out. */
async function takeLock(options: EmbeddedEngineOptions, signal: AbortSignal): Promise<void> {
  const lock = lockOf(options.dir);
  // linked into place, so that a lock is never seen without its owner
  const own = `${lock}.${randomUUID()}`;
  await writeFile(own, String(process.pid));
  let told = false;
  for (;;) {
    try {
      await link(own, lock);
      await rm(own, { force: true });
      return;
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
    const owner = await readFile(lock, 'utf8').catch(() => '');
    if (owner !== '' && !isAlive(Number(owner))) await rm(lock, { force: true });
    if (!told) options.onProgress('Waiting for another process that installs the embedded engine');
    told = true;
    await sleep(LOCK_POLL_MS, undefined, { signal }).catch(async (error: unknown) => {
      await rm(own, { force: true });
      throw error;
    });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

async function install(options: EmbeddedEngineOptions, sources: string, signal: AbortSignal): Promise<Result<void>> {
  const { dir } = options;
  options.onProgress('Installing the embedded engine: about 40 MB to download, once');
  await rm(stampOf(dir), { force: true });
  for (const name of LOCKED) await copyFile(path.join(sources, name), path.join(dir, name));
  const npm = await runNpm(
    // a connection that stalls is given up and tried again after a minute, not after npm's five
    ['ci', '--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error', '--fetch-timeout=60000', '--prefix', dir],
    options,
    signal,
  );
  if (npm.code === 0) return ok(undefined);
  const message = `The embedded engine cannot be installed: npm ended with ${npm.code ?? 'a signal'}: ${npm.output}; make npm's registry reachable, or install llama-server`;
  return fail('retry', 'EngineInstallFailed', message);
}

async function runNpm(
  args: readonly string[],
  options: EmbeddedEngineOptions,
  signal: AbortSignal,
): Promise<{ readonly code: number | null; readonly output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', args, { cwd: options.dir, env: { ...options.env }, stdio: ['ignore', 'pipe', 'pipe'], signal });
    let output = '';
    const collect = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-SHOWN_CHARACTERS);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output: output.trim() }));
  });
}
