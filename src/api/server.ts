/** The HTTP side of the service as a whole: the route table on one server, with one access check and one shape of errors. Never listens by itself. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import {
  fastify,
  type FastifyBodyParser,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerFactoryHandler,
} from 'fastify';
import { isJsonType } from '../gateway/decide/request-head.ts';
import { createAllowedMethods } from './allowed-methods.ts';
import { ApiError } from './api-error.ts';
import { allowAll, type Authorize } from './authorize.ts';
import { createErrorHandler, sendError, type OnFault } from './error-handler.ts';
import { createHotPath, isRawRoute, type HotPath } from './hot-path.ts';
import { createHttpServer, type HttpLimits } from './http-server.ts';
import { NO_METRICS, type RequestMetrics } from './metrics-port.ts';
import { requestIdOf } from './request-id.ts';
import type { Route } from './route.ts';

export interface ServerDeps {
  readonly routes: readonly Route[];
  readonly settings: HttpLimits & { readonly SVC_BODY_LIMIT: number };
  /** Ends the requests that are in the gateway's hands. */
  readonly gateway: { close(graceMs: number, parkedMs: number): Promise<void> };
  readonly authorize?: Authorize;
  readonly metrics?: RequestMetrics;
  /** A fault of our own, for the log. */
  readonly onFault?: OnFault;
}

export interface HttpApi {
  readonly app: FastifyInstance;
  readonly server: Server;
  /** Resolves with the port that was taken. */
  listen(address: { readonly host: string; readonly port: number }): Promise<number>;
  /** From now on each answer asks its client to connect anew: it will reach another replica. */
  leave(): void;
  /** Stops accepting, lets what is in flight end for at most `graceMs`, then ends it; what waits for its slot is refused after `parkedMs` (default: at once). */
  close(graceMs: number, parkedMs?: number): Promise<void>;
}

const noSchemas = (): never => {
  throw new Error('Check input with zod in the handler: routes have no Fastify schemas');
};

/** A model id has at most 200 characters; percent-encoded ones are longer. */
const MAX_PARAM_LENGTH = 1024;
const IDLE_CHECK_MS = 50;

export function buildServer(deps: ServerDeps): HttpApi {
  const { routes, settings, gateway, authorize = allowAll, metrics = NO_METRICS, onFault = () => undefined } = deps;
  const hotPath = createHotPath({ routes, authorize, metrics, onFault });
  let frame: FastifyServerFactoryHandler | undefined;
  let leaving = false;
  const { server, closeIdle } = createHttpServer(settings, (req, res) => {
    if (leaving) res.shouldKeepAlive = false;
    if (!hotPath.tryHandle(req, res) && frame !== undefined) enterFramework(req, res, frame);
  });
  const app = fastify({
    serverFactory(handler) {
      frame = handler;
      return server;
    },
    genReqId: requestIdOf,
    bodyLimit: settings.SVC_BODY_LIMIT,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: (error, request, reply) => void createErrorHandler(onFault)(error, request, reply),
    logger: false,
    // Routes check their input with zod; Fastify's own compilers would cost memory and start-up time for nothing.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
  });
  app.setErrorHandler(createErrorHandler(onFault));
  acceptBodies(app, routes);
  addHooks(app, routes, metrics);
  for (const route of routes) addRoute(app, route, hotPath, authorize);

  return {
    app,
    server,
    async listen(address) {
      await app.listen(address);
      const bound = server.address();
      return typeof bound === 'object' && bound !== null ? bound.port : address.port;
    },
    leave() {
      leaving = true;
    },
    async close(graceMs, parkedMs = 0) {
      leaving = true;
      const closed = server.listening ? closeListener(server) : Promise.resolve();
      // Also those that become idle while we wait.
      const idle = setInterval(closeIdle, IDLE_CHECK_MS);
      const cut = setTimeout(() => server.closeAllConnections(), graceMs);
      await gateway.close(graceMs, parkedMs);
      await closed;
      clearInterval(idle);
      clearTimeout(cut);
      await app.close();
    },
  };
}

