/** What podman reports of a container (`inspect`), as the reconciler's facts. Pure; the way there is `podman-container.ts`. */
import { z } from 'zod';
import type { ContainerFacts, Mount, ObservedWorkload, Workload } from '../../../reconciler/ports.ts';
import { Revision, SlotName, WorkloadId } from '../../../schema/names.ts';
import {
  AMBIENT_LABEL,
  DECLARED_LABEL,
  GENERATION_LABEL,
  INSTANCE_LABEL,
  isCdiName,
  REVISION_LABEL,
  SLOT_LABEL,
} from './podman-container.ts';
import type { Declared } from './podman-container.ts';

const PortBindings = z.record(z.string(), z.array(z.object({ HostIp: z.string(), HostPort: z.string() })).nullable());

/** The part of podman's answer that is read; the same from 4.3 to 5.8. */
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

/** What must be known besides the answer itself to read it. */
export interface InspectContext {
  readonly instance: string;
  /** The image's own environment, `NAME=value`; undefined: not known, and the container's cannot be judged. */
  readonly imageEnv: readonly string[] | undefined;
  /** Rootless podman binds device nodes instead of reporting them. */
  readonly rootless: boolean;
}

/** Undefined when the labels are not those of this installation: somebody else's container. */
export function observedWorkload(container: ContainerInspect, context: InspectContext): ObservedWorkload | undefined {
  const found = container.Config.Labels ?? {};
  const slot = SlotName.safeParse(found[SLOT_LABEL]);
  const revision = Revision.safeParse(found[REVISION_LABEL]);
  const generation = Number(found[GENERATION_LABEL] ?? 'none');
  if (found[INSTANCE_LABEL] !== context.instance) return undefined;
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
    startedAt: instant(container.State.StartedAt),
    ...(phase === 'exited' ? { exit: exitOf(container) } : {}),
    endpoints: phase === 'running' && facts.port !== undefined && facts.port.host > 0 ? [{ host: '127.0.0.1', port: facts.port.host }] : [],
    container: facts,
  };
}

/**
 * What stands in the facts of a container just made though the workload did not ask for it: `containers.conf` did.
 * The tokens go into the ambient label, and what they name is left out of the facts from then on.
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

function phaseOf(status: string): ObservedWorkload['phase'] {
  if (status === 'created' || status === 'configured' || status === 'initialized') return 'created';
  if (status === 'stopping' || status === 'removing') return 'stopping';
  if (status === 'exited' || status === 'stopped' || status === 'dead') return 'exited';
  return 'running';
}

/** Podman writes the year 1 for "never". */
function instant(text: string): number | undefined {
  const at = Date.parse(text);
  return Number.isFinite(at) && at > 0 ? at : undefined;
}

function exitOf(container: ContainerInspect): NonNullable<ObservedWorkload['exit']> {
  const { State } = container;
  const message = State.Error === '' ? killedMessage(container) : State.Error;
  return {
    code: State.ExitCode,
    outOfMemory: State.OOMKilled,
    at: instant(State.FinishedAt) ?? instant(State.StartedAt) ?? 0,
    ...(message === undefined ? {} : { message }),
  };
}

/** On cgroup v1 the kernel's kill for memory is not reported as such; 137 with a limit set is the only trace. */
function killedMessage(container: ContainerInspect): string | undefined {
  if (container.State.ExitCode !== 137 || container.State.OOMKilled) return undefined;
  return container.HostConfig.Memory > 0
    ? 'Killed (signal 9): by hand, or for going over its memory limit; raise "resources.memory" if so'
    : 'Killed (signal 9): by hand, or by the kernel for want of memory';
}

function containerFacts(container: ContainerInspect, context: InspectContext): ContainerFacts {
  const declared = declaredOf(container.Config.Labels?.[DECLARED_LABEL]);
  const ambient = new Set(stringsOf(container.Config.Labels?.[AMBIENT_LABEL]));
  return {
    imageId: container.Image === '' ? undefined : `sha256:${container.Image.replace(/^sha256:/, '')}`,
    argv: [container.Path, ...(container.Args ?? [])],
    env: context.imageEnv === undefined ? undefined : envOf(container, declared, ambient, context.imageEnv),
    mounts: mountsOf(container, declared, ambient),
    devices: context.rootless ? undefined : devicesOf(container, declared, ambient),
    port: portOf(container),
  };
}

