/**
 * The schema of a slot. `SlotDocument` is what users write (TOML and JSON in snake_case, a SlotSpec resource in
 * camelCase); `SlotSpec` is what the program works with, with all defaults filled in and all units converted to
 * numbers. The CRD, the JSON Schema for editors, the schema of the Helm values and the reference page are generated
 * from `SlotDocument`.
 */
import { z } from 'zod';
import { ModelId, ProviderName, type SlotName } from '../words/names.ts';
import { BACKENDS, DEFAULT_PROVIDER_OF_SLOT, kindFacts, PROVIDER_KIND_NAMES, type Backend, type ProviderKind } from './provider-kinds.ts';
import { parseDurationMs, parseSizeBytes, WARM_TIME } from '../words/quantities.ts';
import { durationWithin, sizeWithin } from '../words/quantity-schemas.ts';
import { providerOfModel } from './model-providers.ts';
import { inexpressible, MODEL_OPTIONS, resolveModel } from './model-options.ts';
import { DeviceNames } from '../status/hardware.ts';
import { Presets } from './presets.ts';
import { Fallback } from './fallback.ts';
import { Autoscale, Limits, PriceTable, resolveAutoscale, Rollout } from './scaling.ts';
import { RemoteDocument, resolveRemote, type Remote } from './remote-document.ts';
import { EnvName, PlainText } from '../pod/pod-containers.ts';
import { ACCESS_MODES, boundedRecord, EXTENDED_RESOURCE, optional } from '../pod/kube-fields.ts';
import { PodOverlay } from '../pod/pod-overlay.ts';
import type { EngineDefinition } from './engine-document.ts';
import { rulesAt } from './slot-rules.ts';
import { SlotProgram } from './toolbox-images.ts';
import type { KeyStyle } from '../words/key-case.ts';
import { checkDocument, type SpecProblem, quoted } from './spec-problem.ts';

const Model = z
  .strictObject({
    default: ModelId.describe('Model to serve: an id from the catalogue, or the path of a file in the model store'),
    aliases: z.array(z.string().min(1).max(200)).max(50).default([]).describe('Additional names that clients may send as "model"'),
    context: optional('Context length in tokens. Default: that of the model', z.int().min(64).max(16_777_216)),
    args: z.array(PlainText.max(4096)).max(100).default([]).describe('Additional arguments of the model server, appended after all others'),
    ...MODEL_OPTIONS,
    presets: Presets.default({}).describe('Named parameters: a request for "<slot>:<preset>" gets those of the preset'),
  })
  .superRefine(rulesAt('model'));

/** What a slot has that says nothing about its times. */
export const DEFAULT_TIMES = { startTimeout: '5m', drainTimeout: '30s' } as const;

const Lifecycle = z.strictObject({
  idleTimeout: z
    .union([z.literal('never'), durationWithin('1s', '365d')], 'Write a duration such as "15m", or "never"')
    .default('never')
    .describe('Time without requests after which the model is unloaded; the next request loads it again. "never" keeps it loaded'),
  warm: z
    .array(z.string().max(60).regex(WARM_TIME, 'Write days and times such as "Mon-Fri 08:30-18:00"'))
    .max(20)
    .default([])
    .describe(
      'Times at which the model is loaded without a request, if memory is free, and not unloaded: days, which may be left out, and two times, as in "Mon-Fri 08:30-18:00"',
    ),
  prewarm: z
    .enum(['never', 'learned'])
    .default('never')
    .describe('"learned" loads the model shortly before the time at which requests came on earlier days, if memory is free'),
  startTimeout: durationWithin('1s', '24h')
    .default(DEFAULT_TIMES.startTimeout)
    .describe('Maximum time from the start until the model answers'),
  drainTimeout: durationWithin('0s', '24h')
    .default(DEFAULT_TIMES.drainTimeout)
    .describe('Maximum time to wait for requests in flight before the workload is stopped'),
  swap: z
    .enum(['auto', 'blue-green', 'drain'])
    .default('auto')
    .describe(
      'How a new model replaces the current one. "blue-green": start it beside the current one; "drain": stop the current one first; "auto": blue-green if both fit',
    ),
  keepPrompts: z
    .boolean()
    .default(true)
    .describe(
      'Whether prompts that the server has computed are kept on disk when it stops, and restored when it starts again. Not in a cluster',
    ),
  drift: z
    .enum(['repair', 'warn', 'ignore'])
    .default('repair')
    .describe(
      'What to do when something else has changed the workload. "repair": restore it; "warn": report it in the status; "ignore": nothing',
    ),
});

/** Smaller ones are a forgotten unit, larger ones a mistake. */
const Size = sizeWithin('1Mi', '1024Ti');

