/** Provider for image models, which ComfyUI draws with. */
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { AskHealth, Endpoint, ProbeIo, ProbeResponse, Provider } from '../provider.ts';
import { rankBackends } from '../decide/rank-backends.ts';
import * as command from './decide/image-command.ts';
import { drawFirst } from './first-image.ts';
import { imageFormat } from './image-format.ts';
import { translateImages } from './translate-images.ts';
import { ok } from '../../schema/words/failure.ts';
import { installedProgram } from '../host-program.ts';
import { judgeAlive, PASSING } from '../decide/judge-status.ts';
import type { ImageTask } from './decide/image-parameters.ts';
import { userWorkflow } from './decide/user-workflow.ts';

/** Longer than any request lasts; images are fetched at once. */
const KEEP_MS = 3_600_000;

const openComfyUi: Provider['openProgram'] = ({ env, stateDir }) => {
  const dir = path.join(stateDir, 'comfyui');
  const advice = 'install ComfyUI, and put a program of this name that starts its main.py on the PATH of the service';
  const { find, describe } = installedProgram(command.PROGRAM, env, advice);
  return {
    async resolve() {
      const found = await find();
      if (!found.ok) return found;
      const paths = { output: path.join(dir, 'output'), input: path.join(dir, 'input'), user: path.join(dir, 'user') };
      for (const each of Object.values(paths)) await mkdir(each, { recursive: true, mode: 0o700 });
      await removeOld([path.join(paths.output, 'svc'), path.join(paths.input, 'svc')], Date.now() - KEEP_MS);
      const modelPaths = path.join(dir, 'model-paths.yaml');
      await writeFile(modelPaths, command.MODEL_PATHS_YAML);
      const directories = Object.entries({ ...paths, temp: dir }).flatMap(([name, each]) => [`--${name}-directory`, each]);
      return ok([found.value, '--extra-model-paths-config', modelPaths, ...directories]);
    },
    describe,
  };
};

/** ComfyUI never removes saved images. */
async function removeOld(directories: readonly string[], before: number): Promise<void> {
  for (const directory of directories) {
    for (const name of await readdir(directory).catch(() => [])) {
      const file = path.join(directory, name);
      const facts = await stat(file).catch(() => undefined);
      if (facts?.isFile() === true && facts.mtimeMs < before) await rm(file, { force: true });
    }
  }
}

/** ComfyUI is written in Python: it responds late while it loads a model. */
const ALIVE_TIMEOUT_MS = 10_000;
const LIST_TIMEOUT_MS = 30_000;

const READY_PATH = '/system_stats';

export const askHealth: AskHealth = async (endpoint, io, slot, signal) => {
  const alive = judgeAlive(await io.request(endpoint, { method: 'GET', path: READY_PATH, timeoutMs: ALIVE_TIMEOUT_MS, signal }));
  const loader = command.loaderOf(slot);
  if (alive !== undefined || loader === undefined) return alive ?? PASSING;
  const { className, checkpoint } = loader;
  const { status, body, error = 'no response' } = await askClass(endpoint, io, className, signal);
  if (status === 0) return { kind: 'loading', message: `The server is busy: ${error}` };
  if (status !== 200) return { kind: 'failing', message: `The server does not list its models: "${className}" has status ${status}` };
  if (command.listsFile(body, checkpoint)) return PASSING;
  return {
    kind: 'failing',
    message: `The server does not list the model "${checkpoint}": it may be incomplete, or the server looks elsewhere`,
  };
};

export const askReadiness: AskHealth = async (endpoint, io, slot, signal) => {
  const health = await askHealth(endpoint, io, slot, signal);
  const workflow = userWorkflow(slot.model);
  if (health.kind !== 'passing') return health;
  if (workflow === undefined) return drawFirst(endpoint, io, slot, signal);
  for (const className of workflow.classes) {
    const { status, body } = await askClass(endpoint, io, className, signal);
    if (status === 0) return { kind: 'loading', message: 'The server is busy' };
    if (status !== 200 || !command.describesClass(body, className))
      return {
        kind: 'failing',
        message: `The server has no node "${className}", which the workflow "${workflow.name}" needs: nodes of other authors are not loaded`,
      };
  }
  return health;
};

async function askClass(endpoint: Endpoint, io: ProbeIo, className: string, signal: AbortSignal): Promise<ProbeResponse> {
  const path = `/object_info/${encodeURIComponent(className)}`;
  return io.request(endpoint, { method: 'GET', path, timeoutMs: LIST_TIMEOUT_MS, signal });
}

const TASKS: ReadonlyMap<string, ImageTask> = new Map([
  ['/v1/images/generations', 'generation'],
  ['/v1/images/edits', 'edit'],
  ['/v1/images/variations', 'variation'],
]);

const planRequest: Provider['infer'] = ({ path, capability }, capabilities, slot) => {
  if (capability !== 'image' || !capabilities.includes('image'))
    return { kind: 'refuse', message: `An image model does not serve "${path}"; send the request to a slot with another model` };
  const task = TASKS.get(path);
  if (task === undefined)
    return { kind: 'refuse', message: `An image slot does not serve "${path}"; use "${[...TASKS.keys()].join('" or "')}"` };
  return { kind: 'translate', run: translateImages(slot?.model, task) };
};

export const image: Provider = {
  kind: 'image',
  program: command.PROGRAM,
  toolbox: { folder: 'image', backends: ['rocm'] },
  containerPort: 8188,
  readyPath: READY_PATH,
  safeFlags: command.SAFE_FLAGS,
  models: imageFormat,
  openProgram: openComfyUi,
  rankBackends: (hardware) => rankBackends('image', hardware),
  devices: command.devicesOf,
  buildEnv: command.serverEnvironment,
  startCmd: command.serverCommand,
  estimateMemory: (_name, spec, model) => command.imageMemory(spec, model),
  leastDeviceBytes: (_name, spec, model) => command.leastDeviceBytes(spec, model),
  objection: (_name, _spec, model) => command.objectionTo(model),
  capabilities: (_name, _spec, model) => command.capabilitiesOf(model),
  health: askHealth,
  readiness: askReadiness,
  infer: planRequest,
};
