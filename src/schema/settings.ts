/** The settings of the service, from `SVC_*`. One schema: parsing, defaults and the reference page come from it. */
import { z } from 'zod';
import { Duration, parseDurationMs, parseSizeBytes, Size } from './quantities.ts';

const ListenAddress = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})$/, 'Write an address and a port: "0.0.0.0:8080" or "[::1]:8080"')
  .transform((text) => {
    const colon = text.lastIndexOf(':');
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) };
  })
  .refine((address) => address.port <= 65_535, 'A port is at most 65535');

const Flag = z.enum(['0', '1', 'false', 'true']).transform((text) => text === '1' || text === 'true');
const Count = (min: number, max: number) =>
  z
    .string()
    .regex(/^[0-9]+$/, 'Write a whole number')
    .transform(Number)
    .pipe(z.int().min(min).max(max));
const DurationMs = Duration.transform(parseDurationMs);
const SizeBytes = Size.transform(parseSizeBytes);
const AbsolutePath = z.string().startsWith('/', 'Write an absolute path');
const ObjectName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/, 'Write a name as Kubernetes has them: lower-case letters, digits, "-" and "."');
const GpuResources = z
  .string()
  .regex(
    /^(?:[a-z]+=[a-z0-9.-]+\/[a-z0-9._-]+)(?:,[a-z]+=[a-z0-9.-]+\/[a-z0-9._-]+)*$/,
    'Write backends and resources: "cuda=nvidia.com/gpu,rocm=amd.com/gpu"',
  )
  .transform((text): Readonly<Record<string, string>> => Object.fromEntries(text.split(',').map((pair) => pair.split('=', 2))));
const PortRange = z
  .string()
  .regex(/^[0-9]{4,5}-[0-9]{4,5}$/, 'Write two ports with a hyphen: "18080-18979"')
  .transform((text) => ({ first: Number(text.slice(0, text.indexOf('-'))), last: Number(text.slice(text.indexOf('-') + 1)) }))
  .refine((range) => range.first < range.last && range.last <= 65_535, 'The first port is below the last, and the last at most 65535');

