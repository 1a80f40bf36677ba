/** Runs workloads as podman containers, through podman's REST API: creates, starts and removes them. */
import { readdir, stat } from 'node:fs/promises';
import { uptime } from 'node:os';
import type { Runtime, Workload } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { WorkloadId } from '../../schema/words/names.ts';
import { undeclared } from './decide/container-facts.ts';
import { nameTakenMessage, containerSpec } from './decide/podman-container.ts';
import { createPodmanApi, CREATE_TIMEOUT_MS, Created, LIBPOD, REMOVE_TIMEOUT_MS, type PodmanAnswer, type PodmanApi } from './podman-api.ts';
import { createPodmanEvents } from './podman-events.ts';
import { printFromImage, readLogs, removePrinting } from './podman-logs.ts';
import { createPodmanObserver, type FoundContainer, type PodmanObserver } from './podman-observe.ts';
import { imageNotBuilt, pullImage } from './podman-pull.ts';
import type { ReadDeviceMemory } from '../hardware/device-memory.ts';
import { checkPortFree, portTaken } from '../host-probe.ts';
import { createProcessMemoryReader } from '../process-memory.ts';

export interface PodmanRuntimeOptions {
  /** Path of podman's API socket: see `findPodmanSocket()`. */
  readonly socketPath: string;
  /**
   * Identifies this installation across restarts, e.g. by its configuration directory. Containers of others are
   * ignored. Default: `svc`.
   */
  readonly instance?: string;
  /** Default: device memory is unknown. */
  readonly deviceMemory?: ReadDeviceMemory;
}

export function createPodmanRuntime({ socketPath, instance = 'svc', deviceMemory }: PodmanRuntimeOptions): Runtime {
  const api = createPodmanApi(socketPath);
  const observer = createPodmanObserver(api, instance, () => events.live(), createProcessMemoryReader({ devices: deviceMemory }));
  const events = createPodmanEvents(api, observer.forget);
  const containers = createPodmanContainers(api, observer, instance);
  let swept: Promise<void> | undefined;

  /** A container has the name of the workload. */
  const resume = async (found: FoundContainer, workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    const present = found.workload;
    if (present?.revision !== workload.revision || present.slot !== workload.slot)
      return fail('retry', 'NameTaken', nameTakenMessage(workload.name, found.owner, instance));
    if (present.phase === 'running') return ok(present.id);
    const samePort = present.container.port?.host === workload.port.host && present.container.port.container === workload.port.container;
    if (samePort && present.phase !== 'stopping') {
      const free = await checkPortFree(workload.port.host);
      return free.ok ? containers.start(found.id, workload, signal) : free;
    }
    const removed = await containers.remove(found.id, signal);
    return removed.ok ? containers.createAndStart(workload, signal) : removed;
  };

  return {
    traits: { kind: 'podman', images: true, network: 'published', modelsTarget: '/models' },
    async observe(images, signal) {
      // Nothing prints before the first observation.
      await (swept ??= removePrinting(api, instance, signal));
      const facts = await observer.observe(images, signal);
      if (!facts.ok) return facts;
      // What ended with the machine is no crash: its slot starts as if it had not run.
      const bootedAt = Date.now() - uptime() * 1000;
      const ended = facts.value.workloads.filter(
        ({ exit, phase }) => phase === 'exited' && exit !== undefined && exit.at > 0 && exit.at < bootedAt,
      );
      for (const { id } of ended) await containers.remove(id, signal);
      return ok({ ...facts.value, workloads: facts.value.workloads.filter((workload) => !ended.includes(workload)) });
    },
    async pull(image, onProgress, signal) {
      const pulled = await pullImage(api, image, onProgress, signal);
      observer.forget('images');
      return pulled;
    },
    async apply(workload, signal) {
      if (signal.aborted) return fail('retry', 'Aborted', `The start of "${workload.name}" was cancelled`);
      const found = await observer.find(workload.name, signal);
      if (!found.ok) return found;
      return found.value === undefined ? containers.createAndStart(workload, signal) : resume(found.value, workload, signal);
    },
    stop: (id, { graceMs }, signal) => containers.stop(id, graceMs, signal),
    logs: (id, options, signal) => readLogs(api, id, options, signal),
    print: async (image, argv, signal) => printFromImage(api, { image, argv, instance }, signal),
    work: async (id) => await observer.work(id),
    changes: (wake, signal) => events.watch(wake, signal),
  };
}

