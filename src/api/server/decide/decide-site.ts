/**
 * Decides whether a web page of another site may have sent a request. Without authentication, everyone on the network
 * may use the service, but not the pages that they open in a browser. Three headers tell: `Host` after DNS rebinding,
 * `Origin` for scripts and forms, and `Sec-Fetch-Site` for everything else. Programs send neither `Origin` nor
 * `Sec-Fetch-*`.
 */
import type { RequestHead } from '../../../gateway/upstream/decide/request-head.ts';
import type { Access } from '../../../schema/words/access.ts';
import { isKnownHost, parseAuthority, type HostNames } from './host-names.ts';

export interface SitePolicy {
  readonly hosts: HostNames;
  /** Origin of `SVC_PUBLIC_URL`: pages of the service itself, even if a proxy rewrites `Host`. */
  readonly publicOrigin: string | undefined;
  /** `SVC_CORS_ORIGINS`: origins whose pages may use the routes under `/v1`. */
  readonly corsOrigins: ReadonlySet<string>;
}

type HeadFacts = Pick<RequestHead, 'host' | 'hosts' | 'origin' | 'fetchSite' | 'fetchMode' | 'fetchDest' | 'isProgram'>;

export interface SiteRequest extends HeadFacts {
  readonly method: string;
  /** Protocol version 1.0: `Host` is optional. No browser uses it. */
  readonly isHttp10: boolean;
  /** The authority in an absolute request target (`GET http://host/path`). */
  readonly target: string | undefined;
}

export type SiteDecision =
  /** Not a page, or a page of the service itself. */
  | { readonly kind: 'own' }
  /** A page of an origin in `SVC_CORS_ORIGINS`, on a route that it may use. */
  | { readonly kind: 'cors'; readonly origin: string }
  | Refusal;

interface Refusal {
  readonly kind: 'refuse';
  readonly code: 'request.cross_site' | 'request.invalid' | 'route.not_found';
  readonly message: string;
  readonly param: string;
}

export const OWN: SiteDecision = { kind: 'own' };

/** What decides on which ports a route answers. */
export interface PortFacts {
  readonly tag: string;
  readonly access: Access;
  readonly anySite?: true;
}

const MODEL_TAGS: ReadonlySet<string> = new Set(['inference', 'models']);

/**
 * Whether a route answers on the port for models, where management has a port of its own (`SVC_MANAGEMENT_LISTEN`):
 * what clients of models use without administrating anything, and probes. The management port answers every route. A
 * route whose tag is not listed is for management only. Pure.
 */
export const isForModelPort = ({ anySite, tag, access }: PortFacts): boolean =>
  anySite === true || (MODEL_TAGS.has(tag) && access !== 'admin');

/** A route for management, on the port for models. */
export const MANAGEMENT_ONLY: Refusal = {
  kind: 'refuse',
  code: 'route.not_found',
  param: 'path',
  message: 'This port serves models only: send the request to the management port ("SVC_MANAGEMENT_LISTEN")',
};

const SHOWN = 120;
/** `none`: actions of the user. `same-site` is not among them: it includes other ports of the same machine. */
const OWN_SITES: ReadonlySet<string> = new Set(['none', 'same-origin']);

/** `cors`: pages of the origins in `SVC_CORS_ORIGINS` may use the route. Pure. */
export function decideSite(request: SiteRequest, policy: SitePolicy, cors: boolean): SiteDecision {
  const badHost = checkHost(request, policy);
  if (badHost !== undefined) return badHost;
  const { origin } = request;
  if (origin !== undefined && !isOwnOrigin(origin, request, policy)) {
    if (cors && policy.corsOrigins.has(origin)) return { kind: 'cors', origin };
    return crossSite('Origin', originMessage(origin, cors));
  }
  const { fetchSite } = request;
  if (fetchSite === undefined || OWN_SITES.has(fetchSite) || isLinkFollowed(request)) return OWN;
  return crossSite('Sec-Fetch-Site', 'Pages of other sites may not use this address: open it directly, or use a program');
}

