/**
 * Chooses the runtime, and with it the world of the service. A machine keeps the one that it started with, which
 * `runtime.json` in the state directory names:
 *
 *     SVC_RUNTIME is "podman", "process" or "kube"     this one
 *     it is "auto", and slots have run here before     the runtime that they run in, also while podman does not answer
 *     it is "auto", for the first time                 podman where it answers and has an image of a slot, else kube in
 *                                                      a cluster, else processes
 *
 * After a change of the setting, workloads of the former runtime serve until those of the new one do.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { createToolboxSource } from '../files/toolbox-manifest.ts';
import { ifThere, listDirectory, writeJsonAtomically } from '../files/write-file.ts';
import type { ReadDeviceMemory } from '../host/hardware/device-memory.ts';
import { createProcessRecords } from '../host/process/process-records.ts';
import { createProcessRuntime, type ProcessRuntimeOptions } from '../host/process/process-runtime.ts';
import { createProcessMemoryReader } from '../host/process-memory.ts';
import { createTomlDirectory } from '../host/slots/toml-directory.ts';
import { parseJson } from '../platform/decide/parse-json.ts';
import { messageOf } from '../platform/error-text.ts';
import type { ObservedWorkload, Runtime } from '../reconciler/ports.ts';
import { kindFacts, PROVIDER_KIND_NAMES, type Backend, type ProviderKind } from '../schema/slot/provider-kinds.ts';
import type { Settings } from '../schema/settings/settings.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { WorkloadId } from '../schema/words/names.ts';
import { createHostWorld } from './host-world.ts';
import { installedProgram } from '../providers/host-program.ts';
import type { Provider } from '../providers/provider.ts';
import { createEngineDirectory } from '../files/engine-directory.ts';
import { enginesOf } from './engines.ts';
import type { OwnProgram, ServiceOptions, World } from './world.ts';

const Chosen = z.object({ runtime: z.enum(['process', 'podman']), socketPath: z.string().exactOptional() });
type Chosen = z.output<typeof Chosen>;
/** `<state>/runtime.json`. `leaving`: the runtime before, until nothing runs in it. */
const Memory = z.object({ chosen: Chosen, leaving: Chosen.exactOptional() });
type Memory = z.output<typeof Memory>;

export async function chooseWorld(choice: ServiceOptions): Promise<Result<World>> {
  const { settings, env, log } = choice;
  const { SVC_RUNTIME: wanted } = settings;
  if (wanted === 'kube') return clusterWorld(choice);
  const before = await recall(settings.SVC_STATE_DIR).catch((error: unknown) => messageOf(error));
  if (typeof before === 'string')
    return fail('stalled', 'SettingUnusable', `The runtime of the slots is not known: ${before}; make it readable`);
  const chosen = await choose(choice, before?.chosen);
  if (chosen === undefined) {
    const message = 'No podman socket was found: start podman with "systemctl enable --now podman.socket", or set "SVC_PODMAN_SOCKET"';
    return fail('stalled', 'PodmanNotFound', message);
  }
  if (chosen === 'kube') return clusterWorld(choice);
  const former = formerOf(before, chosen.runtime);
  const remember = async (memory: Memory): Promise<void> =>
    await writeJsonAtomically(join(settings.SVC_STATE_DIR, MEMORY_FILE), memory, 0o600).catch((error: unknown) =>
      log.warn({ error: messageOf(error) }, `Writing "${MEMORY_FILE}" failed; the runtime may be chosen anew at the next start`),
    );
  const open = async (one: Chosen): Promise<(deviceMemory: ReadDeviceMemory) => Runtime> => {
    const { SVC_STATE_DIR: stateDir, SVC_CONFIG_DIR: instance } = settings;
    const { socketPath } = one;
    if (socketPath === undefined) return (deviceMemory) => createProcessRuntime({ stateDir, env, resolveProgram, deviceMemory });
    const { createPodmanRuntime } = await loadPodman();
    return (deviceMemory) => createPodmanRuntime({ socketPath, instance, deviceMemory });
  };
  const host = { env, stateDir: settings.SVC_STATE_DIR, onProgress: (message: string) => log.info({}, message) };
  const opened = new WeakMap<Provider, OwnProgram>();
  const programOf = (provider: Provider): OwnProgram => {
    const own = opened.get(provider) ?? { kind: provider.kind, name: provider.program, ...provider.openProgram(host) };
    opened.set(provider, own);
    return own;
  };
  const programs = (): readonly OwnProgram[] => Object.values(choice.providers).map(programOf);
  const resolveProgram: ProcessRuntimeOptions['resolveProgram'] = async (name, signal, engine) => {
    // A slot names it: words of providers are no paths.
    if (isAbsolute(name) && engine === undefined) {
      const found = await installedProgram(name, {}, 'correct "program.path" of the slot, or install it there').find();
      return found.ok ? ok([found.value]) : found;
    }
    return (
      (await programs()
        .find((each) => (engine === undefined ? each.name === name : each.kind === engine))
        ?.resolve(signal)) ?? fail('stalled', 'StartFailed', `The program "${name}" is not known: install a version that supports it`)
    );
  };
  const create = await open(chosen);
  const createFormer = former && (await open(former));
  if (former !== undefined)
    log.warn(
      { runtime: chosen.runtime, former: former.runtime },
      `Slots now run in "${chosen.runtime}"; those that still run in "${former.runtime}" serve until they are replaced`,
    );
  const createBoth = (deviceMemory: ReadDeviceMemory): Runtime =>
    keepRuntime(create(deviceMemory), createFormer?.(deviceMemory), async (isDrained) => {
      await remember({ chosen, ...(isDrained || former === undefined ? {} : { leaving: former }) });
    });
  return await createHostWorld(choice, createBoth, chosen.runtime === 'process' ? programs : undefined);
}

