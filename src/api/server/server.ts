/** The HTTP server: the route table with one access check and one shape of errors. `listen` starts it. */
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerFactoryHandler } from 'fastify';
import type { ReportRequest } from '../../gateway/exchange-deps.ts';
import { dialectOf, nearestPath } from '../../gateway/route/decide/inference-paths.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { BodyLimit } from '../../gateway/route/decide/request-limits.ts';
import { isJsonType, parseRequestHead } from '../../gateway/upstream/decide/request-head.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import { jsonExcess } from '../../schema/words/json-skipper.ts';
import { bodyOver, readForm, readWhole, type Form } from './framework-body.ts';
import { createAllowedMethods, createErrorHandler, sendError, type OnFault } from './error-handler.ts';
import { ApiError } from './answer.ts';
import type { Authorize } from '../../auth/check-token.ts';
import type { Caller } from '../../auth/decide/decide-access.ts';
import type { ActAs } from '../manage/audit-trail.ts';
import { corsHeaders, preflightHeaders } from './decide/decide-site.ts';
import { createHotPath, isRawRoute, type BypassDeps, type HotPath } from './hot-path.ts';
import { BACKLOG } from './connections.ts';
import { createHttpServer, type Accelerator, type HttpLimits } from './http-server.ts';
import { CURL_DEFAULT_TYPE, defaultBodyLimit, newRequestId, type Route } from './define-route.ts';
import type { SiteGuard } from './site-guard.ts';
import { createUpgradePath } from './upgrade-path.ts';

export interface ServerDeps {
  readonly routes: readonly Route[];
  readonly settings: HttpLimits & Pick<Settings, BodyLimit['setting']>;
  readonly gateway: Pick<Gateway, 'budget' | 'close'>;
  readonly site: SiteGuard;
  readonly authorize: Authorize;
  /** Runs the handler of a route in the name of its caller, for the audit trail. Default: nothing is recorded. */
  readonly actAs?: ActAs;
  readonly report?: ReportRequest;
  readonly onFault?: OnFault;
  readonly startTrace?: BypassDeps['startTrace'];
  /** Number of connections of other processes that count as well. Default: none. */
  readonly connectionsElsewhere?: () => number;
  readonly accelerator?: Accelerator;
}

export type HttpApi = ReturnType<typeof buildServer>;

const workAlone: ActAs = (_request, work) => work();

const noSchemas = (): never => {
  throw new Error('Validate input with zod in the handler: routes have no Fastify schemas');
};

/** A model id has at most 200 characters; percent-encoded ones are longer. */
const MAX_PARAM_LENGTH = 1024;

export function buildServer(deps: ServerDeps) {
  const { routes, settings, gateway, site, authorize, report = () => undefined, onFault = () => undefined } = deps;
  const hotPath = createHotPath({ routes, site, authorize, report, onFault, startTrace: deps.startTrace });
  let framework: FastifyServerFactoryHandler | undefined;
  const { server, connections, door } = createHttpServer(settings, {
    listener(req, res) {
      if (hotPath.tryHandle(req, res)) return;
      // The client may hold its body back for good, and its next request must not be read as one.
      if (req.headers.expect !== undefined) res.shouldKeepAlive = false;
      framework?.(req, res);
    },
    fastListener: hotPath.tryHandle,
    serves: hotPath.serves,
    upgrades: createUpgradePath({ routes, site, authorize, report, onFault }),
    connectionsElsewhere: deps.connectionsElsewhere,
    accelerator: deps.accelerator,
  });
  const app: FastifyInstance = fastify({
    serverFactory(handler) {
      framework = handler;
      return server;
    },
    // The client's own id if it is well-formed.
    genReqId: (req) => parseRequestHead(req.rawHeaders).requestId ?? newRequestId(),
    // The server answers broken requests itself; the framework would write a second answer.
    clientErrorHandler: () => undefined,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: (error, request, reply) => void createErrorHandler(onFault)(error, request, reply),
    logger: false,
    // Handlers validate with zod, so Fastify's own compilers would only cost memory and start-up time.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
  });
  app.decorateRequest('caller', undefined);
  app.decorateRequest('wholeBody', undefined);
  app.decorateRequest('readWhole', () => Promise.reject(new Error('Check the access before the body is read')));
  app.setErrorHandler(createErrorHandler(onFault));
  acceptBodies(app, routes);
  addHooks(app, deps, report);
  for (const route of routes) addRoute(app, route, hotPath, deps);

  return {
    app,
    server,
    /** Returns the port. */
    async listen(address: { readonly host: string; readonly port: number; readonly reusePort?: boolean }): Promise<number> {
      await app.listen({ ...address, backlog: BACKLOG });
      const found = server.address();
      const bound = typeof found === 'object' && found !== null ? { host: found.address, port: found.port } : address;
      if (address.reusePort === true) await door.openMore({ host: bound.host, port: bound.port });
      return bound.port;
    },
    stopListening: door.stop,
    listenAgain: door.open,
    /** Ends keep-alive: from now on clients must connect again for their next request, and so reach another replica. */
    leave: door.leave,
    /**
     * Stops accepting connections, waits up to `graceMs` for requests in flight, then ends them. Refuses parked
     * requests after `parkedMs` (default: at once). Until `others` resolves, processes may pass connections on.
     */
    async close(graceMs: number, parkedMs = 0, others?: Promise<void>): Promise<void> {
      door.stop();
      await connections.drain(graceMs, Promise.all([gateway.close(graceMs, parkedMs, others), others]));
      await app.close();
    },
  };
}

