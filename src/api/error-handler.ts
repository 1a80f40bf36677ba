/** Every error that a framework route can end in, as an answer in the contract's shape. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorAnswer } from '../gateway/decide/error-answer.ts';
import type { ErrorCode } from '../schema/error-codes.ts';
import { ApiError } from './api-error.ts';

export type OnFault = (error: unknown, requestId: string) => void;

export function createErrorHandler(onFault: OnFault) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (error instanceof ApiError) return sendError(reply, error.code, error.message, error.param, error.headers);
    const known = frameworkError(error);
    if (known !== undefined) return sendError(reply, known.code, known.message, known.param);
    onFault(error, request.id);
    return sendError(reply, 'server.internal', `Report this with the request id "${request.id}": the service failed`, null);
  };
}

export function sendError(
  reply: FastifyReply,
  code: ErrorCode,
  message: string,
  param: string | null,
  headers: Readonly<Record<string, string>> = {},
): FastifyReply {
  const answer = errorAnswer(code, message, { param, requestId: reply.request.id, headers });
  reply.code(answer.status);
  for (let index = 0; index < answer.headers.length; index += 2) {
    const name = answer.headers[index];
    if (name !== undefined && name !== 'content-length') reply.header(name, answer.headers[index + 1]);
  }
  return reply.send(answer.body);
}

interface KnownError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly param: string | null;
}

/** Fastify's own errors, by their codes: its messages speak to the program's author, ours to the client. */
const FRAMEWORK_ERRORS: Readonly<Record<string, KnownError>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: { code: 'request.too_large', message: 'Send a smaller body: the limit is "SVC_BODY_LIMIT"', param: null },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'request.media_type',
    message: 'Send the body as "application/json", or as a type this route takes',
    param: 'Content-Type',
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'request.invalid',
    message: 'Send as many bytes as "Content-Length" says',
    param: 'Content-Length',
  },
  FST_ERR_CTP_EMPTY_JSON_BODY: { code: 'request.invalid', message: 'Send JSON in the body, or no "Content-Type"', param: null },
  FST_ERR_CTP_INVALID_JSON_BODY: { code: 'request.invalid', message: 'Send valid JSON: the body cannot be parsed', param: null },
  FST_ERR_BAD_URL: { code: 'request.invalid', message: 'Correct the percent-encoding of the path', param: null },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'route.not_found', message: 'Use a shorter path: a part of it is too long', param: null },
};

function frameworkError(error: unknown): KnownError | undefined {
  if (!(error instanceof Error)) return undefined;
  const code: unknown = Reflect.get(error, 'code');
  const known = typeof code === 'string' ? FRAMEWORK_ERRORS[code] : undefined;
  if (known !== undefined) return known;
  const status: unknown = Reflect.get(error, 'statusCode');
  if (typeof status !== 'number' || status < 400 || status >= 500) return undefined;
  return { code: 'request.invalid', message: `Correct the request: ${error.message.slice(0, 500)}`, param: null };
}
