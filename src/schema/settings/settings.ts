/** The settings of the service (`SVC_*`). Parsing, defaults and the reference page all come from this schema. */
import { z } from 'zod';
import { nearestWord } from '../words/nearest-word.ts';
import {
  AbsolutePath,
  Count,
  CountServerUrl,
  DurationMs,
  Flag,
  GpuResources,
  HostNames,
  HttpUrl,
  IdentityRoles,
  LicenseNames,
  ListenAddress,
  LocalListenAddress,
  NamesOf,
  ObjectName,
  OffOn,
  Origins,
  PodUser,
  PortRange,
  ProgressInterval,
  ProxyAddresses,
  PublicKey,
  SizeBytes,
  TimeZone,
  WorkerCount,
  withAdvice,
} from './setting-values.ts';
import { checkDocument, formatProblem } from '../slot/spec-problem.ts';
import { GIT_SETTINGS } from './git-settings.ts';
import { DEFAULT_PORT, findConflicts } from './setting-conflicts.ts';

export const SettingsSchema = z.strictObject({
  SVC_LISTEN: ListenAddress.optional().describe(
    'Address to listen on. Default: `0.0.0.0:8080`; `127.0.0.1:8080` with authentication, and for `npm start` in a checkout',
  ),
  SVC_MANAGEMENT_LISTEN: ListenAddress.optional().describe(
    'Second address, such as `127.0.0.1:8081`, that answers every route; `SVC_LISTEN` then answers those for models and probes only (`docs/security.md`). Default: none',
  ),
  SVC_WYOMING: LocalListenAddress.optional().describe(
    'Port, such as `10300`, at which slots for speech answer Home Assistant over the Wyoming protocol, on the loopback; or an address and a port. The protocol has no authentication (`docs/security.md`). Default: none',
  ),
  SVC_RUNTIME: z
    .enum(['auto', 'podman', 'kube', 'process'])
    .default('auto')
    .describe(
      'Where workloads run. `auto`: where slots ran before; at first podman if its socket answers and it has an image of a slot, else kube if a service account is mounted, else process',
    ),
  SVC_PODMAN_SOCKET: z
    .string()
    .optional()
    .describe('Path of the podman API socket. Default: `CONTAINER_HOST`, then the socket of the user, then that of the system'),
  SVC_CONFIG_DIR: AbsolutePath.default('/etc/svc').describe(
    'Contains `slots/*.toml`, `engines/*.toml`, `toolboxes.toml`, `tokens.toml` and `api.env`',
  ),
  SVC_STATE_DIR: AbsolutePath.default('/var/lib/svc').describe('Contains timelines, status, last valid specs, env files, image cache'),
  SVC_MODELS_DIR: AbsolutePath.optional().describe('Directory of the model store. Default: `models` in the state directory'),
  SVC_AUTH_ENABLED: Flag.prefault('0').describe('Whether routes require credentials, except those that are open to everyone'),
  SVC_TRUSTED_PROXIES: ProxyAddresses.prefault('127.0.0.1,::1').describe(
    'Comma-separated addresses, and CIDR ranges such as `10.0.0.0/8`, of proxies whose `X-Forwarded-Email` header is trusted',
  ),
  SVC_IDENTITY_ROLES: IdentityRoles.prefault('*=admin').describe(
    'Comma-separated scopes of the identities that a trusted proxy forwards: `anna@example.com=admin`, `*@example.com=v1-only` for a domain, `*=read-only` for everyone. The closest entry counts; whoever has none is refused. The chart sets it from `auth.identityRoles`, by default to nobody',
  ),
  SVC_PROXY_SECRET: z
    .string()
    .min(16, 'Use at least 16 characters')
    .optional()
    .describe('Secret with which the proxy authenticates, so that local users cannot forge its headers. At least 16 characters'),
  SVC_PUBLIC_URL: HttpUrl.optional().describe(
    'URL under which users reach the service. The API uses it in the URLs that it returns, and requests may come under its name',
  ),
  SVC_CHAT_URL: HttpUrl.optional().describe(
    'URL of the chat page, for `GET /api/config/urls`. Default: `/chat/` under `SVC_PUBLIC_URL`, or port 3001 of the host',
  ),
  SVC_ALLOWED_HOSTS: HostNames.describe(
    'Comma-separated names under which clients may reach the service, besides its addresses and own names (`docs/security.md`). `*.example.com`: all names in a domain; `*`: any name, which permits DNS rebinding',
  ),
  SVC_CORS_ORIGINS: Origins.describe(
    'Comma-separated origins, such as `http://192.168.1.5:3001`, whose pages may use `/v1` from a browser. Default: none',
  ),
  SVC_ALLOW_UNSAFE_EDITS: Flag.prefault('0').describe(
    'Whether edits through the API may set environment variables and arguments with which a model server loads code or uses other files',
  ),
  SVC_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Lowest level of messages that are logged'),
  SVC_PORT_RANGE: PortRange.prefault('18080-18979').describe(
    'Loopback ports for workloads. The default is below the ephemeral ports of Linux, so outgoing connections do not occupy any',
  ),
  SVC_ON_EXIT: z
    .enum(['leave', 'stop'])
    .default('leave')
    .describe('What happens to slots when the service stops. `leave`: they keep running and the next start adopts them; `stop`: they stop'),
  SVC_STOP_DELAY: DurationMs.prefault('0s').describe('How long a stopping service still accepts requests, until load balancers notice'),
  SVC_STOP_GRACE: DurationMs.prefault('10s').describe('Then, how long requests in flight may take to finish. A second signal ends them'),
  SVC_RESYNC: DurationMs.prefault('15s').describe('Maximum time between two reconcile passes, even if no event arrives'),
  SVC_REVISION_HISTORY: Count(0, 1000).prefault('20').describe('Revisions of a slot that are kept, for `svcctl rollout undo`; `0`: none'),
  ...GIT_SETTINGS,
  SVC_QUIET_PERIOD: DurationMs.prefault('10ms').describe(
    'Quiet period: how long the files of slots must be unchanged before they are read',
  ),
  SVC_TIME_ZONE: TimeZone.optional().describe(
    'Time zone of `lifecycle.warm` and of what `lifecycle.prewarm` learns, such as `Europe/Berlin`. Default: that of the host, which is UTC in a cluster',
  ),
  SVC_MEMORY_BUDGET: SizeBytes.optional().describe('Memory for all slots together. Default: 90 % of the host; in a cluster, no limit'),
  SVC_PROMPT_CACHE_LIMIT: SizeBytes.prefault('4Gi').describe(
    'Disk space for the prompts that servers have computed and that outlive them, of all slots together. `0`: none are kept',
  ),
  SVC_HARDWARE_FILE: AbsolutePath.optional().describe(
    'Recording of another machine, written by `svcctl hardware record`, that takes the place of this one in every decision. For development',
  ),
  SVC_PULL_CONNECTIONS: Count(1, 16).prefault('4').describe('Connections for the download of one large model'),
  SVC_PULL_BANDWIDTH: SizeBytes.optional().describe(
    'Bytes per second for all downloads of models together, such as `50Mi`. Default: no limit',
  ),
  SVC_CATALOGUE_KEY: PublicKey.optional().describe(
    'Public key (ed25519, base64 of the SubjectPublicKeyInfo) of whoever signs the catalogues that `svcctl catalogue update` may store. Default: none, so no catalogue but the shipped one is used',
  ),
  SVC_CATALOGUE_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Where `svcctl catalogue update` looks for a catalogue without `--from`. Default: nowhere'),
  SVC_ACCEPTED_LICENSES: LicenseNames.describe(
    'Comma-separated licences that restrict the use of a model, such as `llama3.2,gemma`, and that you accept. Others have to be accepted with `svcctl model pull --accept-license`',
  ),
  SVC_MODEL_SEARCH: OffOn.default('on').describe('`off`: nobody can search the Hugging Face Hub through the service (`docs/models.md`)'),
  SVC_PARK_LIMIT: Count(0, 100_000)
    .prefault('64')
    .describe('Parked requests per slot without `limits.max_queue`. Further requests fail with 429 `slot.queue_full`'),
  SVC_PARK_TIMEOUT: DurationMs.prefault('300s').describe('How long a request waits for its slot; then it fails with 503 `slot.loading`'),
  SVC_WAIT_PROGRESS: ProgressInterval.prefault('off').describe(
    'How long a request for a stream waits before it gets a comment with the state of its slot, such as `5s`; then again each time as long. `off`: a client gets nothing before the answer (`docs/requests.md`)',
  ),
  SVC_BODY_LIMIT: SizeBytes.prefault('64Mi').describe('Maximum inference body size; larger ones fail with 413 `request.too_large`'),
  SVC_AUDIO_LIMIT: SizeBytes.prefault('25Mi').describe(
    'Maximum size of a recording to transcribe or to translate, in place of `SVC_BODY_LIMIT`; larger ones fail with 413 `request.too_large`',
  ),
  SVC_SPEECH_LIMIT: Count(1, 1_000_000)
    .prefault('4096')
    .describe('Maximum number of characters of a text to speak; longer ones fail with 400 `request.invalid`'),
  SVC_VOICE_LIMIT: Count(0, 10_000)
    .prefault('100')
    .describe('Maximum number of voices that `POST /v1/audio/voices` stores; with 0, it stores none'),
  SVC_REALTIME_LIMIT: Count(0, 10_000)
    .prefault('32')
    .describe('Open sessions of `/v1/realtime`. Further ones fail with 503 `server.overloaded`; with 0, all do'),
  SVC_REALTIME_IDLE: DurationMs.prefault('5m').describe('How long a session of `/v1/realtime` may send nothing; then it is closed'),
  SVC_BUFFER_LIMIT: SizeBytes.prefault('256Mi').describe('Maximum size of all buffered bodies together; then 503 `server.overloaded`'),
  SVC_LIMITS_URL: CountServerUrl.optional().describe(
    'Valkey or Redis with which several gateways share the counts of callers with limits, such as `redis://valkey:6379`; `rediss:` for TLS (`docs/limits.md`). Default: each gateway counts for itself, and enforces its part of each limit',
  ),
  SVC_LIMITS_PASSWORD_FILE: AbsolutePath.optional().describe(
    'File whose first line is the password of this server, in place of one in the URL; it is read again for each connection',
  ),
  SVC_MDNS: Flag.prefault('0').describe(
    'Whether the service announces its name, version and URL on the local network, for `svcctl peer list`. The URL is `SVC_PUBLIC_URL`, else that of `SVC_LISTEN`',
  ),
  SVC_OLLAMA: OffOn.default('off').describe('`on`: clients of Ollama may use the models under `/ollama` (`docs/api.md`)'),
  SVC_MCP: OffOn.default('off').describe('`on`: agents may read, plan and change slots through `/mcp` (`docs/mcp.md`)'),
  SVC_MCP_APPROVE: z
    .enum(['none', 'human'])
    .default('none')
    .describe('`human`: a person approves each plan of an agent before it can be applied (`docs/mcp.md`)'),
  SVC_USAGE: OffOn.default('on').describe('`off`: requests and tokens of callers are not counted (`docs/usage.md`)'),
  SVC_PROMETHEUS_URL: HttpUrl.optional().describe('Cluster only: Prometheus with the metrics of all gateways, for `svcctl usage`'),
  SVC_CAPTURE: OffOn.default('on').describe('`off`: not even administrators may capture bodies of requests (`docs/capture.md`)'),
  SVC_UPSTREAM: OffOn.default('off').describe('`on`: administrators reach all of a server under `/upstream/<slot>/` (`docs/requests.md`)'),
  SVC_FETCH_IMAGES: z
    .enum(['off', 'https', 'http'])
    .default('off')
    .describe(
      'Whether the service fetches images that chats name by URL. `off`: only `data:` URLs are accepted; `https`: from public addresses over HTTPS; `http`: over HTTP as well',
    ),
  SVC_FETCH_IMAGE_LIMIT: SizeBytes.prefault('20Mi').describe('Maximum size of an image that is fetched; larger ones fail with 400'),
  SVC_SPOOL_LIMIT: SizeBytes.prefault('512Mi').describe(
    'Disk space in the state directory for uploads over 1 MiB that have to wait, or whose `model` comes last; then 503 `server.overloaded`',
  ),
  SVC_IMAGE_CACHE_LIMIT: SizeBytes.prefault('5Gi').describe(
    'Disk space in the state directory for images that clients fetch by URL; beyond it, the oldest ones are removed',
  ),
  SVC_IMAGE_CACHE_AGE: DurationMs.prefault('30d').describe('How long clients can fetch an image by its URL; older ones are removed'),
  SVC_HEADER_LIMIT: SizeBytes.prefault('16Ki').describe('Maximum size of request headers; then 431 `request.headers_too_large`'),
  SVC_MAX_CONNECTIONS: Count(1, 1_000_000).prefault('10000').describe('Open client connections; then 503 `server.overloaded`'),
  SVC_FAST_PATH: Flag.prefault('1').describe(
    "Whether ordinary inference requests are read without Node's HTTP server, which costs less; all others go through it in any case. Both ways answer alike",
  ),
  SVC_WORKERS: WorkerCount.prefault('1').describe(
    'Processes that forward requests for texts, from 1 to 64. `1`: the service itself; `auto`: as many as there are cores. Not in a cluster, which has replicas (`docs/workers.md`)',
  ),
  SVC_CONTROL_PLANE: z
    .enum(['shared', 'separate'])
    .prefault('shared')
    .describe(
      '`separate`: all processes of `SVC_WORKERS` are workers, and the service itself decides, manages and answers the rest, so that requests for texts do not wait for it; `shared`: it forwards as well (`docs/workers.md`)',
    ),
  SVC_FIRST_BYTE_TIMEOUT: DurationMs.prefault('600s').describe(
    'Maximum time until a model server sends the first byte of its response; then the request fails with 504 `upstream.timeout`',
  ),
  SVC_STREAM_TIMEOUT: DurationMs.prefault('300s').describe('Maximum silence within a response; then it ends with `upstream.timeout`'),
  SVC_NAMESPACE: ObjectName.optional().describe('Cluster only: namespace of the slots. Default: that of the pod or of the kubeconfig'),
  SVC_SERVICE_NAME: NamesOf('Services')
    .prefault('svc')
    .describe('Cluster only: comma-separated Services of the gateway; clients may use their names, alone or with namespace and domain'),
  SVC_POD_NAME: ObjectName.optional().describe('Cluster only: name of this replica. Default: the host name'),
  SVC_POD_UID: z.uuid().optional().describe('Cluster only: uid of the pod of this replica, which owns the objects of the replica'),
  SVC_IMAGE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Cluster only: image of this service, which downloads and verifies models in the pods of slots. If unset, models must be in place',
    ),
  SVC_IMAGE_PULL_SECRETS: NamesOf('Secrets').describe(
    'Cluster only: comma-separated Secrets with which the pods of slots pull their images, besides those of their service account',
  ),
  SVC_POD_USER: PodUser.prefault('65532').describe(
    'Cluster only: id of the user and of the group of the processes in the pods of slots. `any`: the cluster decides, as OpenShift does for each namespace',
  ),
  SVC_POD_PROXY_SECRET: ObjectName.optional().describe(
    'Cluster only: Secret with the keys `HTTP_PROXY` and `HTTPS_PROXY` for the pods of slots. Default: those of the environment of this service, unless they contain credentials',
  ),
  SVC_HF_TOKEN_SECRET: ObjectName.optional().describe(
    'Cluster only: Secret with the key `HF_TOKEN`, with which the pods of slots fetch models from the Hugging Face Hub. The service itself uses the `HF_TOKEN` of its own environment',
  ),
  SVC_TOKENS_SECRET: ObjectName.default('svc-tokens').describe(
    'Cluster only: Secret with the tokens of the API, in its key `tokens.toml`. On a host, they are in `tokens.toml` in the configuration directory',
  ),
  SVC_WORKFLOWS_CONFIG_MAP: ObjectName.optional().describe(
    'Cluster only: ConfigMap with workflows for images, which is mounted at `/workflows` (`docs/images.md`)',
  ),
  SVC_MODELS_CLAIM: ObjectName.optional().describe('Cluster only: claim with the models of slots that do not set `storage`'),
  SVC_MODELS_HOST_PATH: AbsolutePath.optional().describe(
    'Cluster only: directory on each node with these models, instead of a claim. With neither, each new pod downloads its model',
  ),
  SVC_GPU_RESOURCES: GpuResources.prefault('cuda=nvidia.com/gpu,rocm=amd.com/gpu,vulkan=amd.com/gpu').describe(
    'Cluster only: extended resource that stands for one GPU, for each backend',
  ),
  SVC_GPU_ALLOCATION: z
    .enum(['auto', 'device-plugin', 'dra'])
    .default('auto')
    .describe(
      'Cluster only: how GPUs are requested. `auto`: with Dynamic Resource Allocation (`dra`) if the cluster has a device class for the backend, otherwise as extended resources (`device-plugin`)',
    ),
  SVC_DISRUPTION_BUDGETS: Flag.prefault('1').describe(
    'Cluster only: whether a slot with several replicas gets a PodDisruptionBudget, so that drained nodes take one replica at a time. Turn it off if you have budgets of your own for these pods: Kubernetes evicts no pod that has two',
  ),
  SVC_LEASE_DURATION: DurationMs.prefault('10s').describe(
    'Cluster only: how long a leader may fail to renew its Lease before another replica takes over',
  ),
  SVC_RELIST: DurationMs.prefault('6h').describe(
    'Cluster only: how often all objects are listed again, in case a watch misses a change without an error',
  ),
});