function checkHost(request: SiteRequest, { hosts }: SitePolicy): Refusal | undefined {
  const { host = request.target, target, isHttp10, isProgram } = request;
  if (request.hosts > 1 || (request.hosts === 0 && !isHttp10)) return invalid('Exactly one "Host" header is required');
  if (host === undefined) return undefined;
  if (target !== undefined && target.toLowerCase() !== host.toLowerCase())
    return invalid('"Host" differs from the request target: send the same name in both');
  const authority = parseAuthority(host);
  if (authority === undefined) return invalid('"Host" is invalid: send a host name or an address');
  if (isProgram || isKnownHost(authority.host, hosts)) return undefined;
  const name = authority.host.slice(0, SHOWN);
  return crossSite('Host', `The host name "${name}" is not known: use an address of this service, or add the name to "SVC_ALLOWED_HOSTS"`);
}

/** The origin has the same host and port as the request. The scheme may differ, because a proxy may have ended TLS. */
function isOwnOrigin(origin: string, { host }: SiteRequest, { publicOrigin }: SitePolicy): boolean {
  if (origin === publicOrigin) return true;
  const found = /^(https?):\/\/(.+)$/.exec(origin);
  const page = parseAuthority(found?.[2] ?? '');
  const own = parseAuthority(host ?? '');
  if (page === undefined || own === undefined || page.host !== own.host) return false;
  const standard = found?.[1] === 'https' ? '443' : '80';
  return (page.port ?? standard) === (own.port ?? standard);
}

/** The user follows a link, so the answer replaces the page and only the user sees it. Safe methods change nothing. */
function isLinkFollowed({ method, fetchMode, fetchDest, origin }: SiteRequest): boolean {
  const isSafe = method === 'GET' || method === 'HEAD';
  return isSafe && origin === undefined && fetchMode === 'navigate' && fetchDest === 'document';
}

function originMessage(origin: string, cors: boolean): string {
  if (origin === 'null')
    return 'The page that sent the request hides its origin: use this route from a program, or from a page of the service itself';
  const shown = `"${origin.slice(0, SHOWN)}"`;
  if (cors) return `Pages of ${shown} may not use the models: add the origin to "SVC_CORS_ORIGINS" to allow them`;
  return `Pages of ${shown} may not use this route: use a program, or a page of the service itself (set "SVC_PUBLIC_URL" if this is one)`;
}

const crossSite = (param: string, message: string): Refusal => ({ kind: 'refuse', code: 'request.cross_site', param, message });

const invalid = (message: string): Refusal => ({ kind: 'refuse', code: 'request.invalid', param: 'Host', message });

type Headers = Readonly<Record<string, string>>;

/** Response headers that scripts may read: all that the service sets for clients. */
const EXPOSED =
  'x-request-id, retry-after, retry-after-ms, x-should-retry, openai-processing-ms, x-svc-note, x-svc-slot, x-svc-fallback, etag';
/** Seconds for which a browser may remember the answer to a preflight. Chromium allows at most 7200. */
const MAX_AGE = '600';
const HEADER_NAMES = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:\s*,\s*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*$/;

/** `origin` must be one that may use the route. No cookies are allowed: programs authenticate with a token. Pure. */
export function corsHeaders(origin: string): Headers {
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED, vary: 'Origin' };
}

/** Answers a preflight of an allowed origin. All `requested` headers are allowed: SDKs send many of their own. Pure. */
export function preflightHeaders(origin: string, methods: readonly string[], requested: string | undefined): Headers {
  const allowed = requested !== undefined && HEADER_NAMES.test(requested) ? { 'access-control-allow-headers': requested } : {};
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-methods': methods.join(', '),
    ...allowed,
    'access-control-max-age': MAX_AGE,
    vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
  };
}
