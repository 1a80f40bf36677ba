/**
 * Derives the observed workload from `inspect`, without additions of the image, podman and this host. The opposite of
 * `podman-container.ts`. Pure.
 */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { ContainerFacts, Mount, WaitingReason, Workload, ObservedWorkload } from '../../../reconciler/ports.ts';
import { AMBIENT_LABEL, Declared, DECLARED_LABEL, isCdiName, INSTANCE_LABEL } from './podman-container.ts';
import { Revision, SlotName, WorkloadId } from '../../../schema/words/names.ts';
import { LABELS } from '../../../schema/pod/kube-fields.ts';

function containerFacts(container: ContainerInspect, context: InspectContext): ContainerFacts {
  const labels = container.Config.Labels ?? {};
  const declared = Declared.safeParse(parseJson(labels[DECLARED_LABEL] ?? '')).data ?? { env: [], mounts: [], devices: [] };
  const ambient = new Set(z.array(z.string()).safeParse(parseJson(labels[AMBIENT_LABEL] ?? '')).data);
  return {
    imageId: container.Image === '' ? undefined : `sha256:${container.Image.replace(/^sha256:/, '')}`,
    argv: [container.Path, ...(container.Args ?? [])],
    env: context.imageEnv === undefined ? undefined : envOf(container, declared, ambient, context.imageEnv),
    mounts: mountsOf(container, declared, ambient),
    devices: context.rootless ? undefined : devicesOf(container, declared, ambient),
    port: portOf(container),
  };
}

/**
 * Returns tokens for everything that the workload did not request: additions of `containers.conf`. They are stored in
 * the ambient label, and later facts omit them.
 */
export function undeclared(facts: ContainerFacts, workload: Workload): string[] {
  const targets = new Set(workload.mounts.map((mount) => mount.target));
  return [
    ...Object.keys(facts.env ?? {})
      .filter((name) => !(name in workload.env))
      .map(envToken),
    ...(facts.mounts ?? []).filter((mount) => !targets.has(mount.target)).map((mount) => mountToken(mount.target)),
    ...(facts.devices ?? []).filter((device) => !workload.devices.includes(device)).map(deviceToken),
  ];
}

const envToken = (name: string): string => `env:${name}`;
const mountToken = (target: string): string => `mount:${target}`;
const deviceToken = (device: string): string => `device:${device}`;

/** Podman sets these in every container. */
const PODMAN_NAMES: ReadonlySet<string> = new Set(['TERM', 'container', 'HOME', 'HOSTNAME']);
const PODMAN_PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

function envOf(container: ContainerInspect, declared: Declared, ambient: ReadonlySet<string>, imageEnv: readonly string[]) {
  const fromImage = new Set([PODMAN_PATH, ...imageEnv]);
  const entries = (container.Config.Env ?? []).map((line): [string, string] => {
    const equals = line.indexOf('=');
    return equals < 0 ? [line, ''] : [line.slice(0, equals), line.slice(equals + 1)];
  });
  const relevant = entries.filter(
    ([name, value]) =>
      declared.env.includes(name) || !(fromImage.has(`${name}=${value}`) || PODMAN_NAMES.has(name) || ambient.has(envToken(name))),
  );
  return Object.fromEntries(inOrder(relevant, declared.env, ([name]) => name));
}

function mountsOf(container: ContainerInspect, declared: Declared, ambient: ReadonlySet<string>): Mount[] {
  const mounts = container.Mounts.filter((mount) => mount.Type !== 'tmpfs' && !ambient.has(mountToken(mount.Destination))).map((mount) => ({
    source: mount.Type === 'bind' ? mount.Source : `${mount.Type}:${mount.Name ?? mount.Source}`,
    target: mount.Destination,
    readOnly: !mount.RW,
  }));
  return inOrder(mounts, declared.mounts, (mount) => mount.target);
}

/**
 * Podman lists the nodes of a directory one by one, without CDI names: declared devices are matched with existing
 * nodes.
 */
function devicesOf(container: ContainerInspect, declared: Declared, ambient: ReadonlySet<string>): string[] {
  const present = (container.HostConfig.Devices ?? []).map((device) =>
    device.PathOnHost === device.PathInContainer || device.PathInContainer === ''
      ? device.PathOnHost
      : `${device.PathOnHost}:${device.PathInContainer}`,
  );
  const covers = (wanted: string, path: string): boolean => path === wanted || path.startsWith(`${wanted}/`);
  const found = declared.devices.filter((wanted) => isCdiName(wanted) || present.some((path) => covers(wanted, path)));
  // Additional nodes are no drift, because CDI may add them.
  if (declared.devices.some(isCdiName)) return found;
  const added = present.filter((path) => !declared.devices.some((wanted) => covers(wanted, path)) && !ambient.has(deviceToken(path)));
  return [...found, ...added];
}

const UNEXPECTED_PORT = { host: 0, container: 0 };

