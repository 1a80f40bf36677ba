/**
 * The one schema of a slot. `SlotDocument` is what people write (TOML in snake_case, a SlotSpec resource in camelCase, JSON of the
 * API in snake_case); `SlotSpec` is what the program works with: every default filled in, every unit a number.
 * The CRD, the editor's JSON Schema, Helm's values schema and the reference table are generated from `SlotDocument`.
 */
import { z } from 'zod';
import { ModelId, type SlotName } from './names.ts';
import {
  BACKENDS,
  DEFAULT_PROVIDER_OF_SLOT,
  PROVIDER_KIND_NAMES,
  PROVIDER_KINDS,
  type Backend,
  type ProviderKind,
} from './provider-kinds.ts';
import { Duration, parseDurationMs, parseSizeBytes, Size } from './quantities.ts';
import { brokenRules } from './slot-rules.ts';
import { problemsOfIssues, type KeyStyle, type SpecProblem } from './spec-problem.ts';

export const ENV_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]*$';
export const ENV_NAME_RULE = 'An environment variable is named with letters, digits and "_"';

const EnvName = z.string().regex(new RegExp(ENV_NAME_PATTERN), ENV_NAME_RULE);
const PlainText = z
  .string()
  // eslint-disable-next-line no-control-regex -- a NUL or a line break would end an argument or an env file's line early
  .regex(/^[^\x00\r\n]*$/, 'Line breaks and NUL characters are not allowed here');

const Model = z.strictObject({
  default: ModelId.describe('A catalogue id, or a file in the model store'),
  aliases: z.array(z.string().min(1).max(200)).max(50).default([]).describe('Other names that clients may send as "model"'),
  context: z
    .int()
    .min(64)
    .max(16_777_216)
    .optional()
    .describe('Context length in tokens, where the provider has one; unset: the model’s own'),
  args: z.array(PlainText.max(4096)).max(100).default([]).describe('Extra arguments of the runtime, appended last'),
});

const Lifecycle = z.strictObject({
  idleTimeout: z
    .union([z.literal('never'), Duration], 'Write a duration such as "15m", or "never"')
    .default('never')
    .describe('Idle this long: unload; a later request loads again'),
  startTimeout: Duration.default('5m').describe('Warming longer than this is a failure'),
  drainTimeout: Duration.default('30s').describe('How long unloading waits for requests in flight'),
  swap: z
    .enum(['auto', 'blue-green', 'drain'])
    .default('auto')
    .describe('How a new model takes over: beside the old one, after the old one has ended, or "auto": beside it where both fit'),
  drift: z.enum(['repair', 'warn', 'ignore']).default('repair').describe('What to do when the workload was altered from outside'),
});

const Resources = z.strictObject({
  memory: Size.optional().describe('Memory to count for this slot; admission uses the larger of this and the estimate'),
  gpus: z.int().min(0).max(64).optional().describe('Number of GPUs'),
});

const Toleration = z.strictObject({
  key: z.string().optional().describe('The taint’s key; unset: every key'),
  operator: z.enum(['Exists', 'Equal']).optional().describe('Whether the value is compared; "Equal" where it is unset'),
  value: z.string().optional().describe('The taint’s value'),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional().describe('The taint’s effect; unset: every effect'),
  tolerationSeconds: z.int().min(0).optional().describe('How long "NoExecute" is tolerated; unset: for ever'),
});

const Storage = z.strictObject({
  size: Size.optional().describe('Size of the claim'),
  className: z.string().optional().describe('Storage class of the claim'),
  claimName: z.string().optional().describe('An existing claim that holds the models'),
  hostPath: z.string().startsWith('/').optional().describe('A directory of the node that holds the models'),
});

export const SlotDocument = z.strictObject({
  enabled: z.boolean().default(true).describe('Wanted or not; unloading is a matter of setting false'),
  provider: z.enum(PROVIDER_KIND_NAMES).optional().describe('Which runtime serves the slot; has a default for the built-in slot names'),
  backend: z.enum(BACKENDS).optional().describe('What the runtime computes on; the default is the provider’s'),
  priority: z.int().min(-1000).max(1000).default(0).describe('A higher one survives memory pressure longer'),
  load: z.enum(['always', 'on-demand']).default('always').describe('"on-demand" starts at the first request'),
  restartedAt: z.iso.datetime().optional().describe('Set by "svcctl slot restart": a new value restarts the workload'),
  model: Model.describe('The model that the slot serves, and how'),
  lifecycle: Lifecycle.prefault({}).describe('When the slot loads and unloads, and how it changes'),
  resources: Resources.prefault({}).describe('What the slot needs'),
  env: z.record(EnvName, PlainText.max(32_768)).default({}).describe('Extra environment variables of the runtime'),
  replicas: z.int().min(0).max(1000).default(1).describe('Cluster only: how many pods serve the slot'),
  nodeSelector: z.record(z.string(), z.string()).default({}).describe('Cluster only: labels a node must have'),
  tolerations: z.array(Toleration).max(50).default([]).describe('Cluster only: taints the pods tolerate'),
  storage: Storage.optional().describe('Cluster only: where the models lie'),
  serviceAccountName: z.string().max(253).optional().describe('Cluster only: the pods’ service account'),
});

