/** The looks that `svcctl doctor` takes at this host. Each answers what it found and never throws; none changes anything. */
import { access, constants, readdir, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { freemem, totalmem } from 'node:os';
import path from 'node:path';
import { findLlamaServer } from '../../providers/gguf/find-llama-server.ts';
import { podmanAnswers } from '../../host/podman/podman-api.ts';
import { findPodmanSocket } from '../../host/podman/podman-socket.ts';
import { parseSlotText } from '../../host/slots/decide/parse-slot-text.ts';
import { checkToolboxFile } from '../../files/toolbox-manifest.ts';
import { SlotName } from '../../schema/names.ts';
import type { Settings } from '../../schema/settings.ts';
import { formatProblem } from '../../schema/spec-problem.ts';
import { sizeText } from '../output/quantities-text.ts';

export interface Check {
  readonly name: string;
  readonly result: 'ok' | 'warn' | 'fail';
  readonly found: string;
  /** What to do about it; empty where nothing is to be done. */
  readonly hint: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** `engines` of package.json. */
const LEAST_NODE = [24, 12] as const;
/** Below this not even a small model fits beside the service. */
const LEAST_FREE_BYTES = 1024 ** 3;
const PODMAN_MS = 3000;

const good = (name: string, found: string): Check => ({ name, result: 'ok', found, hint: '' });
const warn = (name: string, found: string, hint: string): Check => ({ name, result: 'warn', found, hint });
const bad = (name: string, found: string, hint: string): Check => ({ name, result: 'fail', found, hint });

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  const enough = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
  return enough ? good('node', version) : bad('node', version, `Use Node ${LEAST_NODE.join('.')} or newer`);
}

export async function checkConfigDir({ SVC_CONFIG_DIR: dir }: Settings): Promise<Check> {
  const slots = path.join(dir, 'slots');
  if (!(await isUsable(dir, constants.R_OK))) {
    return bad('configuration', `"${dir}" cannot be read`, 'Create it, or name another one in SVC_CONFIG_DIR');
  }
  if (await isUsable(slots, constants.W_OK)) return good('configuration', slots);
  if (await isUsable(slots, constants.R_OK)) {
    return warn(
      'configuration',
      `"${slots}" cannot be written`,
      'Edits by svcctl and the API need that; files can still be edited by hand',
    );
  }
  return bad('configuration', `"${slots}" cannot be read`, 'Create the directory, and a file for each slot in it');
}

export async function checkSlots({ SVC_CONFIG_DIR: dir }: Settings): Promise<Check> {
  const slots = path.join(dir, 'slots');
  const files = await readdir(slots).catch(() => []);
  const problems: string[] = [];
  let count = 0;
  for (const file of files.filter((name) => name.endsWith('.toml') && !name.startsWith('.')).toSorted()) {
    count += 1;
    const name = SlotName.safeParse(file.slice(0, -'.toml'.length));
    if (!name.success) {
      problems.push(`${file}: ${name.error.issues[0]?.message ?? 'no slot name'}`);
      continue;
    }
    const text = await readFile(path.join(slots, file), 'utf8').catch((error: unknown) => error);
    if (typeof text !== 'string') problems.push(`${file}: cannot be read`);
    else {
      const read = parseSlotText(name.data, text, file);
      if (!read.ok) problems.push(...read.problems.map((problem) => formatProblem(problem)));
    }
  }
  if (problems.length > 0) return bad('slots', problems.join('; '), 'Correct the files; "svcctl validate -f" checks them');
  if (count === 0) return warn('slots', 'none', 'Write one: slots/primary.toml with [model] and default = "…"');
  return good('slots', `${count} valid`);
}

export async function checkToolboxes({ SVC_CONFIG_DIR: dir }: Settings): Promise<Check> {
  const problems = await checkToolboxFile(path.join(dir, 'toolboxes.toml'));
  if (problems === undefined) return good('toolboxes', 'the shipped images');
  if (problems.length === 0) return good('toolboxes', '"toolboxes.toml" lies over the shipped images');
  return bad(
    'toolboxes',
    problems.map((problem) => formatProblem(problem)).join('; '),
    'Correct the file; until then the last good text stays in force',
  );
}

export async function checkPodman(settings: Settings, env: Environment): Promise<Check> {
  const named = settings.SVC_PODMAN_SOCKET === undefined ? {} : { SVC_PODMAN_SOCKET: settings.SVC_PODMAN_SOCKET };
  const signal = AbortSignal.timeout(PODMAN_MS);
  const socket = await findPodmanSocket({ ...env, ...named }, signal).catch(() => undefined);
  const answers = socket !== undefined && (await podmanAnswers(socket, signal).catch(() => false));
  if (answers) return good('podman', socket);
  const hint = 'Start it: systemctl enable --now podman.socket; or run slots as processes with SVC_RUNTIME=process';
  const found = socket === undefined ? 'no socket answers' : `"${socket}" does not answer`;
  return settings.SVC_RUNTIME === 'podman' ? bad('podman', found, hint) : warn('podman', found, hint);
}

/** How a GGUF model can run without a container: the host's llama-server, else the engine that is installed on demand. */
export async function checkEngine(settings: Settings, env: Environment): Promise<Check> {
  const program = await findLlamaServer(env['PATH']);
  if (program !== undefined) return good('engine', program);
  const stamp = path.join(settings.SVC_STATE_DIR, 'engine', 'installed');
  if (await isUsable(stamp, constants.R_OK)) return good('engine', 'the embedded one is installed');
  return warn(
    'engine',
    'no llama-server on PATH',
    'Slots that run as processes install the embedded engine when first loaded (about 40 MB)',
  );
}

export async function checkModelsDir({ SVC_MODELS_DIR: dir }: Settings): Promise<Check> {
  if (await isUsable(dir, constants.W_OK)) return good('models', dir);
  const exists = (await stat(dir).catch(() => undefined))?.isDirectory() === true;
  const hint = 'Give the service’s user write permission, or name another directory in SVC_MODELS_DIR';
  return exists
    ? warn('models', `"${dir}" cannot be written`, hint)
    : warn('models', `"${dir}" is not there`, 'The service creates it at its first start');
}

export async function checkPort({ SVC_LISTEN: { host, port } }: Settings): Promise<Check> {
  const shown = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const code = await listenError(host, port);
  if (code === undefined) return good('address', `${shown} is free`);
  if (code === 'EADDRINUSE') {
    const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host;
    const version = await svcVersion(`http://${local}:${port}/api/status`);
    if (version !== undefined) return good('address', `svc ${version} answers at ${shown}`);
    return bad('address', `${shown} is taken by another program`, 'Stop that program, or choose another address in SVC_LISTEN');
  }
  return bad('address', `${shown} cannot be used (${code})`, 'Choose another address in SVC_LISTEN');
}

export function checkMemory({ SVC_MEMORY_BUDGET: budget }: Settings): Check {
  const total = totalmem();
  const found = `${sizeText(freemem())} free of ${sizeText(total)}`;
  if (budget !== undefined && budget > total) {
    return warn('memory', `${found}; the budget is ${sizeText(budget)}`, 'Lower SVC_MEMORY_BUDGET: it is more than this host has');
  }
  if (freemem() < LEAST_FREE_BYTES) return warn('memory', found, 'Free some: models that do not fit are not started');
  return good('memory', found);
}

async function isUsable(file: string, mode: number): Promise<boolean> {
  return access(file, mode).then(
    () => true,
    () => false,
  );
}

function listenError(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

async function svcVersion(url: string): Promise<string | undefined> {
  try {
    const body: unknown = await (await fetch(url, { signal: AbortSignal.timeout(PODMAN_MS) })).json();
    const version: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, 'version') : undefined;
    return typeof version === 'string' ? version.slice(0, 40) : undefined;
  } catch {
    return undefined;
  }
}
