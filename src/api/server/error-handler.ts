/** Answers every error in which a Fastify route can end, in the documented shape. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { showTo } from '../../auth/decide/decide-access.ts';
import { answerError } from '../../gateway/client-answer.ts';
import { errorAnswer, OPENAI } from '../../gateway/route/decide/dialects.ts';
import { dialectOf } from '../../gateway/route/decide/inference-paths.ts';
import { codeOf } from '../../platform/error-text.ts';
import { ApiError, type ApiErrorOptions } from './answer.ts';
import { newRequestId, type Route } from './define-route.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';

export type OnFault = (error: unknown, requestId: string) => void;

type AnsweredError = Pick<ApiError, 'code' | 'message'> & ApiErrorOptions;

export function createErrorHandler(onFault: OnFault) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const known = error instanceof ApiError ? error : frameworkError(error);
    if (known !== undefined) {
      // Before the access check, a message repeats nothing but the request.
      const message = request.caller === undefined ? known.message : String(showTo(request.caller, known.message));
      return sendError(reply, known, message, dialectOf(pathOf(request.url)));
    }
    onFault(error, request.id);
    const message = `The service failed: report this with the request id "${request.id}"`;
    return sendError(reply, { code: 'server.internal', message }, message, dialectOf(pathOf(request.url)));
  };
}

/** Answers without the framework, which can send nothing more then. */
export function sendError(reply: FastifyReply, error: AnsweredError, message = error.message, dialect = OPENAI): void {
  const { code, param, headers } = error;
  const answer = errorAnswer(code, message, { param, requestId: reply.request.id, headers, dialect });
  // The framework would close each connection after an error with a body.
  reply.removeHeader('connection');
  const own = Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)] as const);
  reply.hijack();
  answerError(reply.request.raw, reply.raw, { ...answer, headers: { ...Object.fromEntries(own), ...answer.headers } });
}

const FRAMEWORK_ERRORS: Readonly<Record<string, AnsweredError>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'request.media_type',
    message: 'Unsupported media type: send the body as "application/json", or as a type that this route accepts',
    param: 'Content-Type',
  },
  FST_ERR_CTP_INVALID_JSON_BODY: { code: 'request.invalid', message: 'The body is not valid JSON' },
  FST_ERR_BAD_URL: { code: 'request.invalid', message: 'The percent-encoding of the path is invalid' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'route.not_found', message: 'A part of the path is too long' },
};

function frameworkError(error: unknown): AnsweredError | undefined {
  if (!(error instanceof Error)) return undefined;
  const known = FRAMEWORK_ERRORS[codeOf(error)];
  if (known !== undefined) return known;
  const status: unknown = Reflect.get(error, 'statusCode');
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return { code: 'request.invalid', message: `Invalid request: ${error.message.slice(0, 500)}` };
}

/** Lists the methods of a path, for `Allow` and to tell a wrong method from a wrong path, if no route matched. */
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

type ErrorOptions = Partial<Parameters<typeof errorAnswer>[2]>;

/** The answer on a connection without a response object. Does nothing after another such answer. */
export function writeError(socket: Duplex, code: ErrorCode, message: string, options: ErrorOptions = {}): void {
  if (!socket.writable) return;
  const { status, headers, body } = errorAnswer(code, message, { requestId: newRequestId(), ...options });
  const allow = code === 'route.method' ? { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' } : {};
  const own = { 'content-length': Buffer.byteLength(body), connection: 'close', date: new Date().toUTCString() };
  const lines = Object.entries({ ...headers, ...allow, ...own }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.on('error', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`, () => socket.destroy());
}
