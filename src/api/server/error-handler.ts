/** Answers every error in which a Fastify route can end, in the documented shape. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorAnswer } from '../../gateway/decide/error-answer.ts';
import { codeOf } from '../../platform/error-text.ts';
import { ApiError, type ApiErrorOptions } from '../api-error.ts';

/** Logs a fault of the service itself. */
export type OnFault = (error: unknown, requestId: string) => void;

type AnsweredError = Pick<ApiError, 'code' | 'message'> & ApiErrorOptions;

export function createErrorHandler(onFault: OnFault) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const known = error instanceof ApiError ? error : frameworkError(error, request.routeOptions.config.bodyLimit);
    if (known !== undefined) return sendError(reply, known);
    onFault(error, request.id);
    const message = `Report this with the request id "${request.id}": the service failed`;
    return sendError(reply, { code: 'server.internal', message });
  };
}

export function sendError(reply: FastifyReply, { code, message, param, headers }: AnsweredError): FastifyReply {
  const answer = errorAnswer(code, message, { param, requestId: reply.request.id, headers });
  return reply.code(answer.status).headers(answer.headers).send(answer.body);
}

/** Fastify's own errors, with messages for the client instead of for the programmer. */
const FRAMEWORK_ERRORS: Readonly<Record<string, AnsweredError>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: { code: 'request.too_large', message: 'Send a smaller body: the limit is "SVC_BODY_LIMIT"' },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'request.media_type',
    message: 'Send the body as "application/json", or as a type that this route accepts',
    param: 'Content-Type',
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'request.invalid',
    message: 'Send as many bytes as "Content-Length" announces',
    param: 'Content-Length',
  },
  FST_ERR_CTP_EMPTY_JSON_BODY: { code: 'request.invalid', message: 'Send JSON in the body, or no "Content-Type"' },
  FST_ERR_CTP_INVALID_JSON_BODY: { code: 'request.invalid', message: 'Send valid JSON: the body cannot be parsed' },
  FST_ERR_BAD_URL: { code: 'request.invalid', message: 'Correct the percent-encoding of the path' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'route.not_found', message: 'Use a shorter path: a part of it is too long' },
};

/** `limit`: of the body in bytes, where the route has its own. */
function frameworkError(error: unknown, limit: number | undefined): AnsweredError | undefined {
  if (!(error instanceof Error)) return undefined;
  if (codeOf(error) === 'FST_ERR_CTP_BODY_TOO_LARGE' && limit !== undefined)
    return { code: 'request.too_large', message: `Send a body of at most ${limit} bytes` };
  const known = FRAMEWORK_ERRORS[codeOf(error)];
  if (known !== undefined) return known;
  const status: unknown = Reflect.get(error, 'statusCode');
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return { code: 'request.invalid', message: `Correct the request: ${error.message.slice(0, 500)}` };
}
