/** The errors of routes in the document. Routes with the same errors share their description. */
import { ANTHROPIC, COHERE, OLLAMA, type Dialect } from '../../gateway/route/decide/dialects.ts';
import { dialectOf } from '../../gateway/route/decide/inference-paths.ts';
import { ERROR_CODES, type ErrorCode } from '../../schema/words/error-codes.ts';
import type { DocumentedRoute } from '../server/define-route.ts';

interface ErrorGroup {
  readonly status: number;
  readonly codes: readonly ErrorCode[];
  /** A model server can answer the same status, with any code. */
  readonly upstream: boolean;
  readonly dialect: Dialect;
}

/** The dialects whose errors have a shape of their own. */
const NAMES: ReadonlyMap<Dialect, string> = new Map([
  [ANTHROPIC, 'Messages'],
  [COHERE, 'Rerank'],
  [OLLAMA, 'Ollama'],
]);
/** A model server's retry headers are passed on. */
const PASSED_HEADERS = {
  'Retry-After': 'Seconds after which to try again, if that can help',
  'x-should-retry': '"false" if trying again cannot help',
};

/** One response per status, which lists its codes. Statuses that the route declares itself are left out. */
export function errorAnswersOf(route: DocumentedRoute): Readonly<Record<string, object>> {
  const entries = groupsOf(route)
    .filter(({ status }) => !(status in route.answers))
    .map((group) => [group.status, { $ref: `#/components/responses/${nameOf(group)}` }]);
  const dialect = dialectOf(route.path);
  const headers = headersOf({ ...PASSED_HEADERS, ...headersOfDialect(dialect) });
  const other = { description: 'An error of the model server', headers, ...contentOf(withOrigin(dialect, 'upstream')) };
  return { ...Object.fromEntries(entries), ...(isPassed(route) ? { default: other } : {}) };
}

export function errorResponses(routes: readonly DocumentedRoute[]): Readonly<Record<string, object>> {
  return Object.fromEntries(routes.flatMap(groupsOf).map((group) => [nameOf(group), errorResponse(group)]));
}

function groupsOf(route: DocumentedRoute): readonly ErrorGroup[] {
  const byStatus = Map.groupBy(errorCodesOf(route), (code) => ERROR_CODES[code].status);
  return [...byStatus].map(([status, codes]) => ({ status, codes, upstream: isPassed(route), dialect: dialectOf(route.path) }));
}

const isPassed = ({ answers }: DocumentedRoute): boolean => Object.values(answers).some(({ kind }) => kind === 'passed');

/** `AuthRequiredOrAuthInvalid` */
function nameOf({ codes, upstream, dialect }: ErrorGroup): string {
  return (NAMES.get(dialect) ?? '') + [...codes.map((code) => pascalCase(code)), ...(upstream ? ['Upstream'] : [])].join('Or');
}

function errorResponse({ status, codes, upstream, dialect }: ErrorGroup): object {
  const own = withOrigin(dialect, 'gateway', { code: { enum: codes } });
  const causes = codes.map((code) => `\`${code}\`: ${ERROR_CODES[code].when}`);
  return {
    description: [...causes, ...(upstream ? ['Or an error of the model server'] : [])].join('. '),
    headers: headersOf({ ...headersOfOwn(status, codes), ...(upstream ? PASSED_HEADERS : {}), ...headersOfDialect(dialect) }),
    ...contentOf(upstream ? { anyOf: [own, withOrigin(dialect, 'upstream')] } : own),
  };
}

function headersOfOwn(status: number, codes: readonly ErrorCode[]): Readonly<Record<string, string>> {
  return {
    ...(status === 401 ? { 'WWW-Authenticate': 'The scheme: Bearer' } : {}),
    ...(status === 429 || status === 503 ? { 'Retry-After': PASSED_HEADERS['Retry-After'] } : {}),
    ...(codes.some((code) => 'retry' in ERROR_CODES[code]) ? { 'x-should-retry': PASSED_HEADERS['x-should-retry'] } : {}),
  };
}

/** The header in which a dialect repeats the request id. */
export function headersOfDialect({ requestIdHeader }: Dialect): Readonly<Record<string, string>> {
  return requestIdHeader === undefined ? {} : { [requestIdHeader]: 'The same as "x-request-id"' };
}

function withOrigin(dialect: Dialect, origin: 'gateway' | 'upstream', properties: object = {}): object {
  const error = { $ref: `#/components/schemas/${NAMES.get(dialect) ?? ''}ErrorAnswer` };
  // It has only the message.
  if (dialect === OLLAMA) return error;
  return {
    allOf: [error, { type: 'object', properties: { error: { type: 'object', properties: { origin: { const: origin }, ...properties } } } }],
  };
}

const contentOf = (schema: object): object => ({ content: { 'application/json': { schema } } });

const FAULTS: ReadonlySet<string> = new Set<ErrorCode>(['server.internal', 'server.overloaded']);

/** The codes that the route declares, and those of all routes: the request, its credential, and faults. Pure. */
export function errorCodesOf(route: DocumentedRoute): readonly ErrorCode[] {
  return Object.keys(ERROR_CODES)
    .filter(isErrorCode)
    .filter((code) => route.errors.includes(code) || isCommon(code, route));
}

function isCommon(code: ErrorCode, { method, access }: DocumentedRoute): boolean {
  if (code === 'request.media_type') return method !== 'GET';
  if (code.startsWith('auth.')) return access !== 'open';
  return code.startsWith('request.') || FAULTS.has(code);
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERROR_CODES, code);

/** Headers with their meanings, and the one that every answer has. */
export function headersOf(headers: Readonly<Record<string, string>>): Readonly<Record<string, object>> {
  const all = { 'x-request-id': 'Identifies the request in the logs', ...headers };
  return mapValues(all, (description) => ({ description, schema: { type: 'string' } }));
}

export function mapValues<From, To>(record: Readonly<Record<string, From>>, map: (value: From) => To): Readonly<Record<string, To>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}

export function pascalCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/);
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