const MEMORY_FILE = 'runtime.json';

/** Throws the system's error if that cannot be read. Versions up to 0.2 left nothing but records of processes. */
async function recall(stateDir: string): Promise<Memory | undefined> {
  const memory = Memory.safeParse(parseJson((await ifThere(readFile(join(stateDir, MEMORY_FILE), 'utf8'))) ?? '')).data;
  if (memory !== undefined) return memory;
  const records = await listDirectory(join(stateDir, 'run'));
  return records.some((name) => name.endsWith('.json')) ? { chosen: { runtime: 'process' } } : undefined;
}

/** The runtime that may still have workloads, beside the present one. */
const formerOf = (memory: Memory | undefined, present: string | undefined): Chosen | undefined =>
  [memory?.leaving, memory?.chosen].find((each) => each !== undefined && each.runtime !== present);

/** Says which workloads still run in the runtime before; undefined without any. Changes nothing. */
export async function describeFormer(settings: Settings): Promise<string | undefined> {
  const { SVC_STATE_DIR: stateDir, SVC_CONFIG_DIR: instance, SVC_RUNTIME: wanted } = settings;
  const before = await recall(stateDir);
  const former = formerOf(before, wanted === 'auto' ? before?.chosen.runtime : wanted);
  if (former === undefined) return undefined;
  const names = await (former.socketPath === undefined ? listProcesses(stateDir) : listContainers(former.socketPath, instance));
  const quoted = names.map((name) => `"${name}"`).join(', ');
  return names.length === 0 ? undefined : `${quoted} still run in the former runtime "${former.runtime}"`;
}

async function listProcesses(stateDir: string): Promise<readonly string[]> {
  const { records } = await createProcessRecords(join(stateDir, 'run')).readAll();
  return records.filter(({ exit }) => exit === undefined).map(({ name }) => name);
}

async function listContainers(socketPath: string, instance: string): Promise<readonly string[]> {
  const { createPodmanApi, createPodmanObserver } = await loadPodman();
  const observer = createPodmanObserver(createPodmanApi(socketPath), instance, () => false, createProcessMemoryReader());
  const facts = await observer.observe([], AbortSignal.timeout(READ_WITHIN_MS));
  if (!facts.ok) throw new Error(facts.failure.message);
  return facts.value.workloads.filter(({ phase }) => phase !== 'exited').map(({ name }) => name);
}

/** Undefined if podman was asked for and was not found. */
async function choose(choice: ServiceOptions, before: Chosen | undefined): Promise<Chosen | 'kube' | undefined> {
  const { settings, env } = choice;
  const { SVC_RUNTIME: wanted } = settings;
  const kept = wanted === 'auto' ? before : undefined;
  if (wanted === 'process' || kept?.runtime === 'process') return { runtime: 'process' };
  const { findPodmanSocket, podmanAnswers } = await loadPodman();
  const socketPath = (await findPodmanSocket(env)) ?? kept?.socketPath;
  const isPodman = wanted === 'podman' || kept !== undefined;
  if (socketPath === undefined && isPodman) return undefined;
  if (socketPath !== undefined && (isPodman || ((await podmanAnswers(socketPath)) && (await hasImages(choice)))))
    return { runtime: 'podman', socketPath };
  return existsSync(SERVICE_ACCOUNT_TOKEN) ? 'kube' : { runtime: 'process' };
}

