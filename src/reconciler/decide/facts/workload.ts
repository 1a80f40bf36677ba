/**
 * From a slot to its workload, with all arguments. A template is a workload without a port: ports are chosen when it is
 * applied, so its revision is a hash over a symbolic port. Pure; the loop remembers the results, since this costs the
 * most.
 */
import { createHash } from 'node:crypto';
import type { MemoryDemand, MemorySplit, ModelFacts, ProgramOptions, Provider, SlotContext, Voice } from '../../../providers/provider.ts';
import { Revision, type SlotName } from '../../../schema/words/names.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import { defined } from '../../../schema/pod/kube-fields.ts';
import { parseDurationMs } from '../../../schema/words/quantities.ts';
import { DEFAULT_TIMES, type SlotSpec } from '../../../schema/slot/slot-spec.ts';
import { withCompanions } from './companions.ts';
import type { ClusterWorkload, DesiredSlot, ImageReference, Mount, RuntimeTraits, Workload } from '../../ports.ts';

export interface Template {
  readonly revision: Revision;
  /** What earlier versions made of the same spec in a cluster. */
  readonly former?: () => readonly FormerTemplate[];
  readonly capabilities: readonly Capability[];
  /** Voices of a speech model; undefined for other models. */
  readonly voices?: readonly Voice[] | undefined;
  /** Why the provider refuses to serve this model with these settings, and what to do. */
  readonly objection?: string | undefined;
  /** Why its program would refuse arguments of the slot, and what to do. */
  readonly refusedArguments?: string | undefined;
  /** What keys of the slot make of its server, as lines for `explain`. */
  readonly notes?: readonly string[] | undefined;
  /** Words of `argv` that depend on the build of the program. */
  readonly byBuild?: ReadonlySet<string> | undefined;
  /** What a discrete device must have in total for this model. */
  readonly leastDeviceBytes?: number | undefined;
  /** What admission counts: the larger of the spec's and the estimate, by where it is. Undefined: not known. */
  readonly memory: MemoryDemand | undefined;
  /** Servers that leave a part to the CPU, for devices that are too small. Default: none. */
  readonly splits?: readonly MemorySplit[];
  /** Memory of the host while its server sleeps, which then holds none of a device. Default: as awake. */
  readonly asleepBytes?: number | undefined;
  /** All of it. */
  readonly memoryBytes: number | undefined;
  readonly image: ImageReference | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  readonly devices: readonly string[];
  /** The port inside the container; undefined where the runtime shares the network of the host. */
  readonly containerPort: number | undefined;
  /** `env`: the whole environment, where it is decided. */
  readonly argv: (hostPort: number, env?: Readonly<Record<string, string>>) => readonly [string, ...string[]];
  /** Set where replicas have addresses of their own and take no host port. */
  readonly cluster: ClusterWorkload | undefined;
}

/** `lacksTimes`: an edit of the times makes the same one. */
export type FormerTemplate = Pick<Template, 'revision' | 'env'> & { readonly lacksTimes?: true };

export interface TemplateInputs {
  readonly name: SlotName;
  readonly spec: SlotSpec;
  readonly provider: Provider;
  readonly model: ModelFacts;
  readonly image: ImageReference | undefined;
  /** Flags of the program. Default: not known. */
  readonly options?: ProgramOptions | undefined;
  /** Models that the server loads beside its own. Default: none. */
  readonly companions?: readonly ModelFacts[] | undefined;
  readonly traits: RuntimeTraits;
  readonly modelsRoot: string;
  /** Host path of the kept prompts. Default: none are kept. */
  readonly promptsRoot?: string | undefined;
}

/** Replaces the host port in the hashed text. */
export const SYMBOLIC_PORT = 0;