export const SettingsSchema = z.strictObject({
  SVC_LISTEN: ListenAddress.optional().describe(
    'Address of the gateway and the API. Default `0.0.0.0:8080`; `127.0.0.1:8080` once authentication is on, since the proxy stands in front then',
  ),
  SVC_RUNTIME: z
    .enum(['auto', 'podman', 'kube', 'process'])
    .default('auto')
    .describe('Where workloads run. `auto`: podman where its socket answers, kube where a service account is mounted, else process'),
  SVC_PODMAN_SOCKET: z
    .string()
    .optional()
    .describe('Path of podman’s API socket. Default: `CONTAINER_HOST`, then the user’s, then the system’s socket'),
  SVC_CONFIG_DIR: AbsolutePath.default('/etc/svc').describe('Holds `slots/*.toml`, `toolboxes.toml`, `tokens.toml`, `api.env`'),
  SVC_STATE_DIR: AbsolutePath.default('/var/lib/svc').describe('Image cache, timelines, last good specs, env files'),
  SVC_MODELS_DIR: AbsolutePath.optional().describe('The model store. Default: `models` in the state directory'),
  SVC_AUTH_ENABLED: Flag.prefault('0').describe('1: every route but the open ones needs a credential'),
  SVC_TRUSTED_PROXIES: z
    .string()
    .default('127.0.0.1,::1')
    .transform((text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    )
    .describe('Addresses from which `X-Forwarded-Email` is believed'),
  SVC_PROXY_SECRET: z
    .string()
    .min(16, 'Use at least 16 characters')
    .optional()
    .describe('What the proxy proves itself with, so that a local user cannot forge its header'),
  SVC_PUBLIC_URL: z.url().optional().describe('The address people use, for the URLs the API hands out'),
  SVC_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info').describe('How much is logged'),
  SVC_PORT_RANGE: PortRange.prefault('18080-18979').describe(
    'Loopback ports that workloads are published on. The default lies below the ephemeral ports of Linux, so that no outgoing connection takes one',
  ),
  SVC_ON_EXIT: z
    .enum(['leave', 'stop'])
    .default('leave')
    .describe('What a clean stop does with running slots. `leave`: the next start adopts them'),
  SVC_STOP_DELAY: DurationMs.prefault('0s').describe(
    'When the service is told to stop, it goes on taking requests for so long, each answer asking for a new connection: until all who send requests here know',
  ),
  SVC_STOP_GRACE: DurationMs.prefault('10s').describe(
    'Then requests in flight are given this long to end; a second signal ends everything at once',
  ),
  SVC_RESYNC: DurationMs.prefault('15s').describe('A pass runs at least this often, whatever events were lost'),
  SVC_QUIET_PERIOD: DurationMs.prefault('10ms').describe(
    'The quiet period: slot files are read once none of them has changed for this long, so that an editor’s write and rename are one change',
  ),
  SVC_MEMORY_BUDGET: SizeBytes.optional().describe('What admission may hand out. Default: nine tenths of the host’s memory'),
  SVC_PARK_LIMIT: Count(0, 100_000).prefault('64').describe('Requests parked for one slot; more get 429 `slot.queue_full`'),
  SVC_PARK_TIMEOUT: DurationMs.prefault('300s').describe('How long a request waits for its slot before 503 `slot.loading`'),
  SVC_BODY_LIMIT: SizeBytes.prefault('64Mi').describe('Largest request body; over it 413 `request.too_large`'),
  SVC_BUFFER_LIMIT: SizeBytes.prefault('256Mi').describe(
    'Bytes of request bodies held in memory at once, over all requests; over it 503 `server.overloaded`',
  ),
  SVC_HEADER_LIMIT: SizeBytes.prefault('16Ki').describe('Largest request header'),
  SVC_MAX_CONNECTIONS: Count(1, 1_000_000).prefault('10000').describe('Open client connections'),
  SVC_FIRST_BYTE_TIMEOUT: DurationMs.prefault('600s').describe(
    'How long a ready upstream may take for its first byte before 504 `upstream.timeout`',
  ),
  SVC_NAMESPACE: ObjectName.optional().describe(
    'Cluster: the namespace of the slots. Default: the pod’s own, else that of the kubeconfig’s context',
  ),
  SVC_POD_NAME: ObjectName.optional().describe('Cluster: the name of this replica. Default: the host’s name'),
  SVC_POD_UID: z.uuid().optional().describe('Cluster: the uid of this replica’s pod, so that what it leaves behind goes with the pod'),
  SVC_IMAGE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Cluster: the image of this service, which fetches and verifies models in the pods of slots. Unset: models must lie in place',
    ),
  SVC_MODELS_CLAIM: ObjectName.optional().describe('Cluster: the claim that holds the models of slots that name no storage of their own'),
  SVC_MODELS_HOST_PATH: AbsolutePath.optional().describe(
    'Cluster: a directory of each node that holds them instead. Without both, each pod fetches its model anew',
  ),
  SVC_GPU_RESOURCES: GpuResources.prefault('cuda=nvidia.com/gpu,rocm=amd.com/gpu,vulkan=amd.com/gpu').describe(
    'Cluster: which resource of a node a GPU of each backend is',
  ),
  SVC_GPU_ALLOCATION: z
    .enum(['auto', 'device-plugin', 'dra'])
    .default('auto')
    .describe(
      'Cluster: how GPUs are asked for. `auto`: by DRA (`resource.k8s.io/v1`) where the cluster has a device class for the backend, else by resource name',
    ),
  SVC_LEASE_DURATION: DurationMs.prefault('10s').describe(
    'Cluster: how long the reconciling replica may be silent before another one takes over',
  ),
  SVC_RELIST: DurationMs.prefault('10m').describe(
    'Cluster: how often everything is listed anew although nothing asks for it, since a watch may go silent',
  ),
  SVC_STREAM_TIMEOUT: DurationMs.prefault('300s').describe('How long a stream may be silent'),
});

type Parsed = z.output<typeof SettingsSchema>;

export interface Settings extends Omit<Parsed, 'SVC_LISTEN' | 'SVC_MODELS_DIR'> {
  readonly SVC_LISTEN: { readonly host: string; readonly port: number };
  readonly SVC_MODELS_DIR: string;
}

export type ParsedSettings =
  | { readonly ok: true; readonly settings: Settings }
  /** One clear line a problem. */
  | { readonly ok: false; readonly problems: readonly string[] };

/** Reads the `SVC_*` keys of an environment; other keys are not looked at. Values are never repeated for secrets. Pure. */
export function parseSettings(env: Readonly<Record<string, string | undefined>>): ParsedSettings {
  const own = Object.fromEntries(Object.entries(env).filter(([key, value]) => key.startsWith('SVC_') && value !== undefined));
  const parsed = SettingsSchema.safeParse(own);
  if (!parsed.success) return { ok: false, problems: parsed.error.issues.flatMap((issue) => problemLines(issue, own)) };
  const { data } = parsed;
  const host = data.SVC_AUTH_ENABLED ? '127.0.0.1' : '0.0.0.0';
  return {
    ok: true,
    settings: {
      ...data,
      SVC_LISTEN: data.SVC_LISTEN ?? { host, port: 8080 },
      SVC_MODELS_DIR: data.SVC_MODELS_DIR ?? `${data.SVC_STATE_DIR}/models`,
    },
  };
}

const SECRET_KEYS: ReadonlySet<string> = new Set(['SVC_PROXY_SECRET']);

function problemLines(issue: z.core.$ZodIssue, env: Readonly<Record<string, unknown>>): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `Unknown setting "${key}": see the reference of settings for the known ones`);
  }
  const key = String(issue.path[0]);
  const shown = SECRET_KEYS.has(key) ? '' : ` "${String(env[key])}"`;
  return [`Bad value${shown} of "${key}": ${issue.message}`];
}
