/** Installs the locked packages of an engine in `toolboxes/` on demand, without running their scripts. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fail, ok, quoteOutput, type Result } from '../schema/words/failure.ts';
import { messageOf } from '../platform/error-text.ts';
import { lockDirectory, type DirectoryLock } from '../files/directory-lock.ts';

export interface Engine {
  readonly name: string;
  readonly sources: string;
  readonly download: string;
  readonly instead: string;
}

export interface EngineOptions {
  readonly engine: Engine;
  readonly dir: string;
  /** Environment of the service. npm must be on its `PATH`, and gets only the part that it needs. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onProgress: (message: string) => void;
}

const LOCKED = ['package.json', 'package-lock.json'] as const;
/** Three attempts without a network end within a minute. Slow downloads are unaffected. */
const FETCH_LIMITS = ['--fetch-timeout=15000', '--fetch-retries=2', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=3000'];
const NPM_ARGUMENTS = ['ci', '--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error', ...FETCH_LIMITS];
const LOCK_POLL_MS = 200;
const QUOTED_CHARACTERS = 600;

export const toolboxSources = (folder: string): string => path.resolve(import.meta.dirname, '../../toolboxes', folder);

export async function ensureEngine(options: EngineOptions, signal: AbortSignal): Promise<Result<readonly [string, ...string[]]>> {
  const { dir, engine } = options;
  const { sources } = engine;
  const commandWith = (modules: string) => [process.execPath, path.join(sources, 'main.ts'), '--modules', modules] as const;
  const command = commandWith(dir);
  try {
    const wanted = await fingerprint(sources);
    if ((await installed(shippedWith(sources))) === wanted) return ok(commandWith(shippedWith(sources)));
    if ((await installed(dir)) === wanted) return ok(command);
    await mkdir(dir, { recursive: true });
    const lock = await lockFor(options, signal);
    try {
      // Another process may have installed it in the meantime.
      if ((await installed(dir)) === wanted) return ok(command);
      const done = await install(options, signal);
      if (!done.ok) return done;
      await writeFile(stampOf(dir), wanted);
      return ok(command);
    } finally {
      lock.release();
    }
  } catch (error) {
    return fail('retry', 'EngineInstallFailed', `${capital(engine.name)} cannot be installed into "${dir}": ${messageOf(error)}`);
  }
}

export const isEngineInstalled = async ({ sources }: Engine, dir: string): Promise<boolean> =>
  ((await installed(shippedWith(sources))) ?? (await installed(dir))) !== undefined;
/** Releases contain the packages beside the source code; checkouts do not. */
const shippedWith = (sources: string): string => path.join(sources, 'shipped');
const stampOf = (dir: string): string => path.join(dir, 'installed');

async function fingerprint(sources: string): Promise<string> {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}\n`);
  for (const name of LOCKED) hash.update(await readFile(path.join(sources, name)));
  return hash.digest('hex');
}

const installed = async (dir: string): Promise<string | undefined> => readFile(stampOf(dir), 'utf8').catch(() => undefined);

async function lockFor({ dir, engine, onProgress }: EngineOptions, signal: AbortSignal): Promise<DirectoryLock> {
  for (let reported = false; ; reported = true) {
    const answer = await lockDirectory({ directory: dir, name: 'installing', since: Date.now() });
    if (answer.kind === 'locked') return answer.lock;
    if (answer.kind === 'unusable') throw new Error(answer.message);
    if (!reported) onProgress(`Waiting for another process to install ${engine.name}`);
    await sleep(LOCK_POLL_MS, undefined, { signal });
  }
}

async function install({ engine, dir, env, onProgress }: EngineOptions, signal: AbortSignal): Promise<Result<void>> {
  const { name, sources, download, instead } = engine;
  onProgress(`Installing ${name}: this downloads ${download} once`);
  await rm(stampOf(dir), { force: true });
  for (const file of LOCKED) await copyFile(path.join(sources, file), path.join(dir, file));
  return new Promise((resolve) => {
    execFile('npm', [...NPM_ARGUMENTS, '--prefix', dir], { cwd: dir, env: forNpm(env), signal }, (error, stdout, stderr) => {
      const why = `(${error?.code ?? error?.message}); ${quoteOutput('output', `${stdout}${stderr}`.trim().slice(-QUOTED_CHARACTERS))}`;
      const message = `npm could not install ${name} ${why}; make the npm registry reachable, or ${instead}`;
      resolve(error === null ? ok(undefined) : fail('retry', 'EngineInstallFailed', message));
    });
  });
}

/** Variables for settings of npm and the registry. Others may contain secrets, e.g. for the proxy or the Hub. */
const FOR_NPM =
  /^(?:PATH|HOME|TMPDIR|LANG|LC_[A-Z]+|XDG_[A-Z_]+|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR)|(?:https?|no|all)_proxy|npm_config_.+)$/i;

const forNpm = (env: EngineOptions['env']): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(env).filter(([key]) => FOR_NPM.test(key)));
const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
