/** Differences between a workload and its template or spec, as its runtime reports them. Pure. */
import type { DesiredSlot, Mount, ObservedWorkload, RuntimeTraits } from '../../ports.ts';
import { isOfPrompts, MODEL_FILES, PROMPTS, SYMBOLIC_PORT, workloadNamed, type FormerTemplate, type Template } from './workload.ts';
import type { MemorySplit } from '../../../providers/provider.ts';
import type { Machine } from '../../../schema/status/hardware.ts';
import type { Backend } from '../../../schema/slot/provider-kinds.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { SlotSpec } from '../../../schema/slot/slot-spec.ts';
import { poolsOfBackend, withDevices, type PoolBytes, type PoolId } from './memory-pools.ts';

/** How a workload differs from its template, which has the same revision. */
export interface Comparison {
  /** Alterations from outside. */
  readonly drift: readonly string[];
  /** An edit asks for something that needs no new revision. */
  readonly outdated: boolean;
  /** Applying the workload again corrects both, without a new workload. */
  readonly updatable: boolean;
}

/** The template by which the pods of a slot were made, where this version would make others of the same spec. */
export function keptTemplate(
  template: Template | undefined,
  { generation }: Pick<DesiredSlot, 'generation'>,
  workloads: readonly Pick<ObservedWorkload, 'revision' | 'generation'>[],
): Template | undefined {
  const isOf = ({ revision, lacksTimes }: FormerTemplate): boolean =>
    workloads.some((each) => each.revision === revision && (lacksTimes === undefined || each.generation === generation));
  if (template?.cluster === undefined || workloads.length === 0 || isOf(template)) return template;
  const kept = template.former?.().find(isOf);
  return kept === undefined ? template : { ...template, revision: kept.revision, env: kept.env };
}

/** `imageId` is the id that the desired image stands for now; undefined if it is not known. */
export function compareWorkload(
  { traits, slot, template, imageId }: { traits: RuntimeTraits; slot: DesiredSlot; template: Template; imageId: string | undefined },
  workload: ObservedWorkload,
): Comparison {
  const { inPlace } = traits;
  if (inPlace === undefined) return { drift: findDrift(workload, template, imageId), outdated: false, updatable: false };
  const hostPort = workload.container.port?.host ?? workload.endpoints[0]?.port ?? template.containerPort ?? SYMBOLIC_PORT;
  const desired = workloadNamed(slot, template, workload.name, hostPort);
  return { drift: inPlace.findAltered(desired, workload), outdated: inPlace.isOutdated(desired, workload), updatable: true };
}

/**
 * A phrase for each altered field: `image "sha256:…" instead of "sha256:…"`. Values of the environment and of
 * arguments are not repeated. `imageId` is the id that the wanted image stands for now; undefined where it is not
 * known.
 */
function findDrift(workload: ObservedWorkload, template: Template, imageId: string | undefined): readonly string[] {
  const { container } = workload;
  const hostPort = container.port?.host ?? workload.endpoints[0]?.port;
  // Its environment says how a server is divided, which its arguments repeat.
  const isDivisible = (template.splits ?? []).length > 0;
  const isKnown = (hostPort !== undefined || template.containerPort !== undefined) && !(isDivisible && container.env === undefined);
  return [
    ...difference('image', container.imageId, imageId),
    ...(isKnown ? argvDrift(container.argv, template.argv(hostPort ?? 0, container.env), template.byBuild) : []),
    ...envDrift(container.env, template),
    ...difference('mounts', container.mounts && mountTexts(container.mounts), mountTexts(template.mounts)),
    ...difference('devices', container.devices?.toSorted(), template.devices.toSorted()),
    ...difference('port', container.port?.container, template.containerPort),
  ];
}

/** Nothing where one of them is not known. */
function difference(what: string, actual: unknown, wanted: unknown): string[] {
  if (actual === undefined || wanted === undefined || isSameValue(actual, wanted)) return [];
  return [`${what} ${JSON.stringify(actual)} instead of ${JSON.stringify(wanted)}`];
}

/** Arguments may be secrets: only the flag from which they differ is named. */
function argvDrift(actual: readonly string[] | undefined, wanted: readonly string[], byBuild?: ReadonlySet<string>): string[] {
  if (actual === undefined || isSameValue(actual, wanted)) return [];
  const [ours, others] = [wanted, actual].map((words) => words.filter((word) => byBuild?.has(word) !== true));
  if (isSameValue(ours, others)) return [];
  const at = wanted.findIndex((word, index) => actual[index] !== word);
  const flag = wanted.slice(0, at === -1 ? undefined : at + 1).findLast((word) => word.startsWith('--'));
  return [`argv differs${flag === undefined ? '' : ` from "${flag.split('=', 1)[0]}" on`}`];
}

