/** The open routes. They reveal no secret, and change only the mark that the installation is complete. */
import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errorBody } from '../../schema/words/error-codes.ts';
import { CONTENT_TYPES } from '../metrics/decide/metric-text.ts';
import { json, text, ApiError, type Answers, type JsonAnswer, type ReplyTo, type Immutable } from '../server/answer.ts';
import { defaultBodyLimit, defineRoute, NoInput, type DocumentedRoute } from '../server/define-route.ts';
import { Hardware, Models, Providers, Pulls } from '../../schema/status/answers.ts';
import { Status } from '../../schema/status/slot-lists.ts';
import { createChangeList } from './change-list.ts';
import { publicUrls, slotLine, viewStatus, type Line, type LineOf } from './decide/status-view.ts';
import type { ManageDeps } from './manage-deps.ts';
import { AuthStatus, Failing, Features, Healthy, InstallState, Login, PublicUrls, Ready, Starting } from './system-answers.ts';
import { Cluster } from '../../schema/status/resource-answers.ts';
import { SlotName } from '../../schema/words/names.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { answerOf } from './decide/slot-view.ts';
import { viewCluster, viewHardware, viewPulls } from './decide/inventory-view.ts';

/** There is a pass at every resync, so after four missed ones, and at least a minute, the loop counts as dead. */
const MISSED_RESYNCS = 4;
const LEAST_STALE_MS = 60_000;

const LoginInput = z.object({ body: z.unknown().describe('Ignored') });

const METHODS = ['bearer', 'forwarded-email'] as const;

export function createSystemRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  return [...livenessRoutes(deps), ...stateRoutes(deps), ...discoveryRoutes(deps), ...installRoutes(deps), ...authRoutes(deps)];
}

function open<const Declared extends Answers>(
  path: string,
  summary: string,
  answers: Declared,
  handler: (request: FastifyRequest) => ReplyTo<Declared> | Promise<ReplyTo<Declared>>,
): DocumentedRoute {
  return defineRoute('GET', path, 'open', {
    tag: 'system',
    summary,
    input: NoInput,
    answers,
    handler: (_input, { request }) => handler(request),
  });
}

/** Monitoring reaches these under any name, and they reveal nothing but the version and that the service runs. */
function health<const Declared extends Answers>(...route: Parameters<typeof open<Declared>>): DocumentedRoute {
  return { ...open(...route), anySite: true };
}

type Read<Schema extends z.ZodType> = (request: FastifyRequest) => Immutable<z.output<Schema>> | Promise<Immutable<z.output<Schema>>>;

/** An open route with a single answer. */
function show<Schema extends z.ZodType>(path: string, summary: string, answer: JsonAnswer<Schema>, read: Read<Schema>): DocumentedRoute {
  return open(path, summary, { 200: answer }, async (request) => ({ status: 200, body: await read(request) }));
}

function livenessRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  const { manage, settings, board, accessIsReady = () => true } = deps;
  return [
    health(
      '/api/health/system',
      'Liveness for monitoring: 503 if the reconcile loop has not finished a pass for too long',
      { 200: json('The loop finishes its passes', Healthy), 503: json('The loop has not finished a pass for too long', Failing) },
      () => {
        const ageMs = manage.lastPassAgeMs();
        const alive = ageMs <= Math.max(LEAST_STALE_MS, MISSED_RESYNCS * settings.SVC_RESYNC);
        const age = Math.round(ageMs / 1000);
        const facts = { version: manage.version, uptime_seconds: uptimeSeconds(deps), last_pass_age_seconds: age };
        if (alive) return { status: 200, body: { status: 'ok', ...facts } };
        const message = `The reconcile loop has not finished a pass for ${age} s: read the log and restart the service`;
        return { status: 503, body: { status: 'failing', ...facts, ...errorBody('server.stalled', message) } };
      },
    ),
    health(
      '/api/health/ready',
      'Readiness for load balancers: 503 until the first pass has found the slots and, with authentication, the tokens were read',
      { 200: json('The slots and tokens are known', Ready), 503: json('The first pass has not finished', Starting) },
      () => {
        const isKnown = board.current().version > 0;
        if (isKnown && accessIsReady()) return { status: 200, body: { status: 'ok' } };
        const message = isKnown
          ? 'The tokens have not been read yet: try again in a moment, or read the log'
          : 'The service has just started: try again in a moment';
        return { status: 503, body: { status: 'starting', ...errorBody('server.starting', message) } };
      },
    ),
  ];
}

const StatusQuery = z.object({
  since: z.string().max(100).optional().describe('"slots_version" of an earlier answer: "slots" then has only the lines that have changed'),
});

/** Thousands of lines take some 20 ms otherwise. */
function rememberLines(): LineOf {
  const lines = new WeakMap<Parameters<LineOf>[0], { readonly of: Parameters<LineOf>[1]; readonly line: Line }>();
  return (slot, of) => {
    const known = lines.get(slot);
    if (known !== undefined && isSameValue(known.of, of)) return known.line;
    const line = slotLine(slot, of);
    lines.set(slot, { of, line });
    return line;
  };
}

function stateRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  const { manage, settings, board, traffic, metrics } = deps;
  const ofMachine = settings.SVC_HARDWARE_FILE === undefined ? ('machine' as const) : ('recording' as const);
  const lineOf = rememberLines();
  const changes = createChangeList<Line>(randomUUID().slice(0, 8), isSameValue);
  return [
    defineRoute('GET', '/api/status', 'open', {
      tag: 'system',
      summary: 'Version and one line per slot; never waits for a load',
      input: z.object({ query: StatusQuery }),
      answers: { 200: json('Version, runtime and one line per slot', Status) },
      handler({ query: { since } }) {
        const lines = viewStatus(board.current(), (slot) => ({ ...traffic(slot), totals: metrics.totalsOf(slot) }), lineOf);
        const { items, version, removed } = changes(new Map(lines.map((line) => [line.name, line])), since);
        const body = {
          version: manage.version,
          runtime: manage.runtime,
          auth_enabled: settings.SVC_AUTH_ENABLED,
          uptime_seconds: uptimeSeconds(deps),
          captures: deps.captures?.active() ?? 0,
          limits: deps.limits(),
          hardware_source: manage.runtime === 'kube' ? ('none' as const) : ofMachine,
          slots: items,
          slots_version: version,
          slots_removed: removed,
        };
        return { status: 200, body };
      },
    }),
    open(
      '/api/metrics',
      'Metrics in Prometheus’ text format',
      {
        200: {
          ...text('Metrics in Prometheus’ text format, or in OpenMetrics, with exemplars', CONTENT_TYPES.prometheus),
          otherTypes: [CONTENT_TYPES.openmetrics],
        },
      },
      async ({ headers }) => {
        const format = metrics.formatFor(headers.accept);
        return { status: 200, body: await metrics.text(format), headers: { 'content-type': CONTENT_TYPES[format] } };
      },
    ),
  ];
}

const uptimeSeconds = ({ now, manage }: ManageDeps): number => Math.max(0, Math.round((now() - manage.startedAt) / 1000));

function discoveryRoutes({ settings, features, isProxy }: ManageDeps): readonly DocumentedRoute[] {
  return [
    show('/api/features', 'Features that this build and host support', json('Features by name', Features), () => ({
      features: features(),
    })),
    show('/api/config/urls', 'Addresses of the API and its companions, as seen by the caller', json('Addresses', PublicUrls), (request) => {
      const urls = publicUrls({
        publicUrl: settings.SVC_PUBLIC_URL,
        chatUrl: settings.SVC_CHAT_URL,
        hostHeader: request.headers.host,
        secure: isProxy(request.socket.remoteAddress) && request.headers['x-forwarded-proto'] === 'https',
        authEnabled: settings.SVC_AUTH_ENABLED,
      });
      if (urls === undefined) throw new ApiError('request.invalid', '"Host" is invalid: send a host name or an address', { param: 'Host' });
      return urls;
    }),
  ];
}

function installRoutes({ manage }: ManageDeps): readonly DocumentedRoute[] {
  const answer = json('The state of the installation', InstallState);
  const complete = show('/api/install/complete', 'Marks the installation as complete', answer, async () => {
    await manage.completeInstall();
    return await manage.installState();
  });
  const summary = 'Whether the installation is complete, and the remaining steps';
  return [show('/api/install/state', summary, answer, () => manage.installState()), { ...complete, method: 'POST' }];
}

function authRoutes({ settings }: ManageDeps): readonly DocumentedRoute[] {
  const enabled = settings.SVC_AUTH_ENABLED;
  const summary = 'Accepted kinds of credentials, and the scope of the one that was sent; reveals none';
  const status = defineRoute('GET', '/api/auth/status', 'open', {
    tag: 'auth',
    summary,
    knowsCaller: true,
    input: NoInput,
    answers: { 200: json('State of authentication', AuthStatus) },
    handler: (_, { caller }) => {
      const mode = enabled ? ('basic' as const) : ('off' as const);
      return { status: 200, body: { auth_enabled: enabled, mode, methods: enabled ? METHODS : [], scope: caller?.scope ?? null } };
    },
  });
  const message = enabled
    ? 'Log in at the reverse proxy, which asks for name and password; programs send a bearer token'
    : 'No login is needed: authentication is off';
  const where = 'Tells where to log in; the reverse proxy asks for name and password';
  const login = show('/api/auth/login', where, json('Where to log in', Login), () => ({ auth_enabled: enabled, message }));
  return [status, { ...login, tag: 'auth', method: 'POST', input: LoginInput }];
}

/** Read-only lists: models, downloads, providers, hardware. */

export function createInventoryRoutes({ manage, board }: ManageDeps): readonly DocumentedRoute[] {
  return [
    list('/api/models', 'Models of the catalogue and of the store', Models, async () =>
      answerOf(Models, { models: await manage.models() }),
    ),
    list('/api/pulls', 'Downloads in progress', Pulls, () => viewPulls(board.current(), manage.pulls())),
    list('/api/providers', 'Providers, and whether this host can run them', Providers, async () =>
      answerOf(Providers, { providers: await manage.providers() }),
    ),
    list('/api/hardware', 'CPU, memory, GPUs and NPUs of the host', Hardware, async () => viewHardware(await manage.hardware())),
    clusterRoute(manage),
  ];
}

const ClusterQuery = z.strictObject({
  slot: SlotName.optional().describe('Only pods of this slot'),
  limit: z.coerce.number().int().min(1).max(1000).default(100).describe('Number of pods at most'),
});

function clusterRoute(manage: ManageDeps['manage']): DocumentedRoute {
  return defineRoute('GET', '/api/cluster', 'read', {
    tag: 'inventory',
    summary: 'In a cluster: which replica of the gateway leads, and the pods of the slots',
    input: z.object({ query: ClusterQuery }),
    answers: { 200: json('The leader and the pods; without both outside of a cluster', Cluster) },
    handler: ({ query }) => ({ status: 200, body: viewCluster(manage.cluster(), query) }),
  });
}

function list<Schema extends z.ZodType>(path: string, summary: string, schema: Schema, read: Read<Schema>): DocumentedRoute {
  return { ...show(path, summary, json(summary, schema), read), tag: 'inventory', access: 'read', bodyLimit: defaultBodyLimit('read') };
}
