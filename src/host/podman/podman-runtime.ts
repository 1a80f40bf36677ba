/** Runs workloads as podman containers, through podman's REST API. */
import { uptime } from 'node:os';
import type { Runtime, Workload } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { WorkloadId } from '../../schema/words/names.ts';
import { createPodmanApi } from './podman-api.ts';
import { nameTakenMessage } from './decide/podman-container.ts';
import { createPodmanContainers } from './podman-containers.ts';
import { createPodmanEvents } from './podman-events.ts';
import { readLogs, printFromImage } from './podman-logs.ts';
import { createPodmanObserver, type FoundContainer } from './podman-observe.ts';
import { pullImage } from './podman-pull.ts';
import type { ReadDeviceMemory } from '../hardware/device-memory.ts';
import { checkPortFree } from '../host-probe.ts';
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
    print: async (image, argv, signal) => printFromImage(api, image, argv, signal),
    work: async (id) => await observer.work(id),
    changes: (wake, signal) => events.watch(wake, signal),
  };
}
