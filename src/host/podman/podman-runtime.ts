/** The runtime that runs workloads as podman containers, through podman's REST API on its unix socket. */
import { z } from 'zod';
import type { Runtime, Workload } from '../../reconciler/ports.ts';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import { WorkloadId } from '../../schema/names.ts';
import { containerSpec } from './decide/podman-container.ts';
import { undeclared } from './decide/podman-inspect.ts';
import { deviceGroups } from './device-groups.ts';
import { createPodmanApi, LIBPOD } from './podman-api.ts';
import type { PodmanAnswer } from './podman-api.ts';
import { createPodmanEvents } from './podman-events.ts';
import { readLogs } from './podman-logs.ts';
import { createPodmanObserver } from './podman-observe.ts';
import type { FoundContainer } from './podman-observe.ts';
import { imageNotBuilt, pullImage } from './podman-pull.ts';
import { checkPortFree, portTaken } from '../port-check.ts';

export interface PodmanRuntimeOptions {
  /** Path of podman's API socket: see `findPodmanSocket()`. */
  readonly socketPath: string;
  /** Names this installation, the same after each restart: its configuration directory. Containers of others are left alone. Default: `svc`. */
  readonly instance?: string;
}

const Created = z.object({ Id: z.string().min(1) });

/** Making a container of a large image takes long on slow disks. */
const CREATE_TIMEOUT_MS = 120_000;
/** What podman itself needs to kill and clean up, beyond the time the server is given. */
const REMOVE_TIMEOUT_MS = 60_000;

export function createPodmanRuntime({ socketPath, instance = 'svc' }: PodmanRuntimeOptions): Runtime {
  const api = createPodmanApi(socketPath);
  const observer = createPodmanObserver(api, instance, () => events.live());
  const events = createPodmanEvents(api, (what) => observer.forget(what));
  /** What `containers.conf` adds to containers; learnt from the first one made. */
  let ambient: readonly string[] = [];

  const remove = async (id: string, signal: AbortSignal): Promise<Result<void>> => {
    const path = `${LIBPOD}/containers/${encodeURIComponent(id)}?force=true&v=true`;
    const answer = await api.call('DELETE', path, { signal, timeoutMs: REMOVE_TIMEOUT_MS });
    observer.forget('workloads');
    if (!answer.ok) return answer;
    if (answer.value.status < 300 || answer.value.status === 404) return ok(undefined);
    return fail('retry', 'StopFailed', `The container could not be removed, it is tried again: ${answer.value.error}`);
  };

  const start = async (id: string, workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    const answer = await api.call('POST', `${LIBPOD}/containers/${encodeURIComponent(id)}/start`, { signal, timeoutMs: CREATE_TIMEOUT_MS });
    observer.forget('workloads');
    if (!answer.ok) return answer;
    return answer.value.status < 400 ? ok(WorkloadId.parse(id)) : refusal(workload, answer.value);
  };

  /** Made twice when the host adds something of its own, so that the second says what that is. */
  const create = async (workload: Workload, signal: AbortSignal): Promise<Result<string>> => {
    const rootless = await observer.rootless(signal);
    if (!rootless.ok) return rootless;
    const groups = rootless.value ? [] : await deviceGroups(workload.devices);
    const ask = async (): Promise<Result<string>> => {
      const answer = await api.call('POST', `${LIBPOD}/containers/create`, {
        signal,
        body: containerSpec(workload, { instance, rootless: rootless.value, deviceGroups: groups, ambient }),
        timeoutMs: CREATE_TIMEOUT_MS,
      });
      observer.forget('workloads');
      if (!answer.ok) return answer;
      const created = Created.safeParse(answer.value.body);
      return created.success ? ok(created.data.Id) : refusal(workload, answer.value);
    };
    const id = await ask();
    if (!id.ok) return id;
    const made = await observer.find(id.value, signal);
    const added = made.ok && made.value?.workload !== undefined ? undeclared(made.value.workload.container, workload) : [];
    if (added.length === 0) return id;
    ambient = [...new Set([...ambient, ...added])];
    const removed = await remove(id.value, signal);
    return removed.ok ? ask() : removed;
  };

  const createAndStart = async (workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    const free = await checkPortFree(workload.port.host);
    if (!free.ok) return free;
    const id = await create(workload, signal);
    if (!id.ok) return id;
    const started = await start(id.value, workload, signal);
    // A container that cannot start would only stand in the way of the next attempt, which may have another port.
    if (!started.ok) await remove(id.value, AbortSignal.timeout(REMOVE_TIMEOUT_MS));
    return started;
  };

  const resume = async (found: FoundContainer, workload: Workload, signal: AbortSignal): Promise<Result<WorkloadId>> => {
    const present = found.workload;
    if (present?.revision !== workload.revision || present.slot !== workload.slot) return nameTaken(workload.name);
    if (present.phase === 'running') return ok(present.id);
    const samePort = present.container.port?.host === workload.port.host && present.container.port.container === workload.port.container;
    if (samePort && present.phase !== 'stopping') {
      const free = await checkPortFree(workload.port.host);
      return free.ok ? start(found.id, workload, signal) : free;
    }
    const removed = await remove(found.id, signal);
    return removed.ok ? createAndStart(workload, signal) : removed;
  };

  return {
    traits: { kind: 'podman', images: true, network: 'published', modelsTarget: '/models' },
    observe: observer.observe,
    async pull(image, onProgress, signal) {
      const pulled = await pullImage(api, image, onProgress, signal);
      observer.forget('images');
      return pulled;
    },
    async apply(workload, signal) {
      if (signal.aborted) return fail('retry', 'Aborted', `The start of "${workload.name}" was given up`);
      const found = await observer.find(workload.name, signal);
      if (!found.ok) return found;
      return found.value === undefined ? createAndStart(workload, signal) : resume(found.value, workload, signal);
    },
    async stop(id, { graceMs }, signal) {
      const seconds = Math.max(0, Math.ceil(graceMs / 1000));
      const path = `${LIBPOD}/containers/${encodeURIComponent(id)}/stop?timeout=${seconds}`;
      const asked = await api.call('POST', path, { signal, timeoutMs: seconds * 1000 + REMOVE_TIMEOUT_MS });
      observer.forget('workloads');
      if (!asked.ok) return asked;
      // Whatever podman said to the request, a forced removal ends it: a stop that fails half-way must not leave the server running.
      return asked.value.status === 404 ? ok(undefined) : remove(id, signal);
    },
    logs: (id, options, signal) => readLogs(api, id, options, signal),
    changes: (wake, signal) => events.watch(wake, signal),
  };
}