/** Podman sets these in every container, whatever was asked. */
const PODMAN_NAMES: ReadonlySet<string> = new Set(['TERM', 'container', 'HOME', 'HOSTNAME']);
const PODMAN_PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

function envOf(container: ContainerInspect, declared: Declared, ambient: ReadonlySet<string>, imageEnv: readonly string[]) {
  const fromImage = new Set([PODMAN_PATH, ...imageEnv]);
  const entries = (container.Config.Env ?? []).map((line): [string, string] => {
    const equals = line.indexOf('=');
    return equals < 0 ? [line, ''] : [line.slice(0, equals), line.slice(equals + 1)];
  });
  const kept = entries.filter(
    ([name, value]) =>
      declared.env.includes(name) || !(fromImage.has(`${name}=${value}`) || PODMAN_NAMES.has(name) || ambient.has(envToken(name))),
  );
  return Object.fromEntries(inOrder(kept, declared.env, ([name]) => name));
}

function mountsOf(container: ContainerInspect, declared: Declared, ambient: ReadonlySet<string>): Mount[] {
  const mounts = container.Mounts.filter((mount) => mount.Type !== 'tmpfs' && !ambient.has(mountToken(mount.Destination))).map((mount) => ({
    source: mount.Type === 'bind' ? mount.Source : `${mount.Type}:${mount.Name ?? mount.Source}`,
    target: mount.Destination,
    readOnly: !mount.RW,
  }));
  return inOrder(mounts, declared.mounts, (mount) => mount.target);
}

/** Podman takes a directory apart into its nodes and does not report CDI names, so a declared device is looked for among what is there. */
function devicesOf(container: ContainerInspect, declared: Declared, ambient: ReadonlySet<string>): string[] {
  const present = (container.HostConfig.Devices ?? []).map((device) =>
    device.PathOnHost === device.PathInContainer || device.PathInContainer === ''
      ? device.PathOnHost
      : `${device.PathOnHost}:${device.PathInContainer}`,
  );
  const covers = (wanted: string, path: string): boolean => path === wanted || path.startsWith(`${wanted}/`);
  const kept = declared.devices.filter((wanted) => isCdiName(wanted) || present.some((path) => covers(wanted, path)));
  // CDI may bring nodes of its own: with a CDI name declared, further ones prove nothing.
  if (declared.devices.some(isCdiName)) return kept;
  return [
    ...kept,
    ...present.filter((path) => !declared.devices.some((wanted) => covers(wanted, path)) && !ambient.has(deviceToken(path))),
  ];
}

const NO_PORT_OF_OURS = { host: 0, container: 0 };

/** A port published anywhere but on 127.0.0.1, or more than one, is no port of ours: zeros stand for it, which no workload has. */
function portOf(container: ContainerInspect): { readonly host: number; readonly container: number } {
  const bindings = Object.entries(container.HostConfig.PortBindings ?? {}).flatMap(([key, hosts]) =>
    (hosts ?? []).map((host) => ({ key, host: host.HostPort, ip: host.HostIp })),
  );
  const [first, ...others] = bindings;
  if (first === undefined || others.length > 0 || first.ip !== '127.0.0.1' || !first.key.endsWith('/tcp')) return NO_PORT_OF_OURS;
  return { host: Number(first.host), container: Number.parseInt(first.key, 10) };
}

/** First what was declared, in its order, then the rest as it came. */
function inOrder<T>(items: readonly T[], order: readonly string[], key: (item: T) => string): T[] {
  const rank = (item: T): number => {
    const index = order.indexOf(key(item));
    return index < 0 ? order.length : index;
  };
  return items.toSorted((a, b) => rank(a) - rank(b));
}

const DeclaredSchema = z.object({ env: z.array(z.string()), mounts: z.array(z.string()), devices: z.array(z.string()) });
const NOTHING: Declared = { env: [], mounts: [], devices: [] };

function declaredOf(label: string | undefined): Declared {
  const parsed = DeclaredSchema.safeParse(jsonOf(label));
  return parsed.success ? parsed.data : NOTHING;
}

function stringsOf(label: string | undefined): readonly string[] {
  const parsed = z.array(z.string()).safeParse(jsonOf(label));
  return parsed.success ? parsed.data : [];
}

function jsonOf(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