/** Resolves when the last connection is gone. HTTP's own method would cut those that are idle at this moment. */
async function closeListener(server: Server): Promise<void> {
  await new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
}

function enterFramework(req: IncomingMessage, res: ServerResponse, handler: (req: IncomingMessage, res: ServerResponse) => void): void {
  if (req.headers.expect !== undefined) res.writeContinue();
  const hasBody = req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
  // A body without a type is taken for what everything here speaks.
  if (hasBody && req.headers['content-type'] === undefined) req.headers['content-type'] = 'application/json';
  handler(req, res);
}

function acceptBodies(app: FastifyInstance, routes: readonly Route[]): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(/^application\/(?:[\w.+-]+\+)?json$/i, { parseAs: 'string' }, parseJson(app));
  const others = new Set(routes.flatMap((route) => route.consumes ?? []).filter((type) => !isJsonType(type)));
  for (const type of others) {
    app.addContentTypeParser(type, { parseAs: 'string' }, (_request, body, done) => done(null, body));
  }
}

/** No body is none, whatever its type is said to be: clients send "application/json" with a bare DELETE. */
function parseJson(app: FastifyInstance): FastifyBodyParser<string> {
  const parse = app.getDefaultJsonParser('error', 'ignore');
  return (request, body, done) => {
    if (body === '') done(null, undefined);
    else void parse(request, body, done);
  };
}

function addHooks(app: FastifyInstance, routes: readonly Route[], metrics: RequestMetrics): void {
  const allowedMethods = createAllowedMethods(routes);
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    if (request.headers.host === undefined && request.raw.httpVersionMinor === 1) {
      done(new ApiError('request.invalid', 'Send one "Host" header', { param: 'Host' }));
    } else if (request.is404) {
      // Before a body is read that nobody wants.
      answerNotFound(request, reply, allowedMethods(request.url));
    } else done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none';
    const seconds = reply.elapsedTime / 1000;
    if (reply.sent && !request.routeOptions.config.raw) {
      metrics.requestFinished({ slot: undefined, route, method: request.method, status: reply.statusCode, seconds });
    }
    done();
  });
}

function answerNotFound(request: FastifyRequest, reply: FastifyReply, methods: readonly string[]): void {
  const { method, url } = request;
  const allow = methods.join(', ');
  if (method === 'OPTIONS' && (methods.length > 0 || url === '*')) void reply.code(204).header('allow', allow).send();
  else if (methods.length === 0) {
    sendError(reply, 'route.not_found', `Use a known path: "${url.slice(0, 200)}" is none; "/api/openapi.json" lists them`, null);
  } else sendError(reply, 'route.method', `Use one of ${allow} instead of "${method}"`, null, { allow });
}

function addRoute(app: FastifyInstance, route: Route, hotPath: HotPath, authorize: Authorize): void {
  const config = { raw: isRawRoute(route) };
  if (isRawRoute(route)) {
    app.route({
      method: route.method,
      url: route.path,
      config,
      onRequest: (request, reply) => {
        reply.hijack();
        hotPath.enter(route, request.raw, reply.raw);
      },
      handler: (request, reply) => route.handler(request, reply),
    });
    return;
  }
  app.route({
    method: route.method,
    url: route.path,
    config,
    onRequest: async (request) => {
      const decision = await authorize(route.access, request.raw);
      if (!decision.ok) throw new ApiError(decision.code, decision.message);
      refuseOtherTypes(route, request);
    },
    handler: (request, reply) => route.handler(request, reply),
  });
}

function refuseOtherTypes(route: Route, request: FastifyRequest): void {
  const type = request.headers['content-type'];
  if (type === undefined || request.method === 'GET' || request.method === 'HEAD') return;
  const bare = type.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (isJsonType(type) || route.consumes?.includes(bare) === true) return;
  const takes = ['application/json', ...(route.consumes ?? [])].map((name) => `"${name}"`).join(' or ');
  throw new ApiError('request.media_type', `Send the body as ${takes}`, { param: 'Content-Type' });
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route is served past the framework and counts itself. */
    readonly raw?: boolean;
  }
}
