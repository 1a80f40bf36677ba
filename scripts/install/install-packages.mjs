/**
 * Installs what package-lock.json pins, shows that something goes on, and says what to do when it fails. Nothing that a package brings is
 * executed. `npm install` and not `npm ci`: the latter refuses a lock file that lacks the binaries of foreign platforms, which npm itself
 * leaves out where a registry does not carry them. What `npm ci` promises is upheld here: it begins with nothing, leaves the lock file
 * as it is, and what was installed is compared with it.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { missingPackages } from './installed.mjs';
import { told } from './told.mjs';

const ARGUMENTS = [
  'install',
  '--no-save',
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--include=dev',
  '--include=optional',
  '--engine-strict=false',
  '--loglevel=error',
  // a connection that stalls is given up and tried again after a minute, not after npm's five
  '--fetch-timeout=60000',
];
/** npm undoes what it has done so far, which can take it 20 s. The next start begins with nothing anyway. */
const ROLLBACK_MS = 1_000;
const KEPT_OUTPUT = 8_192;

/** What npm's output holds → what to do. The first that fits counts. */
const ADVICE = [
  [
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network/i,
    'Check the network: npm cannot reach its registry (behind a proxy, set "https_proxy")',
  ],
  [/ENOSPC/, 'Make room: the disk is full'],
  [/EINTEGRITY/, 'Run "npm cache clean --force" and try again: a package is not what the lock file says it is'],
  [/EACCES|EPERM|EROFS/, 'Check who owns "node_modules" and the npm cache: npm may not write there'],
];

/** `own` is told npm's process id. */
export async function installPackages(root, say, own) {
  checkLock(root);
  rmSync(join(root, 'node_modules'), { recursive: true, force: true });
  const stopShowing = showProgress('Installing the locked packages, Node 24 among them, into "node_modules"', say);
  const startedAt = Date.now();
  const { code, signal, output } = await run(root, own);
  stopShowing();
  if (signal !== null) throw told('Installation was interrupted; the next start begins it again', 130);
  if (code !== 0) throw told(`${output.trim()}\nCould not install the packages. ${advice(output)}`);
  const missing = missingPackages(root);
  if (missing.length > 0)
    throw told(
      `Could not install ${missing
        .slice(0, 5)
        .map((path) => `"${path}"`)
        .join(', ')} as package-lock.json pins it`,
    );
  say(`Installed in ${Math.round((Date.now() - startedAt) / 1000)} s`);
}

/** `npm install` would quietly resolve what the lock file does not have. */
function checkLock(root) {
  const read = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'));
  const wanted = read('package.json');
  const locked = read('package-lock.json').packages[''];
  for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies']) {
    const inLock = locked[kind] ?? {};
    const names = new Set([...Object.keys(wanted[kind] ?? {}), ...Object.keys(inLock)]);
    for (const name of names) {
      if (wanted[kind]?.[name] !== inLock[name])
        throw told(`Run "npm install": package-lock.json does not have "${name}" as package.json asks for it`);
    }
  }
}

function run(root, own) {
  const { command, prefix } = npmCommand();
  const env = { ...process.env, ...cacheEnvironment(root) };
  // A NODE_ENV of "production" would leave out what the checks need.
  delete env.NODE_ENV;
  return new Promise((resolve) => {
    const child = spawn(command, [...prefix, ...ARGUMENTS], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    if (child.pid !== undefined) own(child.pid);
    let output = '';
    const keep = (chunk) => (output = (output + chunk).slice(-KEPT_OUTPUT));
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    let stopped = null;
    const stop = (signal) => {
      stopped = signal;
      child.kill(signal);
      setTimeout(() => child.kill('SIGKILL'), ROLLBACK_MS).unref();
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop);
    const end = (code, signal) => {
      for (const each of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.off(each, stop);
      resolve({ code, signal: stopped ?? signal, output });
    };
    child.on('error', (error) => end(1, null, (output += `Cannot run npm: ${error.message}`)));
    child.on('close', end);
  });
}

/** The npm that runs this script, by the Node that runs npm: the one in node_modules is about to be replaced. */
function npmCommand() {
  const script = process.env.npm_execpath;
  if (script === undefined || basename(script) !== 'npm-cli.js') return { command: 'npm', prefix: [] };
  return { command: process.env.npm_node_execpath ?? process.execPath, prefix: [script] };
}

/** npm keeps its cache in the home directory; where that cannot be written, in the checkout. */
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

function showProgress(text, say) {
  const terminal = process.stderr.isTTY === true && process.env.CI === undefined;
  say(`${text} …`);
  const startedAt = Date.now();
  const beat = setInterval(
    () => {
      const line = `  ${Math.round((Date.now() - startedAt) / 1000)} s`;
      if (terminal) process.stderr.write(`\r${line}`);
      else say(`${line}, still installing`);
    },
    terminal ? 1_000 : 15_000,
  );
  return () => {
    clearInterval(beat);
    if (terminal) process.stderr.write('\r\u001b[K');
  };
}

function advice(output) {
  return ADVICE.find(([pattern]) => pattern.test(output))?.[1] ?? 'The lines above say why';
}
