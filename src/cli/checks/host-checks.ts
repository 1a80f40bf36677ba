import { execFile } from 'node:child_process';
import { access, constants, readdir, stat, statfs } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';
import path from 'node:path';
import { describeForgery } from '../../auth/decide/decide-access.ts';
import { isInUse } from '../../files/directory-lock.ts';
import { readTextFile } from '../../files/read-text-file.ts';
import { checkToolboxFile } from '../../files/toolbox-manifest.ts';
import { succeeds } from '../../files/write-file.ts';
import { createHardwareProbe, replayHardware, readRecording } from '../../host/hardware/hardware-probe.ts';
import { createPodmanApi, findPodmanSocket, podmanAnswers, readRootless } from '../../host/podman/podman-api.ts';
import { bindError, mostConnections } from '../../host/host-probe.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import type { Provider } from '../../providers/provider.ts';
import { PROVIDERS } from '../../providers/registry.ts';
import type { Device, Hardware } from '../../schema/status/hardware.ts';
import { parseSettings, type Settings } from '../../schema/settings/settings.ts';
import type { ProviderKind } from '../../schema/slot/provider-kinds.ts';
import { parseSlot } from '../../schema/slot/slot-spec.ts';
import { formatProblem, type SpecProblem } from '../../schema/slot/spec-problem.ts';
import { describeFormer } from '../../wiring/choose-runtime.ts';
import { authority, localAuthority } from '../connect/service-options.ts';
import { readCatalogue, type Environment } from '../installation.ts';
import { fail, judgeAccess, ok, readAccess, readJson, warn, type Check } from './access-checks.ts';
import { parseToml } from '../manifests/read-manifests.ts';
import { captureNotice, sizeText } from '../output/output.ts';

/** `engines` of package.json. */
const MIN_NODE = [24, 12] as const;
/** Below this, not even a small model fits beside the service. */
const MIN_FREE_BYTES = 1024 ** 3;
const ANSWER_TIMEOUT_MS = 3000;
/** Below this, not even a small model can be downloaded. */
const MIN_DISK_BYTES = 2 * 1024 ** 3;

/** Runs all checks of this host with settings from the environment. */
export async function checkHost(env: Environment): Promise<readonly Check[]> {
  const node = checkNode();
  const parsed = parseSettings(env);
  if (!parsed.ok)
    return [node, fail('settings', parsed.problems.join('; '), 'Fix the environment; the service does not start with these settings')];
  const { settings } = parsed;
  const [slots, kinds] = await checkSlots(settings);
  const address = await checkAddress(settings);
  return [
    node,
    ok('settings', 'All SVC_* variables are valid'),
    address,
    slots,
    ...(await Promise.all([
      checkConfigDir(settings),
      checkToolboxes(settings),
      checkCatalogue(env),
      checkPodman(settings, env),
      checkRuntime(settings),
      ...Object.values(PROVIDERS).map(async (provider) => checkProgram(provider, settings, env, kinds.has(provider.kind))),
      checkHardware(settings, env),
      checkModelsDir(settings),
      checkDisk(settings),
      checkDescriptors(settings),
    ])),
    // These settings do not say who may use another service, nor where.
    ...(address.result === 'warn' ? [] : judgeAccess(await readAccess(settings))),
    checkMemory(settings),
    ...(await checkSource(settings, env)),
    ...checkProxySecret(settings),
  ];
}

export function checkNode(): Check {
  const { version } = process;
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  const enough = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  return enough ? ok('node', `Node ${version}`) : fail('node', version, `Use Node ${MIN_NODE.join('.')} or newer`);
}

async function checkDescriptors({ SVC_MAX_CONNECTIONS: wanted, SVC_WORKERS: workers }: Settings): Promise<Check> {
  const most = await mostConnections();
  if (most === undefined) return ok('open files', 'The system has no limit that can be read');
  const found = `${most.descriptors} files may be open, enough for ${most.connections} connections`;
  if (wanted <= most.connections) return ok('open files', found);
  const hint = `Raise the limit ("LimitNOFILE", "ulimit -n"), or lower SVC_MAX_CONNECTIONS (${wanted}); the service accepts no more`;
  return warn('open files', workers === 1 ? found : `${found} of all workers`, hint);
}