type Parsed = z.output<typeof SettingsSchema>;

export interface Settings extends Omit<Parsed, 'SVC_LISTEN' | 'SVC_MODELS_DIR'> {
  readonly SVC_LISTEN: { readonly host: string; readonly port: number };
  readonly SVC_MODELS_DIR: string;
}

export type ParsedSettings =
  | { readonly ok: true; readonly settings: Settings }
  /** One line for each problem. */
  | { readonly ok: false; readonly problems: readonly string[] };

/** Read by the installer, by `svcctl` and by tests, which may run in the same environment. */
const OF_OTHERS = /^SVC_(?:(?:ADMIN_USER|ADMIN_PASSWORD|HOSTNAME|TLS_EMAIL|TOKEN)$|TEST_|TESTBED|SYSTEMD)/;

/** Parses the `SVC_*` variables of an environment, ignoring all others. Messages contain no secrets. Pure. */
export function parseSettings(env: Readonly<Record<string, string | undefined>>): ParsedSettings {
  const own = Object.entries(env).filter(([key, value]) => key.startsWith('SVC_') && !OF_OTHERS.test(key) && value !== undefined);
  const isKnown = (key: string): boolean => Object.hasOwn(SettingsSchema.shape, key);
  const unknown = own.flatMap(([key]) => (isKnown(key) ? [] : [describeUnknown(key)]));
  const checked = checkDocument(SettingsSchema, Object.fromEntries(own.filter(([key]) => isKnown(key))), 'camelCase');
  const found = checked.ok ? [] : checked.problems.map((problem) => formatProblem(withAdvice(problem, env), 'camelCase'));
  const problems = [...unknown, ...found, ...(checked.ok ? findConflicts(checked.value) : [])];
  if (!checked.ok || problems.length > 0) return { ok: false, problems };
  const { value } = checked;
  const host = value.SVC_AUTH_ENABLED ? '127.0.0.1' : '0.0.0.0';
  return {
    ok: true,
    settings: {
      ...value,
      SVC_LISTEN: value.SVC_LISTEN ?? { host, port: DEFAULT_PORT },
      SVC_MODELS_DIR: value.SVC_MODELS_DIR ?? `${value.SVC_STATE_DIR}/models`,
    },
  };
}

function describeUnknown(key: string): string {
  const meant = nearestWord(key, Object.keys(SettingsSchema.shape));
  return `Unknown setting "${key}"; ${meant === undefined ? 'docs/reference/settings.md lists all settings' : `did you mean "${meant}"?`}`;
}
