/**
 * Converts a workload into podman's container specification (`specgen`). The opposite of `container-facts.ts`: a new
 * container is observed as its workload. Pure.
 */
import { z } from 'zod';
import type { Workload, ImageReference } from '../../../reconciler/ports.ts';
import { LABEL_PREFIX, LABELS } from '../../../schema/pod/kube-fields.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';

/** The installation of the container, so that several can share one podman. */
export const INSTANCE_LABEL = `${LABEL_PREFIX}/instance`;
/** JSON of `Declared`: settings of the workload itself, so that additions of the image and podman are no drift. */
export const DECLARED_LABEL = `${LABEL_PREFIX}/declared`;
/** On a container that only prints something: the installation that asked. */
export const PRINTS_LABEL = `${LABEL_PREFIX}/prints`;
/** JSON list of tokens for additions of `containers.conf`, found by inspecting a new container. */
export const AMBIENT_LABEL = `${LABEL_PREFIX}/ambient`;

/** Variable names, mount targets and devices. */
export const Declared = z.object({ env: z.array(z.string()), mounts: z.array(z.string()), devices: z.array(z.string()) });
export type Declared = z.output<typeof Declared>;

/** Additions of the host. */
interface ContainerHost {
  readonly instance: string;
  readonly rootless: boolean;
  /** Groups that own the device nodes. Ids, because names would have to exist in the image. */
  readonly deviceGroups: readonly number[];
  /** Tokens of `undeclared()`. */
  readonly ambient: readonly string[];
}

/** Used by a manual `podman stop`; the runtime passes its own time. */
const STOP_TIMEOUT_S = 30;
/** After that, podman kills a container that only prints something, also without us. */
const PRINTING_TIMEOUT_S = 60;
/** Conmon restarts a full file, so a verbose server cannot fill the disk. */
const LOG_LIMIT_BYTES = 16 * 1024 * 1024;
/** "Unlimited": podman before 5.5 refuses -1, and 2^64-1 is not a JavaScript number. */
const MEMLOCK_UNLIMITED = Number.MAX_SAFE_INTEGER;
/** One limit drops the defaults of `containers.conf`, and engines open many files. */
const OPEN_FILES = 16_384;

/** A Container Device Interface name such as `nvidia.com/gpu=all`. */
export const isCdiName = (device: string): boolean => !device.startsWith('/');

const CONFINED = {
  httpproxy: false,
  cap_drop: ['ALL'],
  no_new_privileges: true,
  read_only_filesystem: true,
  // Only the reconciler restarts: restarts by podman would hide crashes.
  restart_policy: 'no',
  log_configuration: { driver: 'k8s-file', size: LOG_LIMIT_BYTES },
};

/** The body of `POST /libpod/containers/create`. */
export function containerSpec(workload: Workload, host: ContainerHost): Readonly<Record<string, unknown>> {
  const [program, ...rest] = workload.argv;
  return {
    ...CONFINED,
    name: workload.name,
    image: workload.image && imageToRun(workload.image),
    // Both are set, so that the entrypoint of the image adds no arguments.
    entrypoint: [program],
    command: rest,
    env: workload.env,
    labels: labels(workload, host),
    mounts: [
      ...workload.mounts.map((mount) => ({
        type: 'bind',
        source: mount.source,
        destination: mount.target,
        options: [mount.readOnly ? 'ro' : 'rw', 'rbind'],
      })),
      { type: 'tmpfs', destination: '/tmp', options: ['rw', 'nosuid', 'nodev', 'mode=1777', 'size=1g'] },
    ],
    image_volume_mode: 'tmpfs',
    portmappings: [{ host_ip: '127.0.0.1', host_port: workload.port.host, container_port: workload.port.container, protocol: 'tcp' }],
    devices: workload.devices.map((path) => ({ path })),
    ...groups(workload, host),
    ...limits(workload),
    stop_timeout: STOP_TIMEOUT_S,
  };
}

/** A local image is identified by its id, whatever its name refers to by now. */
export const imageToRun = ({ reference, imageId }: ImageReference): string =>
  reference.startsWith('localhost/') ? (imageId ?? reference) : reference;

function labels(workload: Workload, { instance, ambient }: ContainerHost): Record<string, string> {
  const declared: Declared = {
    env: Object.keys(workload.env),
    mounts: workload.mounts.map((mount) => mount.target),
    devices: [...workload.devices],
  };
  return {
    [LABELS.slot]: workload.slot,
    [LABELS.revision]: workload.revision,
    [LABELS.generation]: String(workload.generation),
    [INSTANCE_LABEL]: instance,
    [DECLARED_LABEL]: JSON.stringify(declared),
    ...(ambient.length > 0 ? { [AMBIENT_LABEL]: JSON.stringify(ambient) } : {}),
  };
}

/** Rootless podman cannot add host groups; the container keeps the groups of the user. */
function groups(workload: Workload, host: ContainerHost): Record<string, unknown> {
  if (workload.devices.length === 0) return {};
  if (host.rootless) return { annotations: { 'run.oci.keep_original_groups': '1' } };
  return host.deviceGroups.length > 0 ? { groups: host.deviceGroups.map(String) } : {};
}

function limits(workload: Workload): Record<string, unknown> {
  const pinsMemory = workload.devices.some((device) => device.startsWith('/dev/accel'));
  return {
    ...(workload.memoryLimitBytes === undefined ? {} : { resource_limits: { memory: { limit: workload.memoryLimitBytes } } }),
    // Podman adds the prefix `RLIMIT_`.
    ...(pinsMemory
      ? {
          r_limits: [
            { type: 'memlock', soft: MEMLOCK_UNLIMITED, hard: MEMLOCK_UNLIMITED },
            { type: 'nofile', soft: OPEN_FILES, hard: OPEN_FILES },
          ],
        }
      : {}),
  };
}

/** A container that runs one program and sees nothing of the host. It belongs to no slot, so it is no workload. */
export function printingContainer(image: ImageReference, [program, ...rest]: readonly [string, ...string[]], instance: string) {
  return {
    ...CONFINED,
    image: imageToRun(image),
    entrypoint: [program],
    command: rest,
    env: { HOME: '/tmp' },
    labels: { [PRINTS_LABEL]: instance },
    timeout: PRINTING_TIMEOUT_S,
    netns: { nsmode: 'none' },
    mounts: [{ type: 'tmpfs', destination: '/tmp', options: ['rw', 'nosuid', 'nodev', 'mode=1777', 'size=64m'] }],
    image_volume_mode: 'ignore',
  };
}

/** Longest path in a message. */
const LONGEST_PATH = 200;

/** `owner`: the instance in its label, undefined if svc did not create it. `instance`: this service. */
export function nameTakenMessage(name: string, owner: string | undefined, instance: string): string {
  if (owner === undefined) {
    return `Another program has a container "${name}", a name that the slot needs; rename it, or remove it with "podman rm -f ${name}"`;
  }
  if (owner === instance) return `The container "${name}" runs an earlier version of this slot; wait until it is removed`;
  const directory = JSON.stringify(shorten(owner, LONGEST_PATH));
  const problem = `The service with the configuration directory ${directory} has a container "${name}"`;
  return `${problem}; rename the slot, or if that service is no longer used, remove its container with "podman rm -f ${name}"`;
}