async function checkConfigDir({ SVC_CONFIG_DIR: dir }: Settings): Promise<Check> {
  const slots = path.join(dir, 'slots');
  if (!(await isUsable(dir, constants.R_OK)))
    return fail('configuration', `"${dir}" is not readable`, 'Create it, or set SVC_CONFIG_DIR to another directory');
  if (await isUsable(slots, constants.W_OK)) return ok('configuration', slots);
  if (await isUsable(slots, constants.R_OK))
    return warn(
      'configuration',
      `"${slots}" is not writable`,
      'Make it writable to allow edits through svcctl and the API, or edit the files by hand',
    );
  return fail('configuration', `"${slots}" is not readable`, 'Create the directory with a file for each slot');
}

/** Also returns the providers of slots that should run. */
async function checkSlots({ SVC_CONFIG_DIR: dir }: Settings): Promise<readonly [Check, ReadonlySet<ProviderKind>]> {
  const slots = path.join(dir, 'slots');
  const entries = await readdir(slots).catch(() => []);
  const files = entries.filter((name) => name.endsWith('.toml') && !name.startsWith('.')).toSorted();
  const kinds = new Set<ProviderKind>();
  const problems = await Promise.all(
    files.map(async (file) => {
      const read = (await readTextFile(path.join(slots, file)))?.file;
      if (read === undefined) return [];
      const parsed = read.kind === 'text' ? parseToml(file, read.text) : { problems: [{ ...read, path: [], file }], slots: [] };
      for (const { name, document } of parsed.slots) {
        const slot = parseSlot(name, document);
        if (slot.ok && slot.spec.enabled) kinds.add(slot.spec.provider);
      }
      const { problems } = parsed;
      return problems.map((problem) => formatProblem(problem));
    }),
  );
  if (problems.flat().length > 0)
    return [fail('slots', problems.flat().join('; '), 'Fix the files; check them with "svcctl validate -f"'), kinds];
  if (files.length === 0) return [warn('slots', 'No slots found', 'Create one with "svcctl slot create NAME --model MODEL"'), kinds];
  return [ok('slots', `${files.length} valid slots`), kinds];
}

async function checkToolboxes({ SVC_CONFIG_DIR: dir }: Settings): Promise<Check> {
  const problems = await checkToolboxFile(path.join(dir, 'toolboxes.toml'));
  return judgeFile('toolboxes', problems, problems === undefined ? 'Shipped images' : 'Shipped images, overridden by "toolboxes.toml"');
}

async function checkCatalogue(env: Environment): Promise<Check> {
  const { catalogue, problems, published } = await readCatalogue(env);
  const own = [...catalogue.values()].filter(({ isOwn }) => isOwn === true).length;
  return judgeFile(
    'catalogue',
    problems,
    `Catalogue of ${published() ?? 'unknown day'}${own === 0 ? '' : ` and ${own} models of "models.toml"`}`,
  );
}

function judgeFile(name: 'toolboxes' | 'catalogue', problems: readonly SpecProblem[] = [], found: string): Check {
  if (problems.length === 0) return ok(name, found);
  const kept = name === 'toolboxes' ? 'the last valid version' : 'the last valid version of these entries';
  return fail(name, problems.map((problem) => formatProblem(problem)).join('; '), `Fix the file; the service uses ${kept} until then`);
}

async function checkPodman(settings: Settings, env: Environment): Promise<Check> {
  const named = settings.SVC_PODMAN_SOCKET === undefined ? {} : { SVC_PODMAN_SOCKET: settings.SVC_PODMAN_SOCKET };
  const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  const socket = await findPodmanSocket({ ...env, ...named }, signal).catch(() => undefined);
  const answers = socket !== undefined && (await podmanAnswers(socket, signal).catch(() => false));
  if (answers) {
    const rootless = await readRootless(createPodmanApi(socket), signal);
    const mode = rootless.ok ? (rootless.value ? 'rootless' : 'rootful: whoever may use this socket is root') : rootless.failure.message;
    return ok('podman', `"${socket}" (${mode})`);
  }
  const hint = 'Let the installer set it up ("install.sh --runtime=podman"), or run slots as processes with SVC_RUNTIME=process';
  const found = socket === undefined ? 'No podman socket answers' : `"${socket}" does not answer`;
  return settings.SVC_RUNTIME === 'podman' ? fail('podman', found, hint) : ok('podman', `${found}; slots run as processes`);
}