const Resources = z
  .strictObject({
    memory: optional('Memory to reserve. Admission uses this or the estimate for the model, whichever is larger', Size),
    gpus: optional('Number of GPUs; 0 computes on the CPU. Default: all on a host, one in a cluster', z.int().min(0).max(64)),
    devices: optional(
      'The GPUs that the slot may use, by id or PCI address as `svcctl hardware` shows them, such as "gpu1". Not in a cluster. Default: all',
      DeviceNames,
    ),
    deviceAccess: optional(
      'Cluster only: how the pods get their devices. "plugin": the scheduler counts them, by a device plugin or DRA; "hostDevices": those of the node, uncounted. Default: "plugin" where a resource stands for the devices, else "hostDevices"',
      z.enum(['plugin', 'hostDevices']),
    ),
    gpuResource: optional(
      'Cluster only: extended resource that stands for one device. Default: as "gpus.resources" of the chart says for the backend',
      z
        .string()
        .max(316)
        .regex(new RegExp(`^${EXTENDED_RESOURCE}$`), 'Write the name of an extended resource, such as "nvidia.com/mig-1g.10gb"'),
    ),
  })
  .superRefine(rulesAt('resources'));

const Toleration = z
  .strictObject({
    key: optional('Key of the taint. Default: all keys', z.string()),
    operator: optional(
      'How the taint is matched. "Exists": by its key; "Equal": by its key and value. Default: "Equal"',
      z.enum(['Exists', 'Equal']),
    ),
    value: optional('Value of the taint, for "Equal"', z.string()),
    effect: optional('Effect of the taint. Default: all effects', z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])),
    tolerationSeconds: optional('Seconds for which "NoExecute" is tolerated. Default: no limit', z.int().min(0)),
  })
  .superRefine(rulesAt('tolerations.*'));

const Storage = z
  .strictObject({
    size: optional('Size of the claim that is created for the slot', Size),
    className: optional('Storage class of that claim. Default: the default class of the cluster', z.string()),
    accessModes: optional(
      'Access modes of that claim. "ReadWriteMany" lets pods on several nodes use it. Default: "ReadWriteOnce"',
      z
        .array(z.enum(ACCESS_MODES))
        .min(1)
        .max(4)
        .refine((modes) => new Set(modes).size === modes.length, 'List each access mode only once'),
    ),
    claimName: optional('Name of an existing claim that holds the models', z.string()),
    hostPath: optional('Absolute path of a directory on the node that holds the models', z.string().startsWith('/')),
  })
  .superRefine(rulesAt('storage'));

export const SlotDocument = z
  .strictObject({
    enabled: z.boolean().default(true).describe('Whether the slot should run. Set it to false to unload the model'),
    provider: optional(
      'Kind of server that runs in the slot: "gguf", "npu", "stt", "tts", "image", "remote", or the name of a declared engine. Default: that of a built-in name, else that of the model, where its id says it',
      ProviderName,
    ),
    backend: optional(
      'What the server computes with. Default: the default backend of the provider where this machine can run it, else the best one that it can; in a cluster, the default one',
      z.enum(BACKENDS),
    ),
    priority: z
      .int()
      .min(-1000)
      .max(1000)
      .default(0)
      .describe('When memory is short, slots with a lower priority are unloaded first, and wait longer'),
    load: z.enum(['always', 'on-demand']).default('always').describe('"on-demand" loads the model with the first request'),
    restartedAt: optional('Set by "svcctl slot restart", in UTC. A new value restarts the workload', z.iso.datetime()),
    model: Model.describe('The model that the slot serves'),
    program: optional('The build that the slot runs. Default: that of its provider and backend', SlotProgram),
    remote: optional('Server of a slot with the provider "remote": one on another machine', RemoteDocument.superRefine(rulesAt('remote'))),
    lifecycle: Lifecycle.prefault({}).describe('When the slot loads and unloads its model, and how it applies changes'),
    resources: Resources.prefault({}).describe('Resources of the slot'),
    limits: optional('How many requests the slot takes', Limits),
    price: optional('What requests cost, for `svcctl usage`', PriceTable),
    rollout: optional('How edits of the slot take effect', Rollout),
    fallback: optional('Other slots that get requests while this one cannot answer them, or always get a share', Fallback),
    env: boundedRecord(PlainText.max(32_768), 200, EnvName)
      .superRefine(rulesAt('env'))
      .default({})
      .describe('Additional environment variables of the model server'),
    replicas: z.int().min(0).max(1000).default(1).describe('Cluster only: number of pods that serve the slot'),
    autoscale: optional('Cluster only: the service sets "replicas" by the load. Do not combine it with another autoscaler', Autoscale),
    nodeSelector: z.record(z.string(), z.string()).default({}).describe('Cluster only: labels that a node must have to run the pods'),
    tolerations: z.array(Toleration).max(50).default([]).describe('Cluster only: taints that the pods tolerate'),
    storage: optional('Cluster only: where the pods find their models', Storage),
    serviceAccountName: optional('Cluster only: service account of the pods', z.string().max(253)),
    pod: optional('Cluster only: what is added to the pods, and changed in them, with the keys of a pod template', PodOverlay),
  })
  .superRefine(rulesAt(''));

/** A slot as users may write it. */
export type SlotDocument = z.input<typeof SlotDocument>;

type Parsed = z.output<typeof SlotDocument>;

export interface SlotSpec extends Readonly<
  Pick<Parsed, 'enabled' | 'priority' | 'load' | 'restartedAt' | 'env' | 'fallback' | 'limits' | 'price' | 'program' | 'rollout'>