/** Runtimes leave out variables of the image and their own, so an unwanted variable was added from outside. */
function envDrift(actual: Readonly<Record<string, string>> | undefined, template: Template): string[] {
  if (actual === undefined) return [];
  const names = new Set([...Object.keys(template.env), ...Object.keys(actual)]);
  const ofSplits = new Set(template.splits?.flatMap(({ env }) => Object.keys(env)));
  const isPlacement = (name: string): boolean => template.env[name] === undefined && (saysPlacement(name) || ofSplits.has(name));
  // Servers from before, or from when prompts were not kept, stay as they are.
  const ignored = [MODEL_FILES, PROMPTS, actual[PROMPTS], template.env[PROMPTS]];
  const differing = [...names].filter((name) => actual[name] !== template.env[name] && !ignored.includes(name) && !isPlacement(name));
  const [started, present] = [actual[MODEL_FILES], template.env[MODEL_FILES]];
  if (started !== undefined && present !== undefined && started !== present) return [MODEL_REPLACED];
  return differing.length === 0 ? [] : [`env ${differing.map((name) => `"${name}"`).join(', ')} with other values`];
}

/** As in `drift`. The server still has the old files open. */
export const MODEL_REPLACED = 'the files of its model were replaced';

const mountTexts = (mounts: readonly Mount[]): readonly string[] =>
  mounts.flatMap((mount) => (isOfPrompts(mount) ? [] : mountText(mount))).sort();
const mountText = ({ source, target, readOnly }: Mount): string => `${source}:${target}:${readOnly ? 'ro' : 'rw'}`;

type Variables = Readonly<Record<string, string>>;

/**
 * `CUDA_VISIBLE_DEVICES` (CUDA C++ programming guide), `HIP_VISIBLE_DEVICES` (ROCm documentation),
 * `GGML_VK_VISIBLE_DEVICES` (ggml-vulkan.cpp). With CUDA, the numbers follow the PCI addresses only if
 * `CUDA_DEVICE_ORDER` says so.
 */
const VARIABLES: Readonly<Partial<Record<Backend, { readonly name: string; readonly more: Variables }>>> = {
  cuda: { name: 'CUDA_VISIBLE_DEVICES', more: { CUDA_DEVICE_ORDER: 'PCI_BUS_ID' } },
  rocm: { name: 'HIP_VISIBLE_DEVICES', more: {} },
  vulkan: { name: 'GGML_VK_VISIBLE_DEVICES', more: {} },
};

const NAMES: ReadonlySet<string> = new Set(Object.values(VARIABLES).flatMap(({ name, more }) => [name, ...Object.keys(more)]));

/** Whether a variable only says where a server was placed, so that its value is no drift. */
export const saysPlacement = (variable: string): boolean => NAMES.has(variable);

/**
 * Variables by which a server learns which of several devices it may use; none with one device at most, or if the slot
 * sets the variable. Decided when a server is started, so they are no part of its revision. A server whose memory is
 * not known may use all devices that the slot names.
 */
export function placementVariables(
  placement: PoolBytes,
  machine: Machine | undefined,
  { backend, resources: { devices } }: Pick<SlotSpec, 'backend'> & { readonly resources: Pick<SlotSpec['resources'], 'devices'> },
  env: Variables,
): Variables {
  const { own } = poolsOfBackend(machine, backend);
  const variables = VARIABLES[backend];
  if (own.length < 2 || variables === undefined || [variables.name, ...Object.keys(variables.more)].some((name) => name in env)) return {};
  const placed = own.filter((id) => (placement[id] ?? 0) > 0);
  const named = devices === undefined ? [] : poolsOfBackend(withDevices(machine, devices), backend).own;
  const numbers = (placed.length > 0 ? placed : named).map((id) => own.indexOf(id));
  return numbers.length === 0 ? {} : { [variables.name]: numbers.join(','), ...variables.more };
}

/** How a server was started, among its template's splits; undefined: with everything on devices. */
export const splitOf = (env: Variables | undefined, { splits = [] }: Pick<Template, 'splits'>): MemorySplit | undefined =>
  // The last one that matches sets the most variables.
  splits.findLast((split) => Object.entries(split.env).every(([name, value]) => env?.[name] === value));

/** The devices that a server was given; undefined where its environment does not say so, or is not known. */
export function devicesGiven(env: Variables | undefined, machine: Machine | undefined, backend: Backend): readonly PoolId[] | undefined {
  const { own } = poolsOfBackend(machine, backend);
  const { name } = VARIABLES[backend] ?? {};
  const numbers = name === undefined ? undefined : env?.[name]?.split(',').map(Number);
  const given = numbers?.flatMap((index) => own[index] ?? []);
  return given === undefined || given.length === 0 ? undefined : given;
}
