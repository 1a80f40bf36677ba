/** How a workload differs from what it was started as, and from what its slot asks for now. Compares only what its runtime reports. Pure. */
import type { DesiredSlot, Mount, ObservedWorkload, RuntimeTraits } from '../../ports.ts';
import { SYMBOLIC_PORT, workloadNamed, type Template } from '../facts/workload.ts';

/** How a workload differs from its template, which has the same revision. */
export interface Comparison {
  /** What was altered from outside. */
  readonly drift: readonly string[];
  /** An edit asks for something that needs no new revision. */
  readonly outdated: boolean;
  /** Applying the workload again corrects both, without a new workload. */
  readonly updatable: boolean;
}

/** Compares a workload with its template. `imageId` is what the image's name stands for now; undefined if that is not known. */
export function compareWorkload(
  { traits, slot, template, imageId }: { traits: RuntimeTraits; slot: DesiredSlot; template: Template; imageId: string | undefined },
  workload: ObservedWorkload,
): Comparison {
  const { inPlace } = traits;
  if (inPlace === undefined) return { drift: findDrift(workload, template, imageId), outdated: false, updatable: false };
  const hostPort = workload.container.port?.host ?? workload.endpoints[0]?.port ?? template.containerPort ?? SYMBOLIC_PORT;
  const wanted = workloadNamed(slot, template, workload.name, hostPort);
  return { drift: inPlace.findAltered(wanted, workload), outdated: inPlace.isOutdated(wanted, workload), updatable: true };
}

/**
 * One sentence part for each altered field: `image "sha256:…" instead of "sha256:…"`. Values of the environment are not repeated.
 * `imageId` is what the wanted image's name stands for now; undefined when that is not known.
 */
function findDrift(workload: ObservedWorkload, template: Template, imageId: string | undefined): readonly string[] {
  const { container } = workload;
  const hostPort = container.port?.host ?? workload.endpoints[0]?.port;
  return [
    ...imageDrift(container.imageId, imageId),
    ...(hostPort === undefined && template.containerPort === undefined
      ? []
      : listDrift('argv', container.argv, template.argv(hostPort ?? 0))),
    ...envDrift(container.env, template),
    ...listDrift('mounts', container.mounts?.map(mountText).sort(), template.mounts.map(mountText).sort()),
    ...listDrift('devices', container.devices?.toSorted(), template.devices.toSorted()),
    ...portDrift(container.port?.container, template.containerPort),
  ];
}

function imageDrift(actual: string | undefined, wanted: string | undefined): string[] {
  if (actual === undefined || wanted === undefined || actual === wanted) return [];
  return [`image "${actual}" instead of "${wanted}"`];
}

function listDrift(what: string, actual: readonly string[] | undefined, wanted: readonly string[]): string[] {
  if (actual === undefined) return [];
  if (actual.length === wanted.length && actual.every((value, index) => value === wanted[index])) return [];
  return [`${what} ${JSON.stringify(actual)} instead of ${JSON.stringify(wanted)}`];
}

/** A runtime leaves out of its facts what the image and it itself bring, so that a variable nobody asked for is one that somebody added. */
function envDrift(actual: Readonly<Record<string, string>> | undefined, template: Template): string[] {
  if (actual === undefined) return [];
  const names = new Set([...Object.keys(template.env), ...Object.keys(actual)]);
  const differing = [...names].filter((name) => actual[name] !== template.env[name]);
  return differing.length === 0 ? [] : [`env ${differing.map((name) => `"${name}"`).join(', ')} with other values`];
}

function portDrift(actual: number | undefined, wanted: number | undefined): string[] {
  if (actual === undefined || wanted === undefined || actual === wanted) return [];
  return [`port ${actual} instead of ${wanted}`];
}

function mountText({ source, target, readOnly }: Mount): string {
  return `${source}:${target}:${readOnly ? 'ro' : 'rw'}`;
}
