/** What `svcctl doctor` checks on this host. */
import { access, constants, readdir, readFile, stat } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';
import path from 'node:path';
import { checkToolboxFile } from '../../files/toolbox-manifest.ts';
import { podmanAnswers, findPodmanSocket } from '../../host/podman/podman-api.ts';
import { listenError } from '../../host/host-probe.ts';
import { codeOf } from '../../platform/error-text.ts';
import type { Provider } from '../../providers/provider.ts';
import { PROVIDERS } from '../../providers/registry.ts';
import { parseSettings, type Settings } from '../../schema/settings/settings.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import { hasShape } from '../connect/answer-shape.ts';
import { StatusAnswer } from '../connect/api-answers.ts';
import { authority, localAuthority, type Environment } from '../connect/service-options.ts';
import { parseToml } from '../manifests/read-manifests.ts';
import { readCatalogue } from '../read-catalogue.ts';
import { sizeText } from '../output/quantities-text.ts';
import { fail, ok, warn, type Check } from './check.ts';
import { checkHardware } from './hardware-check.ts';

/** `engines` of package.json. */
const MIN_NODE = [24, 12] as const;
/** With less, not even a small model fits beside the service. */
const MIN_FREE_BYTES = 1024 ** 3;
const ANSWER_TIMEOUT_MS = 3000;

/** Runs all checks, with settings from this environment. */
export async function checkHost(env: Environment): Promise<readonly Check[]> {
  const node = checkNode();
  const parsed = parseSettings(env);
  if (!parsed.ok) return [node, fail('settings', parsed.problems.join('; '), 'Fix the environment: the service does not start with it')];
  const { settings } = parsed;
  return [
    node,
    ok('settings', 'All SVC_* variables are known and valid'),
    ...(await Promise.all([
      checkConfigDir(settings),
      checkSlots(settings),
      checkToolboxes(settings),
      checkCatalogue(env),
      checkPodman(settings, env),
      ...Object.values(PROVIDERS).map(async (provider) => checkProgram(provider, settings, env)),
      checkHardware(settings, env),
      checkModelsDir(settings),
      checkAddress(settings),
    ])),
    checkMemory(settings),
  ];
}

export function checkNode(): Check {
  const { version } = process;
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  const enough = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  return enough ? ok('node', version) : fail('node', version, `Use Node ${MIN_NODE.join('.')} or newer`);
}

async function checkConfigDir({ SVC_CONFIG_DIR: dir }: Settings): Promise<Check> {
  const slots = path.join(dir, 'slots');
  if (!(await isUsable(dir, constants.R_OK))) {
    return fail('configuration', `"${dir}" is not readable`, 'Create it, or set SVC_CONFIG_DIR to another directory');
  }
  if (await isUsable(slots, constants.W_OK)) return ok('configuration', slots);
  if (await isUsable(slots, constants.R_OK)) {
    return warn(
      'configuration',
      `"${slots}" is not writable`,
      'Make it writable for edits through svcctl and the API, or edit the files by hand',
    );
  }
  return fail('configuration', `"${slots}" is not readable`, 'Create the directory, and in it a file for each slot');
}

async function checkSlots({ SVC_CONFIG_DIR: dir }: Settings): Promise<Check> {
  const slots = path.join(dir, 'slots');
  const entries = await readdir(slots).catch(() => []);
  const files = entries.filter((name) => name.endsWith('.toml') && !name.startsWith('.')).toSorted();
  const problems = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(path.join(slots, file), 'utf8').catch(() => undefined);
      return text === undefined ? [`${file}: not readable`] : parseToml(file, text).problems.map((problem) => formatProblem(problem));
    }),
  );
  if (problems.flat().length > 0) return fail('slots', problems.flat().join('; '), 'Fix the files; check them with "svcctl validate -f"');
  if (files.length === 0)
    return warn('slots', 'There are none', 'Create slots/primary.toml with the table [model] and in it default = "…"');
  return ok('slots', `${files.length} valid`);
}

async function checkToolboxes({ SVC_CONFIG_DIR: dir }: Settings): Promise<Check> {
  const problems = await checkToolboxFile(path.join(dir, 'toolboxes.toml'));
  if (problems === undefined) return ok('toolboxes', 'The shipped images are used');
  if (problems.length === 0) return ok('toolboxes', '"toolboxes.toml" overrides the shipped images');
  return fail(
    'toolboxes',
    problems.map((problem) => formatProblem(problem)).join('; '),
    'Fix the file; until then, the service uses the last valid version',
  );
}