/** Throws where the provider does. */
export function makeTemplate({ traits, modelsRoot, promptsRoot, ...inputs }: TemplateInputs): Template {
  const { name, spec, provider, image, options } = inputs;
  const shared = traits.network === 'shared';
  const inWorkload = (path: string): string => pathInWorkload(path, modelsRoot, traits.modelsTarget);
  const model = withCompanions(inputs, inWorkload);
  const context = (port: number): SlotContext => ({
    name,
    spec,
    model,
    modelPath: inWorkload(model.hostPath),
    listen: shared ? { host: '127.0.0.1', port } : { host: '0.0.0.0', port: provider.containerPort },
  });
  const symbolic = context(SYMBOLIC_PORT);
  const commandOf = (slot: SlotContext): readonly [string, ...string[]] => {
    const [program, ...args] = provider.startCmd(slot);
    return [(traits.images ? undefined : spec.program?.path) ?? program, ...args];
  };
  const parts = {
    image,
    env: { ...provider.buildEnv(symbolic), ...spec.env },
    mounts: provider.ownModels === undefined ? modelsMount(traits, modelsRoot) : [],
    devices: provider.devices(spec.backend),
  };
  const cache =
    spec.lifecycle.keepPrompts && provider.promptCache?.appliesTo(name, spec, model) === true ? provider.promptCache : undefined;
  const prompts =
    promptsRoot === undefined || cache === undefined ? undefined : promptsOf(cache.variable, `${promptsRoot}/${name}`, traits);
  const { sizeBytes = provider.runsElsewhere === true ? 0 : undefined } = model;
  const sized = sizeBytes === undefined ? undefined : { ...model, sizeBytes };
  const memory = demandOf(sized && provider.estimateMemory(name, spec, sized), spec);
  const splits = traits.network === 'pods' || sized === undefined ? [] : (provider.splits?.(name, spec, sized) ?? []);
  const memoryBytes = memory && memory.hostBytes + memory.deviceBytes;
  // Earlier versions took an unknown size for zero: with their revision, an upgrade restarts no pod.
  const argv = commandOf({ ...symbolic, model: { ...model, sizeBytes: sizeBytes ?? 0 } });
  const revisionOf: RevisionOf = (env, times) => hash(spec, { ...parts, env, model, times }, argv, traits);
  // One wrong number would make the sum over all slots wrong.
  if (memoryBytes !== undefined && !Number.isFinite(memoryBytes)) throw new Error(`The estimate of its memory is ${memoryBytes} bytes`);
  return {
    ...parts,
    env: { ...parts.env, ...filesOf(model, traits), ...prompts?.env },
    mounts: [...parts.mounts, ...(prompts?.mounts ?? [])],
    revision: revisionOf(parts.env, podTimes(spec.lifecycle)),
    former: () => formerOf(parts.env, provider.addedVariables?.(spec) ?? [], podTimes(spec.lifecycle), revisionOf),
    capabilities: provider.capabilities(name, spec, model),
    voices: provider.voices?.(model),
    memory,
    objection: provider.objection?.(name, spec, model),
    refusedArguments: provider.keys?.objection(spec, options) ?? (options && provider.help?.objection(spec.model.args, options)),
    notes: sized === undefined ? [] : provider.keys?.describe(name, spec, sized),
    byBuild: provider.help?.byBuild,
    leastDeviceBytes: provider.leastDeviceBytes?.(name, spec, model),
    splits: splits.map((split) => ({ ...split, demand: demandOf(split.demand, spec) ?? split.demand })),
    asleepBytes: sizeBytes === undefined ? undefined : provider.sleep?.hostBytes?.(spec, sizeBytes),
    memoryBytes,
    containerPort: shared ? undefined : provider.containerPort,
    cluster: traits.network === 'pods' ? clusterOf(spec, provider, model, memoryBytes) : undefined,
    argv: (port, env) => commandOf({ ...context(port), ...defined({ env, options }) }),
  };
}

type RevisionOf = (env: Template['env'], times: readonly unknown[]) => Revision;
/** Until November 2026, some variables were not set, and times were no part of a revision. */
const formerOf = (env: Template['env'], added: readonly string[], times: readonly unknown[], revisionOf: RevisionOf) =>
  [env, ...added.map((name) => omit(env, name))].flatMap((each): readonly FormerTemplate[] => [
    { env: each, revision: revisionOf(each, times) },
    { env: each, revision: revisionOf(each, []), lacksTimes: true },
  ]);

