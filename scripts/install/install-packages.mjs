/**
 * Installs the packages that package-lock.json pins with `npm ci`, shows progress, and explains what to do if that fails. They are installed in a
 * directory beside, which then takes the place of node_modules: the Node that runs this may be in there, and an installation that fails or is killed
 * leaves the installed packages as they were.
 */
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { missingPackages } from './installed.mjs';
import { userError } from './user-error.mjs';

const ARGUMENTS = [
  'ci',
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--include=dev',
  '--include=optional',
  '--engine-strict=false',
  '--loglevel=error',
  // A connection that stalls is retried after one minute instead of npm's five.
  '--fetch-timeout=60000',
];
/**
 * Asks the registry for a sign of life, through the same proxy and with the same settings. Without a network, `npm ci` alone tries for minutes.
 */
const PING = ['ping', '--loglevel=error', '--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-timeout=10000'];
/** A proxy that accepts a connection and never answers would hold npm for longer than its own limits say. */
const PING_WITHIN_MS = 20_000;
/** npm may take 20 s to undo an interrupted installation, which is unnecessary: the next one starts without node_modules. */
const ROLLBACK_MS = 1_000;
const MAX_OUTPUT_CHARACTERS = 8_192;

const UNREACHABLE = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EIDLETIMEOUT|ERR_SOCKET_TIMEOUT|network/i;

/** Patterns of npm's output with advice for the user. The first match counts. */
const ADVICE = [
  [/\bin sync\b/, 'Run "npm install": package-lock.json does not match package.json'],
  [UNREACHABLE, 'Check the network: npm cannot reach its registry (behind a proxy, set "https_proxy")'],
  [/ENOSPC/, 'Free some disk space: the disk is full'],
  [/EINTEGRITY/, 'Run "npm cache clean --force" and try again: a package does not match the lock file'],
  [/EACCES|EPERM|EROFS/, 'Check the permissions of "node_modules" and the npm cache: npm cannot write there'],
];

/** What npm reads; `.npmrc` need not exist. */
const INPUTS = ['package.json', 'package-lock.json', '.npmrc'];

/** Calls `addOwner` with the process id of npm. Only one process at a time may call it for a checkout. */
export async function installPackages(root, print, addOwner) {
  const staging = join(root, '.svc', 'install');
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging, { recursive: true });
  for (const file of INPUTS) if (existsSync(join(root, file))) copyFileSync(join(root, file), join(staging, file));
  try {
    await installInto(staging, print, { addOwner, cache: cacheEnvironment(root) });
    replacePackages(root, staging);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** The Node that runs this, and npm, stay open under the old directory until it is removed. */
function replacePackages(root, staging) {
  const [packages, old] = [join(root, 'node_modules'), join(staging, 'replaced')];
  if (existsSync(packages)) renameSync(packages, old);
  renameSync(join(staging, 'node_modules'), packages);
}

async function installInto(root, print, npm) {
  const stopShowing = showProgress('Installing the locked packages, including Node 24, into "node_modules"', print);
  const startedAt = Date.now();
  const { code, signal, output } = await installOrGiveUp(root, npm);
  stopShowing();
  if (signal !== null) throw userError('The installation was interrupted; run the command again to restart it', 130);
  if (code !== 0) throw userError(`${output.trim()}\nCould not install the packages. ${advice(output)}`);
  const missing = missingPackages(root);
  if (missing.length > 0)
    throw userError(
      `Could not install ${missing
        .slice(0, 5)
        .map((path) => `"${path}"`)
        .join(', ')} as package-lock.json pins it`,
    );
  print(`Installed in ${Math.round((Date.now() - startedAt) / 1000)} s`);
}

/** Takes everything from the cache if the registry does not answer. */
async function installOrGiveUp(root, { addOwner, cache }) {
  const ping = await run(root, { args: PING, within: PING_WITHIN_MS, cache });
  const failure = ping.isLate ? `The network gives no answer: the registry was asked ${PING_WITHIN_MS / 1000} s ago` : ping.output;
  const isOffline = ping.isLate || (ping.code !== 0 && UNREACHABLE.test(failure));
  if (ping.signal !== null) return ping;
  if (!isOffline) return await run(root, { args: ARGUMENTS, addOwner, cache });
  const cached = await run(root, { args: [...ARGUMENTS, '--offline'], addOwner, cache });
  return cached.code === 0 || cached.signal !== null ? cached : { ...cached, output: failure };
}

/** Ends npm after `within` milliseconds. `signal` is the signal with which the user ended it, or null. */
function run(root, { args, within, cache, addOwner = () => undefined }) {
  const { command, prefix } = npmCommand();
  const env = { ...process.env, ...cache };
  // With NODE_ENV=production, npm would omit the development dependencies.
  delete env.NODE_ENV;
  return new Promise((resolve) => {
    const child = spawn(command, [...prefix, ...args], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    if (child.pid !== undefined) addOwner(child.pid);
    let output = '';
    const keep = (chunk) => (output = (output + chunk).slice(-MAX_OUTPUT_CHARACTERS));
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    let stopped = null;
    const stop = (signal) => {
      stopped = signal;
      child.kill(signal);
      setTimeout(() => child.kill('SIGKILL'), ROLLBACK_MS).unref();
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop);
    let isLate = false;
    const late = within === undefined ? undefined : setTimeout(() => (isLate = child.kill('SIGKILL')), within);
    const end = (code, signal) => {
      clearTimeout(late);
      for (const each of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.off(each, stop);
      resolve({ code: code ?? 1, signal: stopped ?? (isLate ? null : signal), output, isLate });
    };
    child.on('error', (error) => end(1, null, (output += `Cannot run npm: ${error.message}`)));
    child.on('close', end);
  });
}

/** Returns the npm that runs this script, with the Node that runs it. */
function npmCommand() {
  const script = process.env.npm_execpath;
  if (script === undefined || basename(script) !== 'npm-cli.js') return { command: 'npm', prefix: [] };
  return { command: process.env.npm_node_execpath ?? process.execPath, prefix: [script] };
}

/** Moves npm's cache into the checkout if its directory is not writable. */
function cacheEnvironment(root) {
  const cache = process.env.npm_config_cache ?? join(homedir(), '.npm');
  const probe = join(cache, `.svc-probe-${process.pid}`);
  try {
    mkdirSync(cache, { recursive: true });
    writeFileSync(probe, '');
    rmSync(probe);
    return {};
  } catch {
    return { npm_config_cache: join(root, '.svc', 'npm-cache') };
  }
}

function showProgress(text, print) {
  const terminal = process.stderr.isTTY === true && process.env.CI === undefined;
  print(`${text} …`);
  const startedAt = Date.now();
  const beat = setInterval(
    () => {
      const line = `  ${Math.round((Date.now() - startedAt) / 1000)} s`;
      if (terminal) process.stderr.write(`\r${line}`);
      else print(`${line}, still installing`);
    },
    terminal ? 1_000 : 15_000,
  );
  return () => {
    clearInterval(beat);
    if (terminal) process.stderr.write('\r\u001b[K');
  };
}

function advice(output) {
  return ADVICE.find(([pattern]) => pattern.test(output))?.[1] ?? 'The lines above explain why';
}
