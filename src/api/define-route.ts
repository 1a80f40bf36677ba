/** Creates a route of the framework from schemas and a handler. The compiler refuses a handler that reads or answers anything else than the schemas say. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Caller } from '../auth/decide/decide-access.ts';
import { ApiError } from './api-error.ts';
import type { Answers, ReplyTo } from './server/answer.ts';
import type { DocumentedRoute, Route } from './server/route.ts';

interface RouteDefinition<Input extends z.ZodObject, Declared extends Answers> extends Omit<Route, 'raw' | 'handler'> {
  readonly input: Input;
  readonly answers: Declared;
  readonly errors: DocumentedRoute['errors'];
  /** Gets the parsed input. A thrown `ApiError` is answered in the documented shape. */
  handler(input: z.output<Input>, context: RouteContext): ReplyTo<Declared> | Promise<ReplyTo<Declared>>;
}

export interface RouteContext {
  readonly request: FastifyRequest;
  /** Undefined on open routes of a service with authentication. */
  readonly caller: Caller | undefined;
  /** Calls the listener when the answer is complete or the client has left. */
  readonly onClose: (listener: () => void) => void;
}

/** How messages call the parts of a request. */
const PARTS: Readonly<Record<string, string>> = { params: 'path', query: 'query', headers: 'headers', body: 'body' };

/** The input of a route that reads nothing. */
export const NoInput = z.object({});

export function defineRoute<Input extends z.ZodObject, const Declared extends Answers>(
  definition: RouteDefinition<Input, Declared>,
): DocumentedRoute {
  const { handler, ...route } = definition;
  return {
    ...route,
    async handler(request, reply) {
      const result = await handler(parseInput(route.input, request), {
        request,
        caller: request.caller,
        onClose: (listener) => void reply.raw.once('close', listener),
      });
      return await send(reply, route.answers, result);
    },
  };
}

function send(
  reply: FastifyReply,
  answers: Answers,
  {
    status,
    body,
    headers = {},
  }: { readonly status: PropertyKey; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> },
): FastifyReply {
  const answer = answers[Number(status)];
  void reply.code(Number(status)).headers(headers);
  if (answer?.kind === 'text') void reply.type(answer.mediaType);
  return reply.send(body);
}

/** Returns the parsed input; a missing body counts as `{}`. Throws `request.invalid` with the name of the first wrong field. */
function parseInput<Input extends z.ZodObject>(schema: Input, { params, query, headers, body }: FastifyRequest): z.output<Input> {
  const parsed = schema.safeParse({ params, query, headers, body: body ?? {} });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue === undefined) throw new ApiError('request.invalid', 'Correct the request');
  const [part = '', ...inPart] = issue.path;
  const path = [...inPart, ...(issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [])].map(String).join('.');
  const param = path === '' ? (PARTS[String(part)] ?? 'request') : path;
  throw new ApiError('request.invalid', `Correct "${param}": ${issue.message}`, { param });
}