/**
 * The files from which a server was started, since it keeps those that it has opened. No part of the revision, so that
 * an upgrade restarts nothing. Replicas of a gateway have files of their own, and would disagree.
 */
export const MODEL_FILES = 'INFERENCE_MODEL_FILES';

const filesOf = ({ version }: ModelFacts, { network }: RuntimeTraits): Template['env'] =>
  version === undefined || network === 'pods' ? {} : { [MODEL_FILES]: version };

/**
 * The name of the variable by which a server knows where to save prompts. Like the place itself no part of the
 * revision, so that an upgrade restarts nothing.
 */
export const PROMPTS = 'INFERENCE_PROMPTS';
const PROMPTS_TARGET = '/prompts';

export const isOfPrompts = ({ target }: Pick<Mount, 'target'>): boolean => target === PROMPTS_TARGET;

function promptsOf(variable: string, directory: string, { modelsTarget }: RuntimeTraits): Pick<Template, 'env' | 'mounts'> {
  const own = modelsTarget === undefined;
  return {
    env: { [PROMPTS]: variable, [variable]: own ? directory : PROMPTS_TARGET },
    mounts: own ? [] : [{ source: directory, target: PROMPTS_TARGET, readOnly: false }],
  };
}

/** The workload where its prompts cannot be kept: with a directory that is not there, a server does not start. */
export function withoutPrompts(workload: Workload): Workload {
  const { [PROMPTS]: variable, ...env } = workload.env;
  if (variable === undefined) return workload;
  return { ...workload, env: omit(env, variable), mounts: workload.mounts.filter((mount) => !isOfPrompts(mount)) };
}

const omit = (env: Readonly<Record<string, string>>, variable: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => name !== variable));

/** The size of the model is not known, and the slot reserves no memory. */
export const isMemoryUnknown = (template: Template | undefined): boolean => template !== undefined && template.memory === undefined;

/** What a spec reserves beyond the estimate is memory of the host, which also limits the container. */
function demandOf(estimate: MemoryDemand | undefined, { resources }: SlotSpec): MemoryDemand | undefined {
  if (estimate === undefined && resources.memoryBytes === undefined) return undefined;
  const { hostBytes = 0, deviceBytes = 0 } = estimate ?? {};
  return { hostBytes: Math.max(hostBytes, (resources.memoryBytes ?? 0) - deviceBytes), deviceBytes };
}

/** Pods have their own model stores. The path on this replica must not change a revision: replicas would disagree. */
function modelsMount({ modelsTarget, network }: RuntimeTraits, modelsRoot: string): readonly Mount[] {
  if (modelsTarget === undefined) return [];
  return [{ source: network === 'pods' ? modelsTarget : modelsRoot, target: modelsTarget, readOnly: true }];
}

function clusterOf(spec: SlotSpec, { readyPath }: Provider, { pinnedBy }: ModelFacts, memoryBytes: number | undefined): ClusterWorkload {
  const { startTimeoutMs, drainTimeoutMs } = spec.lifecycle;
  return {
    ...spec.cluster,
    serviceAccountName: spec.cluster.serviceAccountName,
    provider: spec.provider,
    backend: spec.backend,
    model: spec.model.default,
    ...(pinnedBy === undefined ? {} : { pinnedBy }),
    ...devicesOf(spec.resources),
    gpus: spec.resources.gpus,
    memoryBytes,
    readyPath,
    startTimeoutMs,
    drainTimeoutMs,
  };
}

/** The workload of a template on a port, with a name that is free. */
export function workloadOf(slot: DesiredSlot, template: Template, hostPort: number, takenNames: ReadonlySet<string>): Workload {
  const plain = `svc-slot-${slot.name}`;
  return workloadNamed(slot, template, takenNames.has(plain) ? `${plain}--${template.revision}` : plain, hostPort);
}