async function checkRuntime(settings: Settings): Promise<Check> {
  const former = await describeFormer(settings).catch((error: unknown) => `The former runtime is not known: ${messageOf(error)}`);
  if (former === undefined) return ok('runtime', 'All slots run in the same runtime');
  return warn('runtime', former, 'No action needed: they serve until the service has replaced them; start it if it does not run');
}

/** Checks the program of a provider, which slots need to run as processes. `isNeeded`: by a slot that should run. */
async function checkProgram({ kind, openProgram }: Provider, settings: Settings, env: Environment, isNeeded: boolean): Promise<Check> {
  const check = `program of ${kind}`;
  const found = await openProgram({ env, stateDir: settings.SVC_STATE_DIR, onProgress: () => undefined }).describe();
  if (!found.ok && !isNeeded) return ok(check, 'Not found; no slot that should run needs it');
  if (!found.ok) return warn(check, 'Not found; slots that run as processes need it', found.failure.message);
  const { name, installs } = found.value;
  return ok(check, installs === undefined ? name : `${name}: ${installs}`);
}

async function checkModelsDir({ SVC_MODELS_DIR: dir }: Settings): Promise<Check> {
  if (await isUsable(dir, constants.W_OK)) return ok('models', dir);
  const exists = (await stat(dir).catch(() => undefined))?.isDirectory() === true;
  const hint = 'Make it writable for the user of the service, or set SVC_MODELS_DIR to another directory';
  return exists ? warn('models', `"${dir}" is not writable`, hint) : ok('models', `"${dir}" does not exist; the service creates it`);
}

async function checkDisk({ SVC_MODELS_DIR: dir, SVC_STATE_DIR: parent }: Settings): Promise<Check> {
  const disk = await statfs(dir).catch(() => statfs(parent).catch(() => undefined));
  if (disk === undefined) return ok('disk', `No disk for models: neither "${dir}" nor "${parent}" exists`);
  const found = `${sizeText(disk.bavail * disk.bsize)} free for models in "${dir}"`;
  if (disk.bavail * disk.bsize >= MIN_DISK_BYTES) return ok('disk', found);
  return warn('disk', found, 'Free space: "svcctl model rm" removes models; or set SVC_MODELS_DIR to another disk');
}

const OTHER_SETTINGS =
  'Check that service with its own settings: "svcctl doctor --checkout" if "npm start" runs it, "svcctl doctor" if it is installed';

/** Warns of a service that has other settings. */
async function checkAddress({ SVC_LISTEN: models, SVC_MANAGEMENT_LISTEN: listen = models, SVC_STATE_DIR: dir }: Settings): Promise<Check> {
  const address = authority(listen);
  const error = await bindError(listen.host, listen.port);
  if (error === undefined) return ok('address', `No service answers; ${address} is free`);
  if (codeOf(error) === 'EADDRINUSE') {
    const status = await readJson(`http://${localAuthority(listen)}/api/status`);
    const version = status?.['version'];
    const found = typeof version === 'string' ? `svc ${version.slice(0, 40)} answers at ${address}` : undefined;
    if (found !== undefined && (await isInUse(dir, 'service')) === false)
      return warn('address', `${found} with other settings: it does not use "${dir}"`, OTHER_SETTINGS);
    const recorded = captureNotice(Number(status?.['captures'] ?? 0));
    if (found !== undefined && recorded !== undefined)
      return warn('address', `${found}. ${recorded}`, 'End a capture with "svcctl capture stop"');
    if (found !== undefined) return ok('address', `${found}, runtime ${JSON.stringify(status?.['runtime'])}`);
    return fail('address', `${address} is in use by another program`, 'Stop the other program, or set SVC_LISTEN to another address');
  }
  return fail('address', `${address} cannot be used (${codeOf(error)})`, 'Set SVC_LISTEN to another address');
}