function acceptBodies(app: FastifyInstance, routes: readonly Route[]): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(/^application\/(?:[\w.+-]+\+)?json$/i, parseJson(app));
  const others = new Set(routes.flatMap((route) => route.consumes ?? []).filter((type) => !isJsonType(type)));
  for (const type of others)
    app.addContentTypeParser(
      type,
      type === CURL_DEFAULT_TYPE ? parseJson(app) : async (request: FastifyRequest) => String(await request.readWhole()),
    );
  app.addContentTypeParser('multipart/form-data', parseForm);
}

/** An empty body counts as missing, because clients send "application/json" with a bare DELETE. */
function parseJson(app: FastifyInstance): (request: FastifyRequest) => Promise<unknown> {
  const parse = app.getDefaultJsonParser('error', 'ignore');
  return async (request) => {
    const json = (await request.readWhole()).toString('utf8');
    if (json === '') return undefined;
    const excess = jsonExcess(json);
    if (excess !== undefined) throw new ApiError('request.invalid', excess);
    return await new Promise((resolve, reject) => {
      void parse(request, json, (error, value) => (error === null ? resolve(value) : reject(error)));
    });
  };
}

async function parseForm(request: FastifyRequest): Promise<Form | undefined> {
  const body = await request.readWhole();
  if (body.length === 0) return undefined;
  const form = readForm(body, request.headers['content-type'] ?? '');
  if (form.ok) return form.fields;
  throw new ApiError('request.invalid', form.message, { param: form.param });
}

function addHooks(app: FastifyInstance, { routes, site }: ServerDeps, report: ReportRequest): void {
  const allowedMethods = createAllowedMethods(routes);
  const paths = routes.map(({ path }) => path).filter((path) => !/[:*]|^\/$/.test(path));
  const corsMethods = createAllowedMethods(routes.filter((route) => route.cors));
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    if (request.headers.host === undefined && request.raw.httpVersionMinor === 1) {
      done(new ApiError('request.invalid', 'Exactly one "Host" header is required', { param: 'Host' }));
    } else if (request.is404) {
      // Answered before the unwanted body is read.
      const methods = allowedMethods(request.url);
      if (request.method === 'OPTIONS' && methods.length > 0)
        answerOptions(request, reply, { methods, cors: corsMethods(request.url), site });
      else answerNotFound(request, reply, methods, paths);
    } else done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none';
    const seconds = reply.elapsedTime / 1000;
    if (reply.sent && !request.routeOptions.config.raw) report({ slot: undefined, route, status: reply.statusCode, seconds });
    done();
  });
}

function answerNotFound(request: FastifyRequest, reply: FastifyReply, methods: readonly string[], paths: readonly string[]): void {
  const { method, url } = request;
  const allow = methods.join(', ');
  if (method === 'OPTIONS' && url === '*') void reply.code(204).header('allow', allow).send();
  else if (methods.length === 0) {
    const [path = ''] = url.split('?', 1);
    const near = nearestPath(path, paths);
    const base = near === `/v1${path}` ? ': end the base URL with "/v1"' : '';
    const hint = near === undefined ? '' : ` did you mean "${near}"${base}?`;
    const message = `There is no path "${url.slice(0, 200)}":${hint} "/api/openapi.json" lists all`;
    sendError(reply, { code: 'route.not_found', message }, message, dialectOf(path));
  } else
    sendError(reply, { code: 'route.method', message: `The method "${method}" is not allowed: use one of ${allow}`, headers: { allow } });
}