const nameTaken = (name: string): Result<never> =>
  fail('retry', 'NameTaken', `Remove the container "${name}" with "podman rm -f ${name}": it is in the way and is not the one wanted`);

/** Podman answers most refusals with status 500, so the words decide. */
function refusal(workload: Workload, { error }: PodmanAnswer): Result<never> {
  const reference = workload.image?.reference ?? '';
  if (/image not known|no such image/i.test(error)) {
    if (reference.startsWith('localhost/')) return imageNotBuilt(reference);
    return fail('retry', 'ImageMissing', `Pull the image "${reference}" again: podman does not have it`);
  }
  if (/name .* is (already )?in use|name is already in use/i.test(error)) return nameTaken(workload.name);
  if (/address already in use|port is already allocated|cannot listen on the TCP port/i.test(error)) return portTaken(workload.port.host);
  const device = workload.devices.find((name) => error.includes(name));
  if (device !== undefined) return deviceMissing(device, error);
  const mount = workload.mounts.find(({ source }) => error.includes(`stat ${source}:`) || error.includes(`statfs ${source}:`));
  if (mount !== undefined)
    return fail('retry', 'StartFailed', `Create the directory "${mount.source}": the container mounts it and it is not there`);
  return fail('retry', 'StartFailed', `Podman could not start "${workload.name}": ${error.slice(0, 500)}`);
}

/** To be tried again, not stalled: drivers are loaded late in a boot. */
function deviceMissing(device: string, error: string): Result<never> {
  const advice = device.startsWith('/')
    ? `Load the driver that makes "${device}", or choose another "backend": this machine has no such device`
    : `Write a CDI specification for "${device}" (for NVIDIA: "nvidia-ctk cdi generate"), or choose another "backend": podman does not know it`;
  return /no such|not found|unresolvable|not exist/i.test(error)
    ? fail('retry', 'DeviceMissing', advice)
    : fail('retry', 'DeviceMissing', `Device "${device}" cannot be used: ${error.slice(0, 300)}`);
}