/** `hostPort` matters only where the runtime takes one. */
export function workloadNamed(slot: DesiredSlot, template: Template, name: string, hostPort: number): Workload {
  const { cluster } = template;
  const container = template.containerPort ?? hostPort;
  return {
    name,
    slot: slot.name,
    revision: template.revision,
    generation: slot.generation,
    ...(slot.spec.engine === undefined ? {} : { engineName: slot.spec.engine.name }),
    ...defined({ remote: slot.spec.remote }),
    image: template.image,
    argv: template.argv(hostPort, template.env),
    env: template.env,
    mounts: template.mounts,
    devices: template.devices,
    port: { host: cluster === undefined ? hostPort : container, container },
    memoryLimitBytes: slot.spec.resources.memoryBytes,
    ...(cluster === undefined ? {} : { cluster }),
  };
}

function pathInWorkload(hostPath: string, root: string, target: string | undefined): string {
  if (target === undefined) return hostPath;
  return hostPath.startsWith(`${root}/`) ? `${target}${hostPath.slice(root.length)}` : hostPath;
}

/** Cluster keys of a slot that sets none. Hashed outside of clusters too, so that revisions stay as they were. */
const NO_CLUSTER = { replicas: 1, nodeSelector: {}, tolerations: [] };

/** Placement, mounts and times of a pod: fixed for its life. Excludes the number of pods, which is updated in place. */
function clusterParts({ cluster, backend, resources }: SlotSpec, times: readonly unknown[]): unknown {
  const { nodeSelector, tolerations, storage, serviceAccountName, pod } = cluster;
  const selector = Object.entries(nodeSelector).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    backend,
    selector,
    tolerations,
    storage ?? null,
    serviceAccountName ?? null,
    ...times,
    ...[devicesOf(resources)].filter((devices) => Object.keys(devices).length > 0),
    ...(pod === undefined ? [] : [pod]),
  ];
}

const devicesOf = ({ deviceAccess, gpuResource }: SlotSpec['resources']) => defined({ deviceAccess, gpuResource });

/** Left out where a slot has the default times, so that its revision is the one that earlier versions gave it. */
function podTimes({ startTimeoutMs, drainTimeoutMs }: SlotSpec['lifecycle']): readonly unknown[] {
  const isDefault = startTimeoutMs === DEFAULT_START_MS && drainTimeoutMs === DEFAULT_DRAIN_MS;
  return isDefault ? [] : [{ startTimeoutMs, drainTimeoutMs }];
}

const DEFAULT_START_MS = parseDurationMs(DEFAULT_TIMES.startTimeout);
const DEFAULT_DRAIN_MS = parseDurationMs(DEFAULT_TIMES.drainTimeout);

function hash(
  spec: SlotSpec,
  parts: Pick<Template, 'image' | 'env' | 'mounts' | 'devices'> & Pick<TemplateInputs, 'model'> & { readonly times: readonly unknown[] },
  argv: readonly string[],
  { network }: RuntimeTraits,
): Revision {
  const text = JSON.stringify([
    parts.image === undefined ? null : [parts.image.reference, parts.image.imageId ?? null],
    argv,
    Object.entries(parts.env).sort(([a], [b]) => (a < b ? -1 : 1)),
    parts.mounts.map(({ source, target, readOnly }) => [source, target, readOnly]),
    parts.devices,
    spec.resources.memoryBytes ?? null,
    spec.resources.gpus ?? null,
    spec.restartedAt ?? null,
    // Left out where all may be used, so that the revision is the one that earlier versions gave it.
    ...(spec.resources.devices === undefined || network === 'pods' ? [] : [{ devices: spec.resources.devices }]),
    ...(spec.lifecycle.keepPrompts || network === 'pods' ? [] : ['no prompts']),
    network === 'pods' ? clusterParts(spec, parts.times) : NO_CLUSTER,
    // Left out where pods know their files themselves, so that the revision is the one that earlier versions gave it.
    ...(parts.model.pinnedBy === undefined ? [] : [parts.model.pinnedBy.digest]),
  ]);
  return Revision.parse(createHash('sha256').update(text).digest('hex').slice(0, 12));
}
