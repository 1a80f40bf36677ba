/** Answers every error in which a Fastify route can end, in the documented shape. */
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { showTo } from '../../auth/decide/decide-access.ts';
import { errorAnswer } from '../../gateway/route/decide/dialects.ts';
import { codeOf } from '../../platform/error-text.ts';
import { ApiError, type ApiErrorOptions } from './answer.ts';
import { newRequestId, type Route } from './define-route.ts';
import { ERROR_CODES, type ErrorCode } from '../../schema/words/error-codes.ts';

export type OnFault = (error: unknown, requestId: string) => void;

type AnsweredError = Pick<ApiError, 'code' | 'message'> & ApiErrorOptions;

export function createErrorHandler(onFault: OnFault) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const known = error instanceof ApiError ? error : frameworkError(error, request.routeOptions.config.bodyLimit);
    if (known !== undefined) {
      // Before the access check, a message repeats nothing but the request.
      const message = request.caller === undefined ? known.message : String(showTo(request.caller, known.message));
      return sendError(reply, known, message);
    }
    onFault(error, request.id);
    const message = `The service failed: report this with the request id "${request.id}"`;
    return sendError(reply, { code: 'server.internal', message });
  };
}

export function sendError(reply: FastifyReply, error: AnsweredError, message = error.message): FastifyReply {
  const { code, param, headers } = error;
  const answer = errorAnswer(code, message, { param, requestId: reply.request.id, headers });
  return reply.code(answer.status).headers(answer.headers).send(answer.body);
}

const FRAMEWORK_ERRORS: Readonly<Record<string, AnsweredError>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: { code: 'request.too_large', message: 'The body exceeds "SVC_BODY_LIMIT": send a smaller one' },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'request.media_type',
    message: 'Unsupported media type: send the body as "application/json", or as a type that this route accepts',
    param: 'Content-Type',
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'request.invalid',
    message: 'The body differs from "Content-Length": send as many bytes as it announces',
    param: 'Content-Length',
  },
  FST_ERR_CTP_EMPTY_JSON_BODY: { code: 'request.invalid', message: 'The body is empty: send JSON, or no "Content-Type"' },
  FST_ERR_CTP_INVALID_JSON_BODY: { code: 'request.invalid', message: 'The body is not valid JSON' },
  FST_ERR_BAD_URL: { code: 'request.invalid', message: 'The percent-encoding of the path is invalid' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'route.not_found', message: 'A part of the path is too long' },
};

/** `limit`: of the body in bytes, where the route has its own. */
function frameworkError(error: unknown, limit: number | undefined): AnsweredError | undefined {
  if (!(error instanceof Error)) return undefined;
  if (codeOf(error) === 'FST_ERR_CTP_BODY_TOO_LARGE' && limit !== undefined)
    return { code: 'request.too_large', message: `The body exceeds ${limit} bytes` };
  const known = FRAMEWORK_ERRORS[codeOf(error)];
  if (known !== undefined) return known;
  const status: unknown = Reflect.get(error, 'statusCode');
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return { code: 'request.invalid', message: `Invalid request: ${error.message.slice(0, 500)}` };
}

/**
 * Lists the methods of a path, for `Allow` and to tell a wrong method from a wrong path. Used only if no route matched.
 */
export function createAllowedMethods(routes: readonly Route[]): (url: string) => readonly string[] {
  const patterns = routes.map(({ method, path }) => ({ method, pattern: patternOf(path) }));
  return (url) => {
    const path = pathOf(url);
    const methods = patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
    if (methods.length === 0) return [];
    const more = methods.includes('GET') ? ['HEAD', 'OPTIONS'] : ['OPTIONS'];
    return [...new Set([...methods, ...more])].toSorted();
  };
}

/** Matches the paths of a route: ":name" stands for one segment, "*" for the rest. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+').replace('*', '.*')}$`, 's');
}

function pathOf(url: string): string {
  const [path = ''] = url.split(/[?#]/, 1);
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

interface ErrorOptions {
  readonly requestId?: string;
  readonly param?: string | null;
}

export function writeError(socket: Duplex, code: ErrorCode, message: string, options: ErrorOptions = {}): void {
  const { requestId = newRequestId(), param = null } = options;
  const { status, headers, body } = errorAnswer(code, message, { requestId, param });
  const allow = code === 'route.method' ? { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' } : {};
  const own = { 'content-length': Buffer.byteLength(body), connection: 'close', date: new Date().toUTCString() };
  const lines = Object.entries({ ...headers, ...allow, ...own }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.on('error', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${ERROR_CODES[code].type}\r\n${lines.join('')}\r\n${body}`, () => socket.destroy());
}