function createPodmanContainers(api: PodmanApi, observer: PodmanObserver, instance: string) {
  /** Additions of `containers.conf`, learned from the first container. */
  let ambient: readonly string[] = [];

  const change = async (method: 'POST' | 'DELETE', path: string, timeoutMs: number, options: { signal: AbortSignal; body?: unknown }) => {
    const answer = await api.call(method, `${LIBPOD}/containers/${path}`, { ...options, timeoutMs });
    observer.forget('workloads');
    return answer;
  };

  /** Succeeds if there is no such container. */
  const remove = async (id: string, signal: AbortSignal): Promise<Result<void>> => {
    const answer = await change('DELETE', `${encodeURIComponent(id)}?force=true&v=true`, REMOVE_TIMEOUT_MS, { signal });
    if (!answer.ok) return answer;
    if (answer.value.status < 300 || answer.value.status === 404) return ok(undefined);
    return fail('retry', 'StopFailed', `The container could not be removed; retrying: ${answer.value.error}`);
  };

  const start = async (id: string, workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    const answer = await change('POST', `${encodeURIComponent(id)}/start`, CREATE_TIMEOUT_MS, { signal });
    if (!answer.ok) return answer;
    return answer.value.status < 400 ? ok(WorkloadId.parse(id)) : refusal(workload, answer.value);
  };

  /** If the host adds something, creates the container again with a label that lists it. */
  const create = async (workload: Workload, signal: AbortSignal): Promise<Result<string>> => {
    const rootless = await observer.rootless(signal);
    if (!rootless.ok) return rootless;
    const groups = rootless.value ? [] : await deviceGroups(workload.devices);
    const createOnce = async (): Promise<Result<string>> => {
      const body = containerSpec(workload, { instance, rootless: rootless.value, deviceGroups: groups, ambient });
      const answer = await change('POST', 'create', CREATE_TIMEOUT_MS, { signal, body });
      if (!answer.ok) return answer;
      const created = Created.safeParse(answer.value.body);
      return created.success ? ok(created.data.Id) : refusal(workload, answer.value);
    };
    const id = await createOnce();
    if (!id.ok) return id;
    const found = await observer.find(id.value, signal);
    const added = found.ok && found.value?.workload !== undefined ? undeclared(found.value.workload.container, workload) : [];
    if (added.length === 0) return id;
    ambient = [...new Set([...ambient, ...added])];
    const removed = await remove(id.value, signal);
    return removed.ok ? createOnce() : removed;
  };

  return {
    start,
    remove,
    async createAndStart(workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> {
      const free = await checkPortFree(workload.port.host);
      if (!free.ok) return free;
      const id = await create(workload, signal);
      if (!id.ok) return id;
      const started = await start(id.value, workload, signal);
      // A container that cannot start would block the next attempt, which may use another port.
      if (!started.ok) await remove(id.value, AbortSignal.timeout(REMOVE_TIMEOUT_MS));
      return started;
    },
    async stop(id: string, graceMs: number, signal: AbortSignal): Promise<Result<void>> {
      const seconds = Math.max(0, Math.ceil(graceMs / 1000));
      const path = `${encodeURIComponent(id)}/stop?timeout=${seconds}`;
      const stopped = await change('POST', path, seconds * 1000 + REMOVE_TIMEOUT_MS, { signal });
      if (!stopped.ok) return stopped;
      // Removed by force in any case: a failed stop must not leave the server running.
      return stopped.value.status === 404 ? ok(undefined) : remove(id, signal);
    },
  };
}

/** Most errors have status 500, so their text is matched. */
function refusal(workload: Workload, { error }: PodmanAnswer): Result<never> {
  const reference = workload.image?.reference ?? '';
  if (/image not known|no such image/i.test(error)) {
    if (reference.startsWith('localhost/')) return imageNotBuilt(reference);
    return fail('retry', 'ImageMissing', `Podman does not have the image "${reference}"; pull it again`);
  }
  if (/name .* is (already )?in use|name is already in use/i.test(error))
    return fail('retry', 'NameTaken', nameTakenMessage(workload.name, undefined, ''));
  if (/address already in use|port is already allocated|cannot listen on the TCP port/i.test(error)) return portTaken(workload.port.host);
  const device = workload.devices.find((name) => error.includes(name));
  if (device !== undefined) return deviceMissing(device, error);
  const mount = workload.mounts.find(({ source }) => error.includes(`stat ${source}:`) || error.includes(`statfs ${source}:`));
  if (mount !== undefined)
    return fail('retry', 'StartFailed', `The directory "${mount.source}", which the container mounts, does not exist; create it`);
  return fail('retry', 'StartFailed', `Podman could not start "${workload.name}": ${error.slice(0, 500)}`);
}

/** Retried, since drivers may load late during boot. */
function deviceMissing(device: string, error: string): Result<never> {
  const missing = device.startsWith('/')
    ? `This machine has no device "${device}"; load its driver, or choose another "backend"`
    : `Podman does not know the device "${device}"; write a CDI specification (for NVIDIA: "nvidia-ctk cdi generate"), or choose another "backend"`;
  return /no such|not found|unresolvable|not exist/i.test(error)
    ? fail('retry', 'DeviceMissing', missing)
    : fail('retry', 'DeviceMissing', `Device "${device}" cannot be used: ${error.slice(0, 300)}`);
}

/**
 * Returns the groups that own device nodes at these paths or in these directories. Even root needs them in a container
 * without capabilities.
 */
async function deviceGroups(devices: readonly string[]): Promise<readonly number[]> {
  const groups = await Promise.all(devices.filter((device) => device.startsWith('/')).map(groupsAt));
  return [...new Set(groups.flat())].filter((group) => group !== 0).toSorted((a, b) => a - b);
}

async function groupsAt(path: string): Promise<number[]> {
  try {
    const found = await stat(path);
    if (!found.isDirectory()) return [found.gid];
    const entries = await readdir(path, { withFileTypes: true });
    const nodes = entries.filter((entry) => entry.isCharacterDevice()).map((entry) => stat(`${path}/${entry.name}`));
    return (await Promise.all(nodes)).map((node) => node.gid);
  } catch {
    return [];
  }
}
