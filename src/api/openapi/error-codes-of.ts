/** Which error codes a route can answer. */
import { ERROR_CODES, type ErrorCode } from '../../schema/words/error-codes.ts';
import type { DocumentedRoute } from '../server/route.ts';

const BODY_CODES: ReadonlySet<string> = new Set<ErrorCode>(['request.too_large', 'request.media_type']);
const FAULTS: ReadonlySet<string> = new Set<ErrorCode>(['server.internal', 'server.overloaded']);

/** Returns the codes that the route declares, and those that any route can answer: about the request itself, its credential, and faults. Pure. */
export function errorCodesOf(route: DocumentedRoute): readonly ErrorCode[] {
  return Object.keys(ERROR_CODES)
    .filter(isErrorCode)
    .filter((code) => route.errors.includes(code) || isCommon(code, route));
}

function isCommon(code: ErrorCode, { method, access }: DocumentedRoute): boolean {
  if (BODY_CODES.has(code)) return method !== 'GET';
  if (code.startsWith('auth.')) return access !== 'open';
  return code.startsWith('request.') || FAULTS.has(code);
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}
