/**
 * Converts a workload into podman's container specification (`specgen`). Pure. `observed-workload.ts` is the opposite direction: a new container of a
 * workload is observed as that workload.
 */
import { z } from 'zod';
import type { Workload, ImageReference } from '../../../reconciler/ports.ts';
import { LABEL_PREFIX, LABELS } from '../../../schema/pod/kube-fields.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';

/** The installation that the container belongs to, so that two of them can share one podman. */
export const INSTANCE_LABEL = `${LABEL_PREFIX}/instance`;
/** JSON of `Declared`: what the workload set itself, so that additions of the image and podman are not mistaken for drift. */
export const DECLARED_LABEL = `${LABEL_PREFIX}/declared`;
/** JSON list of tokens: what this host's `containers.conf` adds to every container, found by inspecting a new one. */
export const AMBIENT_LABEL = `${LABEL_PREFIX}/ambient`;

/** Names of variables, targets of mounts, and devices. */
export const Declared = z.object({ env: z.array(z.string()), mounts: z.array(z.string()), devices: z.array(z.string()) });
export type Declared = z.output<typeof Declared>;

/** What the host adds to the specification. */
interface ContainerHost {
  readonly instance: string;
  readonly rootless: boolean;
  /** Ids of the groups that own the workload's device nodes; names would have to exist inside the image. */
  readonly deviceGroups: readonly number[];
  /** Tokens of `undeclared()`. */
  readonly ambient: readonly string[];
}

/** For a manual `podman stop`; the runtime passes its own time. */
const STOP_TIMEOUT_S = 30;
/** When the file is full, conmon starts it again, so that a verbose server cannot fill the disk. */
const LOG_LIMIT_BYTES = 16 * 1024 * 1024;
/** "Unlimited" for the API: podman before 5.5 refuses -1, and 2^64-1 is not a JavaScript number. */
const MEMLOCK_UNLIMITED = Number.MAX_SAFE_INTEGER;
/** Setting one limit drops the defaults of `containers.conf`, and the engines open many files. */
const OPEN_FILES = 16_384;

/** Whether it is a name of the Container Device Interface, such as `nvidia.com/gpu=all`. */
export const isCdiName = (device: string): boolean => !device.startsWith('/');

/** The body of `POST /libpod/containers/create`. */
export function containerSpec(workload: Workload, host: ContainerHost): Readonly<Record<string, unknown>> {
  const [program, ...rest] = workload.argv;
  return {
    name: workload.name,
    image: imageToRun(workload),
    // The image may have its own entrypoint: both are set, so that the image adds no arguments.
    entrypoint: [program],
    command: rest,
    env: workload.env,
    httpproxy: false,
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
    cap_drop: ['ALL'],
    no_new_privileges: true,
    read_only_filesystem: true,
    // Restarts are the reconciler's job: restarts by podman would hide crashes from it.
    restart_policy: 'no',
    stop_timeout: STOP_TIMEOUT_S,
    log_configuration: { driver: 'k8s-file', size: LOG_LIMIT_BYTES },
  };
}

function imageToRun(workload: Workload): string | undefined {
  const { image } = workload;
  return image?.reference.startsWith('localhost/') === true ? (image.imageId ?? image.reference) : image?.reference;
}

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

/** Rootless podman cannot add a group of the host; the container keeps the user's groups instead. */
function groups(workload: Workload, host: ContainerHost): Record<string, unknown> {
  if (workload.devices.length === 0) return {};
  if (host.rootless) return { annotations: { 'run.oci.keep_original_groups': '1' } };
  return host.deviceGroups.length > 0 ? { groups: host.deviceGroups.map(String) } : {};
}

function limits(workload: Workload): Record<string, unknown> {
  const pinsMemory = workload.devices.some((device) => device.startsWith('/dev/accel'));
  return {
    ...(workload.memoryLimitBytes === undefined ? {} : { resource_limits: { memory: { limit: workload.memoryLimitBytes } } }),
    // Without the prefix `RLIMIT_`, which podman adds.
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

/** The container in which a program prints something and ends: it sees nothing of the host. Pure. */

/** The body of `POST /libpod/containers/create`. Pure. */
export function printingContainer({ reference, imageId }: ImageReference, program: string, rest: readonly string[]) {
  return {
    image: reference.startsWith('localhost/') ? (imageId ?? reference) : reference,
    entrypoint: [program],
    command: rest,
    env: { HOME: '/tmp' },
    httpproxy: false,
    netns: { nsmode: 'none' },
    mounts: [{ type: 'tmpfs', destination: '/tmp', options: ['rw', 'nosuid', 'nodev', 'mode=1777', 'size=64m'] }],
    image_volume_mode: 'ignore',
    cap_drop: ['ALL'],
    no_new_privileges: true,
    read_only_filesystem: true,
    restart_policy: 'no',
    log_configuration: { driver: 'k8s-file', size: 16 * 1024 * 1024 },
  };
}

/** What to do about a container that has the name of a slot's container. Pure. */

/** Of a path in a message. */
const LONGEST_PATH = 200;

/**
 * @param name of the container.
 * @param owner the instance in its label, undefined if it has none: svc did not create it, or podman does not show it.
 * @param instance of this service.
 */
export function nameTakenMessage(name: string, owner: string | undefined, instance: string): string {
  if (owner === undefined) {
    return `Remove the container "${name}" with "podman rm -f ${name}", or give it another name: the slot needs this name, and another program has taken it`;
  }
  if (owner === instance) return `Wait until the container "${name}" is removed: it runs an earlier version of this slot`;
  const directory = JSON.stringify(shorten(owner, LONGEST_PATH));
  return `Give the slot another name, because the service with the configuration directory ${directory} has a container "${name}"; if that service is no longer used, remove its container with "podman rm -f ${name}"`;
}