> {
  readonly provider: ProviderKind;
  /** Set for a declared provider; `deviceBytes` only if its engine asks for the memory of the device. */
  readonly engine?: EngineDefinition;
  readonly deviceBytes?: number;
  /** The document's backend; if absent, the provider's default until the machine's facts decide. */
  readonly remote?: Remote;
  readonly backend: Backend;
  readonly backendGiven: boolean;
  readonly model: Readonly<ReturnType<typeof resolveModel<Parsed['model']>>>;
  readonly lifecycle: Readonly<Pick<Parsed['lifecycle'], 'swap' | 'drift' | 'keepPrompts' | 'warm' | 'prewarm'>> & {
    /** `Infinity` stands for "never". */
    readonly idleTimeoutMs: number;
    readonly startTimeoutMs: number;
    readonly drainTimeoutMs: number;
  };
  readonly resources: Readonly<Pick<Parsed['resources'], 'devices' | 'deviceAccess' | 'gpuResource'>> & {
    readonly memoryBytes: number | undefined;
    readonly gpus: number | undefined;
  };
  readonly cluster: Pick<Parsed, 'replicas' | 'nodeSelector' | 'tolerations' | 'storage' | 'serviceAccountName' | 'pod'> & {
    readonly autoscale?: { readonly min: number; readonly max: number; readonly inFlight: number; readonly windowMs: number };
  };
}

export type { SpecProblem };
export type ParsedSlot = { readonly ok: true; readonly spec: SlotSpec } | { readonly ok: false; readonly problems: readonly SpecProblem[] };

/**
 * Validates a document with camelCase keys and fills in the defaults that depend on the slot's name. Returns all
 * problems at once. `style` determines how messages name keys. Pure.
 */
export function parseSlot(name: SlotName, document: unknown, style: KeyStyle = 'snake_case'): ParsedSlot {
  const checked = checkDocument(SlotDocument, document, style);
  const kind = resolveKind(name, document);
  const found = checked.ok ? [] : checked.problems;
  const refused = kind.provider === undefined ? [] : inexpressible(kind.provider, document, style);
  const problems = [...found, ...(kind.problem === undefined ? [] : [kind.problem]), ...refused];
  if (!checked.ok || kind.backend === undefined || problems.length > 0) return { ok: false, problems };
  return { ok: true, spec: resolve(checked.value, kind.provider, kind.backend) };
}

const Kind = z.object({
  provider: SlotDocument.shape.provider,
  backend: SlotDocument.shape.backend,
  // A mistake in it is reported as such; it then says nothing about the provider.
  model: z.object({ default: z.string() }).optional().catch(undefined),
});

type ResolvedKind =
  | { readonly provider: ProviderKind; readonly backend: Backend; readonly problem?: undefined }
  /** `problem` is undefined if the schema already reports one. */
  | { readonly provider?: undefined; readonly backend?: undefined; readonly problem: SpecProblem | undefined };

function resolveKind(name: SlotName, document: unknown): ResolvedKind {
  const written = Kind.safeParse(document);
  if (!written.success) return { problem: undefined };
  const { model, provider = DEFAULT_PROVIDER_OF_SLOT[name] ?? providerOfModel(model?.default ?? '') } = written.data;
  if (provider === undefined) {
    const message = `Set "provider" to one of ${quoted(PROVIDER_KIND_NAMES)}: "${name}" is not a built-in slot, and its model does not say which one it needs`;
    return { problem: { path: ['provider'], message } };
  }
  const facts = kindFacts(provider);
  const backend = written.data.backend ?? facts.defaultBackend;
  if (facts.backends.some((offered) => offered === backend)) return { provider, backend };
  const message = `Provider "${provider}" does not support backend "${backend}"; use ${quoted(facts.backends)}`;
  return { problem: { path: ['backend'], message } };
}

function resolve(parsed: Parsed, provider: ProviderKind, backend: Backend): SlotSpec {
  const { lifecycle, resources, autoscale, replicas, nodeSelector, tolerations, storage, serviceAccountName, pod, remote, ...rest } =
    parsed;
  const { idleTimeout, startTimeout, drainTimeout, ...changes } = lifecycle;
  const { memory, gpus, ...devices } = resources;
  return {
    ...rest,
    ...(remote === undefined ? {} : { remote: resolveRemote(remote, parsed.model.default) }),
    provider,
    backend,
    backendGiven: parsed.backend !== undefined,
    model: resolveModel(parsed.model, parsed.backend !== undefined),
    lifecycle: {
      idleTimeoutMs: idleTimeout === 'never' ? Number.POSITIVE_INFINITY : parseDurationMs(idleTimeout),
      startTimeoutMs: parseDurationMs(startTimeout),
      drainTimeoutMs: parseDurationMs(drainTimeout),
      ...changes,
    },
    resources: { ...devices, gpus, memoryBytes: memory === undefined ? undefined : parseSizeBytes(memory) },
    cluster: {
      replicas,
      nodeSelector,
      tolerations,
      storage,
      serviceAccountName,
      pod,
      ...(autoscale === undefined ? {} : { autoscale: resolveAutoscale(autoscale) }),
    },
  };
}