/** Whether an image of a wanted slot is known; without slots, any image. */
async function hasImages({ settings, toolboxManifest, log }: ServiceOptions): Promise<boolean> {
  const { SVC_CONFIG_DIR: configDir, SVC_STATE_DIR: stateDir } = settings;
  const quiet = { ...log, warn: () => undefined };
  const images = await createToolboxSource({ shipped: toolboxManifest, local: join(configDir, 'toolboxes.toml'), log: quiet }).read();
  const places = { directory: join(configDir, 'slots'), lastGoodDirectory: join(stateDir, 'slots') };
  const read = await createTomlDirectory({ ...places, quietPeriodMs: 0, log: quiet }).read(AbortSignal.timeout(READ_WITHIN_MS));
  const specs = read.ok ? [...read.value.slots.values()].map(({ spec }) => spec).filter(({ enabled }) => enabled) : [];
  const engines = createEngineDirectory({
    directory: join(configDir, 'engines'),
    lastGoodFile: join(stateDir, 'engines.json'),
    log: quiet,
  });
  const { definitions } = await engines.read(enginesOf(specs.map((spec) => ({ spec }))));
  const hasImage = (kind: ProviderKind, backends: readonly Backend[]): boolean =>
    backends.some((backend) => images.find(kind, backend) !== undefined || definitions.get(kind)?.image?.[backend] !== undefined);
  if (specs.length === 0) return PROVIDER_KIND_NAMES.some((kind) => hasImage(kind, kindFacts(kind).backends));
  return specs.some(
    ({ provider, backend, backendGiven, program }) =>
      program?.image !== undefined || hasImage(provider, backendGiven ? [backend] : kindFacts(provider).backends),
  );
}

/**
 * Shows the workloads of a former runtime beside those of the present one, which replaces them. Calls `remember` before
 * the first start, and when nothing runs in the former runtime any more (`isDrained`).
 */
export function keepRuntime(runtime: Runtime, former: Runtime | undefined, remember: (isDrained: boolean) => Promise<void>): Runtime {
  let hasBegun = false;
  let isDrained = former === undefined;
  /** As last seen: a runtime that does not answer may still run them. */
  let left: readonly ObservedWorkload[] = [];
  const runtimeOf = (id: WorkloadId): Runtime => (former !== undefined && left.some((each) => each.id === id) ? former : runtime);
  return {
    ...runtime,
    async observe(images, signal) {
      const [facts, leaving] = await Promise.all([runtime.observe(images, signal), isDrained ? undefined : former?.observe([], signal)]);
      if (leaving?.ok === true) left = leaving.value.workloads;
      if (leaving?.ok === true && left.length === 0 && facts.ok) {
        isDrained = true;
        await remember(isDrained);
      }
      return facts.ok ? ok({ ...facts.value, workloads: [...facts.value.workloads, ...left] }) : facts;
    },
    async apply(workload, signal) {
      if (!hasBegun) await remember(isDrained);
      hasBegun = true;
      return await runtime.apply(workload, signal);
    },
    stop: async (id, options, signal) => await runtimeOf(id).stop(id, options, signal),
    logs: (id, options, signal) => runtimeOf(id).logs(id, options, signal),
    work: async (id) => await runtimeOf(id).work?.(id),
    changes(wake, signal) {
      runtime.changes(wake, signal);
      former?.changes(wake, signal);
    },
  };
}

/** Files are read within milliseconds. */
const READ_WITHIN_MS = 15_000;

/** Imported only in a cluster, because the Kubernetes client is large. */
async function clusterWorld(choice: ServiceOptions): Promise<Result<World>> {
  if (choice.settings.SVC_GIT_URL !== undefined)
    choice.log.warn({}, '"SVC_GIT_URL" has no effect in a cluster: let Argo CD or Flux apply SlotSpecs (docs/cluster/slots.md)');
  const { createClusterWorld } = await import('./cluster-world.ts');
  return createClusterWorld(choice);
}

/** Mounted unless the pod opts out. https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ */
const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** Imported only if podman may be used, because its HTTP client is large. */
async function loadPodman() {
  return {
    ...(await import('../host/podman/podman-runtime.ts')),
    ...(await import('../host/podman/podman-api.ts')),
    ...(await import('../host/podman/podman-observe.ts')),
  };
}
