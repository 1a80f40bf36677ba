/** Derives from an inspected container the facts in which drift is detected, without what the image, podman and this host add. Pure. */
import { z } from 'zod';
import { parseJson } from '../../../platform/decide/parse-json.ts';
import type { ContainerFacts, Mount, Workload } from '../../../reconciler/ports.ts';
import { AMBIENT_LABEL, Declared, DECLARED_LABEL, isCdiName } from './podman-container.ts';
import type { ContainerInspect, InspectContext } from './podman-inspect.ts';

export function containerFacts(container: ContainerInspect, context: InspectContext): ContainerFacts {
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
 * Returns tokens for everything in a new container's facts that its workload did not request: `containers.conf` added it.
 * The tokens are stored in the ambient label, and from then on the facts omit what they name.
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

/** Podman reports the nodes of a directory one by one and no CDI names, so declared devices are matched with the nodes that are present. */
function devicesOf(container: ContainerInspect, declared: Declared, ambient: ReadonlySet<string>): string[] {
  const present = (container.HostConfig.Devices ?? []).map((device) =>
    device.PathOnHost === device.PathInContainer || device.PathInContainer === ''
      ? device.PathOnHost
      : `${device.PathOnHost}:${device.PathInContainer}`,
  );
  const covers = (wanted: string, path: string): boolean => path === wanted || path.startsWith(`${wanted}/`);
  const found = declared.devices.filter((wanted) => isCdiName(wanted) || present.some((path) => covers(wanted, path)));
  // CDI may add nodes of its own: with a declared CDI name, additional nodes are not drift.
  if (declared.devices.some(isCdiName)) return found;
  const added = present.filter((path) => !declared.devices.some((wanted) => covers(wanted, path)) && !ambient.has(deviceToken(path)));
  return [...found, ...added];
}

const UNEXPECTED_PORT = { host: 0, container: 0 };

/** Several ports, or one that is published elsewhere than on 127.0.0.1, are reported as zeros, which no workload has. */
function portOf(container: ContainerInspect): { readonly host: number; readonly container: number } {
  const bindings = Object.entries(container.HostConfig.PortBindings ?? {}).flatMap(([key, hosts]) =>
    (hosts ?? []).map((host) => ({ key, host: host.HostPort, ip: host.HostIp })),
  );
  const [first, ...others] = bindings;
  if (first === undefined || others.length > 0 || first.ip !== '127.0.0.1' || !first.key.endsWith('/tcp')) return UNEXPECTED_PORT;
  return { host: Number(first.host), container: Number.parseInt(first.key, 10) };
}

/** First the declared items in the declared order, then the others as they come. */
function inOrder<T>(items: readonly T[], order: readonly string[], key: (item: T) => string): T[] {
  const rank = (item: T): number => {
    const index = order.indexOf(key(item));
    return index < 0 ? order.length : index;
  };
  return items.toSorted((a, b) => rank(a) - rank(b));
}
