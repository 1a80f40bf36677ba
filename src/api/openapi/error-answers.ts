/** The errors of routes in the document. Routes with the same errors share their description. */
import { ERROR_CODES, type ErrorCode } from '../../schema/error-codes.ts';
import type { DocumentedRoute } from '../route.ts';
import { errorCodesOf } from './error-codes-of.ts';
import { headersOf, pascalCase } from './render.ts';

/** The errors of a route with one status. */
interface ErrorGroup {
  readonly status: number;
  readonly codes: readonly ErrorCode[];
  /** Whether a model server can answer the same status, with any code. */
  readonly upstream: boolean;
}

const ERROR = { $ref: '#/components/schemas/ErrorAnswer' };
/** What a model server says of retries is passed on. */
const PASSED_HEADERS = {
  'Retry-After': 'Seconds after which to try again, if that can help',
  'x-should-retry': '"false" if trying again cannot help',
};

/** One answer for each status, which lists its codes. A status that the route declares with a body of its own is left out. */
export function errorAnswersOf(route: DocumentedRoute): Readonly<Record<string, object>> {
  const entries = groupsOf(route)
    .filter(({ status }) => !(status in route.answers))
    .map((group) => [group.status, { $ref: `#/components/responses/${nameOf(group)}` }]);
  const other = { description: 'An error of the model server', headers: headersOf(PASSED_HEADERS), ...contentOf(withOrigin('upstream')) };
  return { ...Object.fromEntries(entries), ...(isPassed(route) ? { default: other } : {}) };
}

/** The components to which `errorAnswersOf` refers. */
export function errorResponses(routes: readonly DocumentedRoute[]): Readonly<Record<string, object>> {
  return Object.fromEntries(routes.flatMap(groupsOf).map((group) => [nameOf(group), errorResponse(group)]));
}

function groupsOf(route: DocumentedRoute): readonly ErrorGroup[] {
  const byStatus = Map.groupBy(errorCodesOf(route), (code) => ERROR_CODES[code].status);
  return [...byStatus].map(([status, codes]) => ({ status, codes, upstream: isPassed(route) }));
}

function isPassed({ answers }: DocumentedRoute): boolean {
  return Object.values(answers).some(({ kind }) => kind === 'passed');
}

/** For instance `AuthRequiredOrAuthInvalid`. */
function nameOf({ codes, upstream }: ErrorGroup): string {
  return [...codes.map((code) => pascalCase(code)), ...(upstream ? ['Upstream'] : [])].join('Or');
}

function errorResponse({ status, codes, upstream }: ErrorGroup): object {
  const own = withOrigin('gateway', { code: { enum: codes } });
  const causes = codes.map((code) => `\`${code}\`: ${ERROR_CODES[code].when}`);
  return {
    description: [...causes, ...(upstream ? ['Or an error of the model server'] : [])].join('. '),
    headers: headersOf({ ...headersOfOwn(status, codes), ...(upstream ? PASSED_HEADERS : {}) }),
    ...contentOf(upstream ? { anyOf: [own, withOrigin('upstream')] } : own),
  };
}

function headersOfOwn(status: number, codes: readonly ErrorCode[]): Readonly<Record<string, string>> {
  return {
    ...(status === 401 ? { 'WWW-Authenticate': 'The scheme: Bearer' } : {}),
    ...(status === 429 || status === 503 ? { 'Retry-After': PASSED_HEADERS['Retry-After'] } : {}),
    ...(codes.some((code) => 'retry' in ERROR_CODES[code]) ? { 'x-should-retry': PASSED_HEADERS['x-should-retry'] } : {}),
  };
}

function withOrigin(origin: 'gateway' | 'upstream', properties: object = {}): object {
  return {
    allOf: [ERROR, { type: 'object', properties: { error: { type: 'object', properties: { origin: { const: origin }, ...properties } } } }],
  };
}

function contentOf(schema: object): object {
  return { content: { 'application/json': { schema } } };
}