interface OptionsFacts {
  readonly methods: readonly string[];
  /** The methods that pages of other origins may use. */
  readonly cors: readonly string[];
  readonly site: SiteGuard;
}

const FOR_PAGES = { tag: 'inference', access: 'v1', cors: true } as const;
const FOR_MANAGEMENT = { tag: 'system', access: 'admin' } as const;

/** Lists the methods of a path. A preflight is answered only for an origin that may use the path. */
function answerOptions(request: FastifyRequest, reply: FastifyReply, { methods, cors, site }: OptionsFacts): void {
  const route = cors.length > 0 ? FOR_PAGES : FOR_MANAGEMENT;
  const from = site.check(request.raw, parseRequestHead(request.raw.rawHeaders), route);
  if (from.kind === 'refuse') return sendError(reply, from);
  void reply.code(204).header('allow', methods.join(', '));
  if (from.kind === 'cors') void reply.headers(preflightHeaders(from.origin, cors, request.headers['access-control-request-headers']));
  void reply.send();
}

function addRoute(
  app: FastifyInstance,
  route: Route,
  hotPath: HotPath,
  { settings, site, authorize, gateway, actAs = workAlone }: ServerDeps,
): void {
  const { bodyLimit = defaultBodyLimit(route.access) } = route;
  const limitBytes = typeof bodyLimit === 'number' ? bodyLimit : settings[bodyLimit];
  app.route({
    method: route.method,
    url: route.path,
    config: { raw: isRawRoute(route) },
    onRequest: async (request, reply) => {
      if (isRawRoute(route)) {
        reply.hijack();
        return hotPath.enter(route, request.raw, reply.raw);
      }
      const from = site.check(request.raw, parseRequestHead(request.raw.rawHeaders), route);
      if (from.kind === 'refuse') throw new ApiError(from.code, from.message, { param: from.param });
      if (from.kind === 'cors') void reply.headers(corsHeaders(from.origin));
      // The answer to another origin would be a different one.
      else if (route.cors && site.allowsOrigins) void reply.header('vary', 'Origin');
      const known = route.knowsCaller === true ? await authorize('any', request.raw) : undefined;
      const decision = known?.ok === true ? known : await authorize(route.access, request.raw);
      if (!decision.ok) throw new ApiError(decision.code, decision.message);
      request.caller = decision.caller;
      if (Number(request.headers['content-length'] ?? 0) > limitBytes) throw bodyOver(limitBytes);
      refuseOtherTypes(route, request);
      request.readWhole = async () => {
        const bytes = await readWhole({ req: request.raw, res: reply.raw }, limitBytes, gateway.budget);
        if (route.keepsBytes === true) request.wholeBody = bytes;
        return bytes;
      };
    },
    handler: (request, reply) => actAs(request, () => route.handler(request, reply)),
  });
}

function refuseOtherTypes(route: Route, request: FastifyRequest): void {
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = request.headers;
  if (encoding.toLowerCase() !== 'identity')
    throw new ApiError('request.media_type', 'Compressed bodies are not supported: send the body without a content encoding', {
      param: 'Content-Encoding',
    });
  if (type === undefined || request.method === 'GET' || request.method === 'HEAD') return;
  const bare = type.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const types = route.multipart === true ? ['multipart/form-data'] : ['application/json', ...(route.consumes ?? [])];
  if ((route.multipart !== true && isJsonType(type)) || types.includes(bare)) return;
  const accepted = types.map((name) => `"${name}"`).join(' or ');
  throw new ApiError('request.media_type', `Unsupported media type: send the body as ${accepted}`, { param: 'Content-Type' });
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the access check. */
    caller: Caller | undefined;
    /** Set by the access check. The body, which is read once, within the limits of the route. */
    readWhole(): Promise<Buffer>;
    /** Only on routes with `keepsBytes`. */
    wholeBody: Buffer | undefined;
  }
  interface FastifyContextConfig {
    /** The route bypasses the framework and reports its own metrics. */
    readonly raw?: boolean;
  }
}