/** Several ports, or one published outside 127.0.0.1, are reported as zeros, which no workload has. */
function portOf(container: ContainerInspect): { readonly host: number; readonly container: number } {
  const bindings = Object.entries(container.HostConfig.PortBindings ?? {}).flatMap(([key, hosts]) =>
    (hosts ?? []).map((host) => ({ key, host: host.HostPort, ip: host.HostIp })),
  );
  const [first, ...others] = bindings;
  if (first === undefined || others.length > 0 || first.ip !== '127.0.0.1' || !first.key.endsWith('/tcp')) return UNEXPECTED_PORT;
  return { host: Number(first.host), container: Number.parseInt(first.key, 10) };
}

/** Declared items in declared order, then the others. */
function inOrder<T>(items: readonly T[], order: readonly string[], key: (item: T) => string): T[] {
  const rank = (item: T): number => {
    const index = order.indexOf(key(item));
    return index < 0 ? order.length : index;
  };
  return items.toSorted((a, b) => rank(a) - rank(b));
}

const PortBindings = z.record(z.string(), z.array(z.object({ HostIp: z.string(), HostPort: z.string() })).nullable());

export const ContainerInspect = z.object({
  Id: z.string().min(1),
  Name: z.string(),
  Image: z.string(),
  Path: z.string(),
  Args: z.array(z.string()).nullable(),
  State: z.object({
    Status: z.string(),
    OOMKilled: z.boolean().default(false),
    ExitCode: z.number(),
    Error: z.string().default(''),
    StartedAt: z.string(),
    FinishedAt: z.string(),
  }),
  Config: z.object({
    Env: z.array(z.string()).nullable(),
    Labels: z.record(z.string(), z.string()).nullable(),
  }),
  HostConfig: z.object({
    PortBindings: PortBindings.nullable(),
    Devices: z.array(z.object({ PathOnHost: z.string(), PathInContainer: z.string() })).nullish(),
    Memory: z.number().default(0),
  }),
  Mounts: z.array(
    z.object({
      Type: z.string(),
      Name: z.string().optional(),
      Source: z.string().default(''),
      Destination: z.string(),
      RW: z.boolean(),
    }),
  ),
});
export type ContainerInspect = z.output<typeof ContainerInspect>;

interface InspectContext {
  readonly instance: string;
  /** The environment of the image as `NAME=value`. If undefined, the environment of the container is unknown too. */
  readonly imageEnv: readonly string[] | undefined;
  /** Rootless podman bind-mounts device nodes and does not report them. */
  readonly rootless: boolean;
}

/** Undefined if the container does not belong to this installation. */
export function observedWorkload(container: ContainerInspect, context: InspectContext): ObservedWorkload | undefined {
  const labels = container.Config.Labels ?? {};
  const slot = SlotName.safeParse(labels[LABELS.slot]);
  const revision = Revision.safeParse(labels[LABELS.revision]);
  const generation = Number(labels[LABELS.generation] ?? 'none');
  if (labels[INSTANCE_LABEL] !== context.instance) return undefined;
  if (!slot.success || !revision.success || !Number.isSafeInteger(generation)) return undefined;
  const phase = phaseOf(container.State.Status);
  const facts = containerFacts(container, context);
  return {
    id: WorkloadId.parse(container.Id),
    name: container.Name,
    slot: slot.data,
    revision: revision.data,
    generation,
    phase,
    startedAt: timeOf(container.State.StartedAt),
    ...(phase === 'exited' ? { exit: exitOf(container) } : {}),
    ...(container.State.Status === 'paused' ? { waitingReason: pausedReason(container.Name) } : {}),
    endpoints: phase === 'running' && facts.port !== undefined && facts.port.host > 0 ? [{ host: '127.0.0.1', port: facts.port.host }] : [],
    container: facts,
  };
}

const pausedReason = (name: string): WaitingReason => ({
  kind: 'other',
  reason: 'ProbeFailing',
  message: `The container "${name}" is paused; resume it with "podman unpause ${name}"`,
});

function phaseOf(status: string): ObservedWorkload['phase'] {
  if (status === 'created' || status === 'configured' || status === 'initialized') return 'created';
  if (status === 'stopping' || status === 'removing') return 'stopping';
  if (status === 'exited' || status === 'stopped' || status === 'dead') return 'exited';
  return 'running';
}

/** Unix milliseconds. Podman writes year 1 for "never". */
function timeOf(text: string): number | undefined {
  const at = Date.parse(text);
  return Number.isFinite(at) && at > 0 ? at : undefined;
}

function exitOf(container: ContainerInspect): NonNullable<ObservedWorkload['exit']> {
  const { State } = container;
  const message = State.Error === '' ? killedMessage(container) : State.Error;
  return {
    code: State.ExitCode,
    outOfMemory: State.OOMKilled,
    at: timeOf(State.FinishedAt) ?? timeOf(State.StartedAt) ?? 0,
    ...(message === undefined ? {} : { message }),
  };
}

/** Podman does not report kills by the kernel with cgroup v1; exit code 137 is the only trace. */
function killedMessage(container: ContainerInspect): string | undefined {
  if (container.State.ExitCode !== 137 || container.State.OOMKilled) return undefined;
  return container.HostConfig.Memory > 0
    ? 'Killed (signal 9): manually, or because it exceeded its memory limit; in that case raise "resources.memory"'
    : 'Killed (signal 9): manually, or by the kernel because the host ran out of memory';
}
