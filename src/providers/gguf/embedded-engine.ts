/**
 * Installs the embedded engine on demand, because its packages take about 100 MB of disk that a machine with llama-server or podman
 * does not need. They are installed exactly as locked in `toolboxes/embedded/package-lock.json`, without running their scripts.
 */
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { copyFile, link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fail, ok, type Result } from '../../schema/failure.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';

export interface EmbeddedEngineOptions {
  /** Absolute path of the directory for the `node_modules` of the engine. */
  readonly dir: string;
  /** Environment for npm, which must be on its `PATH`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called with a message when something takes long. */
  readonly onProgress: (message: string) => void;
  /** Directory of the engine's source code. Default: the one in this checkout. */
  readonly sources?: string;
}

const SOURCES = path.resolve(import.meta.dirname, '../../../toolboxes/embedded');
const LOCKED = ['package.json', 'package-lock.json'] as const;
/** Without a network, three attempts end within a minute. A slow download is not affected: the time counts while nothing arrives. */
const FETCH_LIMITS = ['--fetch-timeout=15000', '--fetch-retries=2', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=3000'];
const NPM_ARGUMENTS = ['ci', '--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error', ...FETCH_LIMITS];
const LOCK_POLL_MS = 200;
/** The end of npm's output explains why it failed. */
const QUOTED_CHARACTERS = 600;

/** Returns the start of a command line to which the flags of llama-server can be appended. Fast if the engine is already installed. */
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
    await acquireLock(options, signal);
    try {
      // Another process may have installed it in the meantime.
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

/** Whether some version of it is there. */
export async function isEngineInstalled(dir: string): Promise<boolean> {
  return (await installed(dir)) !== undefined;
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

/** The lock file contains the process id of its owner, so that a lock whose owner has crashed can be removed. */
async function acquireLock(options: EmbeddedEngineOptions, signal: AbortSignal): Promise<void> {
  const lock = lockOf(options.dir);
  // A link appears atomically, so nobody sees a lock without its owner.
  const own = `${lock}.${randomUUID()}`;
  await writeFile(own, String(process.pid));
  let reported = false;
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
    if (!reported) options.onProgress('Waiting for another process to install the embedded engine');
    reported = true;
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
  const { dir, env } = options;
  options.onProgress('Installing the embedded engine: this downloads about 40 MB once');
  await rm(stampOf(dir), { force: true });
  for (const name of LOCKED) await copyFile(path.join(sources, name), path.join(dir, name));
  return new Promise((resolve) => {
    execFile('npm', [...NPM_ARGUMENTS, '--prefix', dir], { cwd: dir, env: { ...env }, signal }, (error, stdout, stderr) => {
      const why = `(${error?.code ?? error?.message}): ${`${stdout}${stderr}`.trim().slice(-QUOTED_CHARACTERS)}`;
      const message = `Make the npm registry reachable, or install llama-server: npm could not install the embedded engine ${why}`;
      resolve(error === null ? ok(undefined) : fail('retry', 'EngineInstallFailed', message));
    });
  });
}
