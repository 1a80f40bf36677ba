/**
 * Serves raw routes without Fastify, whose routing, hooks and reply cost more than the gateway's work. `server.ts`
 * calls `tryHandle` first; encoded paths, which only Fastify's router recognises, come back through `enter`.
 */
import { answerError } from '../../gateway/client-answer.ts';
import type { ClientRequest, ClientResponse } from '../../gateway/client-exchange.ts';
import type { ReportRequest } from '../../gateway/exchange-deps.ts';
import type { StartTrace } from '../../gateway/trace/request-trace.ts';
import { errorAnswer } from '../../gateway/route/decide/dialects.ts';
import { dialectOf, type InferencePath } from '../../gateway/route/decide/inference-paths.ts';
import { bodySettingOf } from '../../gateway/route/decide/request-limits.ts';
import { isMultipartType } from '../../gateway/body/decide/multipart-head.ts';
import { isJsonType, parseRequestHead, type RequestHead } from '../../gateway/upstream/decide/request-head.ts';
import { ERROR_CODES, type ErrorCode } from '../../schema/words/error-codes.ts';
import type { Authorize } from '../../auth/check-token.ts';
import type { AccessDecision } from '../../auth/decide/decide-access.ts';
import type { OnFault } from './error-handler.ts';
import { newRequestId, type RawRequest, type Route } from './define-route.ts';
import { corsHeaders } from './decide/decide-site.ts';
import type { SiteGuard } from './site-guard.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { ApiError } from './answer.ts';

export type HotPath = ReturnType<typeof createHotPath>;

type RawRoute = Route & Required<Pick<Route, 'raw'>>;

/** Dependencies of routes that bypass the framework, and so check site and access themselves. */
export interface BypassDeps {
  readonly routes: readonly Route[];
  readonly site: SiteGuard;
  readonly authorize: Authorize;
  readonly report: ReportRequest;
  readonly onFault: OnFault;
  /** Default: requests are not traced. */
  readonly startTrace?: StartTrace | undefined;
}

export const isRawRoute = (route: Route): route is RawRoute => route.raw !== undefined;

export function createHotPath({ routes, site, authorize, report, onFault, startTrace }: BypassDeps) {
  const known = new Map(routes.filter(isRawRoute).flatMap((route) => (route.method === 'POST' ? [[route.path, route] as const] : [])));

  /** Parsed heads of connections that repeat them. */
  const heads = new WeakMap<object, RequestHead>();

  function headOf({ rawHeaders, headers, sameHead }: ClientRequest): RequestHead {
    const parsed = sameHead && heads.get(sameHead);
    if (parsed !== undefined) {
      const contentLength = Number(headers['content-length']);
      return parsed.contentLength === contentLength ? parsed : { ...parsed, contentLength };
    }
    const head = parseRequestHead(rawHeaders);
    if (sameHead !== undefined) heads.set(sameHead, head);
    return head;
  }

  function refuse(entry: Entry, code: ErrorCode, message: string, param: string | null = null): void {
    const { route, req, res, requestId, trace } = entry;
    const { status } = ERROR_CODES[code];
    report({ slot: undefined, route: route.path, status, seconds: 0, trace: trace?.finish(req.method) });
    answerError(req, res, errorAnswer(code, message, { param, requestId, dialect: dialectOf(route.path) }));
  }

  function proceed(entry: Entry, decision: AccessDecision): void {
    if (!decision.ok) refuse(entry, decision.code, decision.message);
    else if (!acceptsType(entry)) {
      const type = entry.route.multipart === true ? 'multipart/form-data' : 'application/json';
      refuse(entry, 'request.media_type', `Unsupported media type: send the body as "${type}"`, 'Content-Type');
    } else {
      entry.caller = decision.caller;
      entry.trace?.end();
      entry.route.raw(entry);
    }
  }

  function fault(entry: Entry, error: unknown): void {
    if (error instanceof ApiError) return refuse(entry, error.code, error.message, error.param);
    onFault(error, entry.requestId);
    refuse(entry, 'server.internal', `The gateway failed: report this with the request id "${entry.requestId}"`);
  }

  /** Serves a raw route that Fastify's router has found. */
  function enter(route: RawRoute, req: ClientRequest, res: ClientResponse): void {
    const head = headOf(req);
    const trace = startTrace?.(head);
    const entry: Entry = { route, req, res, head, requestId: head.requestId ?? newRequestId(), caller: undefined, trace };
    trace?.begin('auth');
    const from = site.check(req, head, route);
    if (from.kind === 'refuse') return refuse(entry, from.code, from.message, from.param);
    if (from.kind === 'cors') for (const [name, value] of Object.entries(corsHeaders(from.origin))) res.setHeader(name, value);
    try {
      const decision = authorize(route.access, req);
      if (!(decision instanceof Promise)) return proceed(entry, decision);
      decision.then((late) => (res.destroyed ? undefined : proceed(entry, late))).catch((error: unknown) => fault(entry, error));
    } catch (error) {
      fault(entry, error);
    }
  }

  return {
    serves: (path: string) => known.has(path),
    /** Returns false, and leaves the request untouched, if the path is not a raw route. */
    tryHandle(req: ClientRequest, res: ClientResponse) {
      if (req.method !== 'POST') return false;
      const url = req.url ?? '';
      const query = url.indexOf('?');
      const route = known.get(query === -1 ? url : url.slice(0, query));
      if (route === undefined) return false;
      enter(route, req, res);
      return true;
    },
    enter,
  };
}

/** A body without a media type is refused: pages of other sites can send one without asking. */
function acceptsType({ route, head: { contentType, contentLength = 0, chunked } }: Entry): boolean {
  if (route.anyType === true) return true;
  if (route.multipart === true) return isMultipartType(contentType);
  return isJsonType(contentType) && !(contentType === undefined && (chunked || contentLength > 0));
}

interface Entry extends Omit<RawRequest, 'caller'> {
  readonly route: RawRoute;
  /** Set by the access check. */
  caller: RawRequest['caller'];
}

/** The route of an inference path as requests use it: what its documentation adds is in `v1-routes.ts`. */
export function rawInferenceRoute(path: InferencePath, gateway: Pick<Gateway, 'handle'>) {
  return {
    method: 'POST',
    path: path.path,
    access: 'v1',
    cors: true,
    bodyLimit: bodySettingOf(path),
    summary: path.summary,
    tag: 'inference',
    ...(path.body === 'multipart' ? { multipart: true } : {}),
    raw: ({ req, res, head, requestId, caller, trace }) => gateway.handle({ req, res, path, head, requestId, caller, trace }),
    handler: () => {
      throw new ApiError('server.internal', 'This route bypasses the framework');
    },
  } as const satisfies Route;
}