/** The service says of each commit what is wrong (`svcctl source status`); here is what it needs. */
async function checkSource(
  { SVC_GIT_URL: url, SVC_GIT_KEY: key, SVC_GIT_ALLOWED_SIGNERS: signers }: Settings,
  env: Environment,
): Promise<readonly Check[]> {
  if (url === undefined) return [];
  const git = await new Promise<string | undefined>((resolve) => {
    execFile('git', ['--version'], { env: { PATH: env['PATH'] ?? '' }, timeout: ANSWER_TIMEOUT_MS }, (error, out) =>
      resolve(error === null ? out.trim() : undefined),
    );
  });
  if (git === undefined) return [fail('source', 'The program "git" is not installed', 'Install it, for example with "apt install git"')];
  for (const file of [key, signers])
    if (file !== undefined && !(await isUsable(file, constants.R_OK)))
      return [fail('source', `"${file}" cannot be read`, 'Create it, and allow the user of the service to read it')];
  return [ok('source', `"${url}", ${git}${signers === undefined ? ', commits need no signature' : ''}`)];
}

function checkMemory({ SVC_MEMORY_BUDGET: budget }: Settings): Check {
  const total = totalmem();
  const found = `${sizeText(freemem())} of ${sizeText(total)} memory free`;
  if (budget !== undefined && budget > total)
    return warn('memory', `${found}; the budget of ${sizeText(budget)} exceeds it`, 'Lower SVC_MEMORY_BUDGET');
  if (freemem() < MIN_FREE_BYTES) return warn('memory', found, 'Free memory; models that do not fit are not started');
  return ok('memory', found);
}

function checkProxySecret(settings: Settings): readonly Check[] {
  const forgery = describeForgery(settings);
  return forgery === undefined ? [] : [warn('authentication', forgery.found, forgery.fix)];
}

const isUsable = async (file: string, mode: number): Promise<boolean> => succeeds(access(file, mode));

const NAME = 'hardware';

export async function checkHardware({ SVC_HARDWARE_FILE: file }: Pick<Settings, 'SVC_HARDWARE_FILE'>, env: Environment): Promise<Check> {
  if (file === undefined) return judgeHardware(await createHardwareProbe({ env }).read());
  const recording = await readRecording(file);
  if (!recording.ok) return fail(NAME, recording.failure.message, 'Fix SVC_HARDWARE_FILE; the service does not start with this recording');
  const { found } = judgeHardware(await replayHardware(recording.value, file).read());
  return warn(NAME, `Recording "${file}": ${found}`, 'Unset SVC_HARDWARE_FILE, unless you develop for the recorded machine');
}

/** Pure. */
export function judgeHardware({ devices, devicesHidden }: Pick<Hardware, 'devices' | 'devicesHidden'>): Check {
  if (devicesHidden !== undefined) return ok(NAME, `Unknown: ${devicesHidden}`);
  if (devices.length === 0) return ok(NAME, 'No GPU or NPU; models run on the CPU');
  const found = devices.map(describeDevice).join('; ');
  // No backend supports GPUs of Apple.
  const unused = devices.filter(({ vendor, backends }) => backends.length === 0 && vendor !== 'apple');
  if (unused.length === 0) return ok(NAME, found);
  return warn(NAME, found, `Install the driver for ${unused.map(({ id }) => id).join(', ')} to use it; see docs/hardware.md`);
}

function describeDevice({ id, name, backends, unavailable }: Device): string {
  const label = name === undefined ? id : `${id} ${name}`;
  if (backends.length > 0) return `${label} (${backends.join(', ')})`;
  const reasons = new Set(Object.values(unavailable ?? {}));
  return reasons.size === 0 ? `${label} (unused)` : `${label} (unused: ${[...reasons].join(', ')})`;
}