async function checkCatalogue(env: Environment): Promise<Check> {
  const { catalogue, problems } = await readCatalogue(env);
  const own = [...catalogue.values()].filter(({ isOwn }) => isOwn === true).length;
  if (problems.length === 0) return ok('catalogue', own === 0 ? 'The shipped models' : `The shipped models, and ${own} of "models.toml"`);
  return fail(
    'catalogue',
    problems.map((problem) => formatProblem(problem)).join('; '),
    'Fix the file; until then, the service uses the last valid version of these entries',
  );
}

async function checkPodman(settings: Settings, env: Environment): Promise<Check> {
  const named = settings.SVC_PODMAN_SOCKET === undefined ? {} : { SVC_PODMAN_SOCKET: settings.SVC_PODMAN_SOCKET };
  const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  const socket = await findPodmanSocket({ ...env, ...named }, signal).catch(() => undefined);
  const answers = socket !== undefined && (await podmanAnswers(socket, signal).catch(() => false));
  if (answers) return ok('podman', socket);
  const hint = 'Start it with "systemctl enable --now podman.socket", or run slots as processes with SVC_RUNTIME=process';
  const found = socket === undefined ? 'No podman socket answers' : `"${socket}" does not answer`;
  return settings.SVC_RUNTIME === 'podman' ? fail('podman', found, hint) : warn('podman', found, hint);
}

/** The program that a provider uses where slots run as processes. */
async function checkProgram({ kind, openProgram }: Provider, settings: Settings, env: Environment): Promise<Check> {
  const check = `program of ${kind}`;
  const found = await openProgram({ env, stateDir: settings.SVC_STATE_DIR, onProgress: () => undefined }).describe();
  if (!found.ok) return warn(check, 'It is not on this machine, and slots that run as processes need it', found.failure.message);
  const { name, installs } = found.value;
  return installs === undefined
    ? ok(check, name)
    : warn(check, `Slots that run as processes will use ${name}`, `Nothing to do: ${installs}`);
}

async function checkModelsDir({ SVC_MODELS_DIR: dir }: Settings): Promise<Check> {
  if (await isUsable(dir, constants.W_OK)) return ok('models', dir);
  const exists = (await stat(dir).catch(() => undefined))?.isDirectory() === true;
  const hint = 'Make it writable for the user of the service, or set SVC_MODELS_DIR to another directory';
  return exists
    ? warn('models', `"${dir}" is not writable`, hint)
    : warn('models', `"${dir}" does not exist`, 'The service creates it when it first starts');
}

async function checkAddress({ SVC_LISTEN: listen }: Settings): Promise<Check> {
  const address = authority(listen);
  const error = await listenError(listen.host, listen.port);
  if (error === undefined) return ok('address', `${address} is free`);
  if (codeOf(error) === 'EADDRINUSE') {
    const version = await svcVersion(`http://${localAuthority(listen)}/api/status`);
    if (version !== undefined) return ok('address', `svc ${version} answers at ${address}`);
    return fail('address', `${address} is in use by another program`, 'Stop that program, or set SVC_LISTEN to another address');
  }
  return fail('address', `${address} cannot be used (${codeOf(error)})`, 'Set SVC_LISTEN to another address');
}

function checkMemory({ SVC_MEMORY_BUDGET: budget }: Settings): Check {
  const total = totalmem();
  const found = `${sizeText(freemem())} free of ${sizeText(total)}`;
  if (budget !== undefined && budget > total) {
    return warn('memory', `${found}; the budget is ${sizeText(budget)}`, 'Lower SVC_MEMORY_BUDGET: this host has less memory');
  }
  if (freemem() < MIN_FREE_BYTES) return warn('memory', found, 'Free some memory: models that do not fit are not started');
  return ok('memory', found);
}

async function isUsable(file: string, mode: number): Promise<boolean> {
  return access(file, mode).then(
    () => true,
    () => false,
  );
}

async function svcVersion(url: string): Promise<string | undefined> {
  try {
    const answer: unknown = await (await fetch(url, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) })).json();
    return hasShape(StatusAnswer, answer) ? answer.version.slice(0, 40) : undefined;
  } catch {
    return undefined;
  }
}