/** What people may write. */
export type SlotDocument = z.input<typeof SlotDocument>;

type Parsed = z.output<typeof SlotDocument>;

export interface SlotSpec {
  readonly enabled: boolean;
  readonly provider: ProviderKind;
  readonly backend: Backend;
  readonly priority: number;
  readonly load: 'always' | 'on-demand';
  readonly restartedAt: string | undefined;
  readonly model: {
    readonly default: ModelId;
    readonly aliases: readonly string[];
    /** Tokens; undefined: the model's own. */
    readonly context: number | undefined;
    readonly args: readonly string[];
  };
  readonly lifecycle: {
    /** `Infinity` is never. */
    readonly idleTimeoutMs: number;
    readonly startTimeoutMs: number;
    readonly drainTimeoutMs: number;
    readonly swap: 'auto' | 'blue-green' | 'drain';
    readonly drift: 'repair' | 'warn' | 'ignore';
  };
  readonly resources: { readonly memoryBytes: number | undefined; readonly gpus: number | undefined };
  readonly env: Readonly<Record<string, string>>;
  readonly cluster: Pick<Parsed, 'replicas' | 'nodeSelector' | 'tolerations' | 'storage' | 'serviceAccountName'>;
}

export type { SpecProblem };

export type ParsedSlot = { readonly ok: true; readonly spec: SlotSpec } | { readonly ok: false; readonly problems: readonly SpecProblem[] };

/**
 * Checks a document whose keys are camelCase and fills in what depends on the slot's name; answers every problem at once.
 * `style` says how its messages name keys. Pure.
 */
export function parseSlot(name: SlotName, document: unknown, style: KeyStyle = 'snake_case'): ParsedSlot {
  const parsed = SlotDocument.safeParse(document);
  const issues = parsed.success ? [] : problemsOfIssues(parsed.error.issues, document, SlotDocument, style);
  const kind = resolveKind(name, document);
  const combined = parsed.success ? brokenRules(document, style) : [];
  const problems = [...issues, ...(kind.problem === undefined ? [] : [kind.problem]), ...combined];
  if (!parsed.success || kind.backend === undefined || problems.length > 0) return { ok: false, problems };
  return { ok: true, spec: resolve(parsed.data, kind.provider, kind.backend) };
}

const Kind = z.object({ provider: SlotDocument.shape.provider, backend: SlotDocument.shape.backend });

type ResolvedKind =
  | { readonly provider: ProviderKind; readonly backend: Backend; readonly problem?: undefined }
  /** No problem where the schema already names one. */
  | { readonly provider?: undefined; readonly backend?: undefined; readonly problem: SpecProblem | undefined };

function resolveKind(name: SlotName, document: unknown): ResolvedKind {
  const written = Kind.safeParse(document);
  if (!written.success) return { problem: undefined };
  const provider = written.data.provider ?? DEFAULT_PROVIDER_OF_SLOT[name];
  if (provider === undefined) {
    const message = `Set "provider" to one of ${quoted(PROVIDER_KIND_NAMES)}: "${name}" is not a built-in slot, so it has no default`;
    return { problem: { path: ['provider'], message } };
  }
  const facts = PROVIDER_KINDS[provider];
  const backend = written.data.backend ?? facts.defaultBackend;
  if (facts.backends.some((offered) => offered === backend)) return { provider, backend };
  const message = `Provider "${provider}" does not offer backend "${backend}"; use ${quoted(facts.backends)}`;
  return { problem: { path: ['backend'], message } };
}

function resolve(parsed: Parsed, provider: ProviderKind, backend: Backend): SlotSpec {
  const { lifecycle, resources, model } = parsed;
  return {
    enabled: parsed.enabled,
    provider,
    backend,
    priority: parsed.priority,
    load: parsed.load,
    restartedAt: parsed.restartedAt,
    model: { default: model.default, aliases: model.aliases, context: model.context, args: model.args },
    lifecycle: {
      idleTimeoutMs: lifecycle.idleTimeout === 'never' ? Number.POSITIVE_INFINITY : parseDurationMs(lifecycle.idleTimeout),
      startTimeoutMs: parseDurationMs(lifecycle.startTimeout),
      drainTimeoutMs: parseDurationMs(lifecycle.drainTimeout),
      swap: lifecycle.swap,
      drift: lifecycle.drift,
    },
    resources: {
      memoryBytes: resources.memory === undefined ? undefined : parseSizeBytes(resources.memory),
      gpus: resources.gpus,
    },
    env: parsed.env,
    cluster: {
      replicas: parsed.replicas,
      nodeSelector: parsed.nodeSelector,
      tolerations: parsed.tolerations,
      storage: parsed.storage,
      serviceAccountName: parsed.serviceAccountName,
    },
  };
}

function quoted(values: readonly string[]): string {
  return values.map((value) => `"${value}"`).join(', ');
}
