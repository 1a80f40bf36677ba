/** One row of the route table. */
import type { IncomingMessage } from 'node:http';
import { randomFillSync } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { ExchangeRequest } from '../../gateway/exchange-deps.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import { ApiError, chooseEncoding, type Answers, type ReplyTo } from './answer.ts';
import { createBreather } from '../../platform/slices.ts';
import type { Access } from '../../schema/words/access.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { showTo, type Caller } from '../../auth/decide/decide-access.ts';
import type { BodyLimit } from '../../gateway/route/decide/request-limits.ts';

export type RouteMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A request that has passed the access check and whose body has not been read. */
export type RawRequest = Omit<ExchangeRequest, 'path'>;

/** A request to change the protocol of its connection, which has passed the checks of site and access. */
export interface UpgradeRequest {
  readonly req: IncomingMessage;
  readonly leftover: Buffer;
  readonly requestId: string;
  readonly caller: Caller | undefined;
  /** The credentials would still be accepted. */
  readonly isAllowed: () => Promise<boolean>;
  readonly refuse: (code: ErrorCode, message: string, param?: string | null) => void;
  /** Call this once, when the connection has ended. */
  readonly done: () => void;
}

export interface Route {
  readonly method: RouteMethod;
  /** Fastify's pattern: `/v1/models/:id`, `/v1/models/*`. */
  readonly path: string;
  readonly access: Access;
  /** Answers requests from pages of any site and under any name: it reveals and changes nothing. Default: false. */
  readonly anySite?: true;
  /** An open route that shows a caller with a credential only what it may use. Default: false. */
  readonly knowsCaller?: true;
  /** The handler checks a signature over the bytes of the body: `request.wholeBody`. Default: they are not kept. */
  readonly keepsBytes?: true;
  /** Pages of the origins in `SVC_CORS_ORIGINS` may use the route. Default: false. */
  readonly cors?: true;
  readonly summary: string;
  readonly tag: string;
  /** Schema of the input: an object of `params`, `query`, `headers` and `body`. */
  readonly input?: z.ZodObject;
  readonly answers?: Answers;
  /** The codes of the errors that this route answers, besides those that any route can answer. */
  readonly errors?: readonly ErrorCode[];
  /** Media types other than JSON that the route accepts. A body of `CURL_DEFAULT_TYPE` is parsed as JSON. */
  readonly consumes?: readonly string[];
  /** Accepts only a form (`multipart/form-data`). Unless the route is raw, its body is parsed by `read-form.ts`. */
  readonly multipart?: true;
  /** A raw route that takes bodies of every type: pages of other sites cannot reach it. */
  readonly anyType?: true;
  /** The largest body in bytes, or the setting that says it. Default: `defaultBodyLimit`. */
  readonly bodyLimit?: number | BodyLimit['setting'];
  /** Serves the route without the framework, which then never calls `handler`. Fastest without parameters in `path`. */
  readonly raw?: (request: RawRequest) => void;
  /** Takes connections that ask for a WebSocket; others come to `handler`. Requires a `path` without parameters. */
  readonly upgrade?: (request: UpgradeRequest) => void;
  /** Answers without HTTP to a caller inside of the program, who has checked the access. Throws `ApiError`. */
  readonly answer?: (parts: RequestParts, context: RouteContext) => Promise<Result>;
  /** The returned value is sent; a thrown `ApiError` is answered in the documented shape. */
  handler(request: FastifyRequest, reply: FastifyReply): unknown;
}

/** A route that says what it reads and answers. The OpenAPI document is generated from such routes. */
export type DocumentedRoute = Route & Required<Pick<Route, 'input' | 'answers' | 'errors' | 'bodyLimit'>>;

/** What curl sends with `-d`, as in the documentation of Ollama, whose server reads no media type. */
export const CURL_DEFAULT_TYPE = 'application/x-www-form-urlencoded';

/** Documents of a thousand slots; a profile on disk is smaller as well. */
export const SLOTS_BODY_BYTES = 8 * 1024 * 1024;

/** Anyone can send to open routes, which read a few fields. Others take more than the longest document of a slot. */
export const defaultBodyLimit = (access: Access): number => (access === 'open' ? 4 : 1024) * 1024;

interface RouteDefinition<Input extends z.ZodObject, Declared extends Answers> extends Omit<
  Route,
  'method' | 'path' | 'access' | 'raw' | 'handler' | 'answer'
> {
  readonly input: Input;
  readonly answers: Declared;
  handler(input: z.output<Input>, context: RouteContext): ReplyTo<Declared> | Promise<ReplyTo<Declared>>;
}

/** Not validated. */
export type RequestParts = Readonly<Partial<Record<'params' | 'query' | 'headers' | 'body', unknown>>>;

export interface RouteContext {
  readonly request: FastifyRequest;
  /** Undefined on open routes of a service with authentication. */
  readonly caller: Caller | undefined;
  readonly onClose: (listener: () => void) => void;
}

/** Names of the parts of a request in messages. */
const PARTS: Readonly<Record<string, string>> = { params: 'path', query: 'query', headers: 'headers', body: 'body' };

/** The input of a route that reads nothing. */
export const NoInput = z.object({});

/** The compiler refuses a handler that reads or answers anything other than its schemas. */
export function defineRoute<Input extends z.ZodObject, const Declared extends Answers>(
  method: RouteMethod,
  path: string,
  access: Access,
  { handler, errors = [], bodyLimit = defaultBodyLimit(access), ...route }: RouteDefinition<Input, Declared>,
): DocumentedRoute {
  const answer = async (parts: RequestParts, context: RouteContext): Promise<Result> => {
    const { status, body, headers = {} }: HandlerResult = await handler(parseInput(route.input, parts), context);
    const { kind } = route.answers[Number(status)] ?? {};
    return { status: Number(status), headers, body: kind === 'json' ? showTo(context.caller, body) : body };
  };
  return {
    method,
    path,
    access,
    errors,
    bodyLimit,
    ...route,
    answer,
    async handler(request, reply) {
      const onClose = (listener: () => void): void => void reply.raw.once('close', listener);
      return await send(reply, route.answers, await answer(request, { request, caller: request.caller, onClose }));
    },
  };
}

type HandlerResult = Readonly<{ status: PropertyKey; body: unknown; headers?: Readonly<Record<string, string>> }>;
/** What the caller may see of the answer. */
type Result = Readonly<{ status: number; body: unknown; headers: Readonly<Record<string, string>> }>;

async function send(reply: FastifyReply, answers: Answers, { status, body, headers }: Result): Promise<FastifyReply> {
  const answer = answers[status];
  void reply.code(status).headers(headers);
  if (answer?.kind === 'text' && headers['content-type'] === undefined) void reply.type(answer.mediaType);
  if (answer?.kind !== 'json' || !isTable(body) || !Object.values(body).some(isLongList)) return reply.send(body);
  const text = await writeInSlices(body);
  const vary = [reply.getHeader('vary') ?? [], 'Accept-Encoding'].flat().join(', ');
  void reply.type('application/json; charset=utf-8').header('vary', vary);
  if (chooseEncoding(reply.request.headers['accept-encoding'], ['gzip']) === 'identity') return reply.send(text);
  // Another thread compresses: 5,000 slots have 5 MB, and a twentieth of that then.
  return reply.header('content-encoding', 'gzip').send(await compress(text, { level: constants.Z_BEST_SPEED }));
}

const compress = promisify(gzip);

/** Items from which on a list is written in slices: other requests must not wait for the whole of it. */
const LONG_LIST = 200;
const ITEMS_AT_ONCE = 50;
const SLICE_MS = 2;

const isLongList = (value: unknown): boolean => Array.isArray(value) && value.length >= LONG_LIST;

async function writeInSlices(body: Readonly<Record<string, unknown>>): Promise<Buffer> {
  const breathe = createBreather({ sliceMs: SLICE_MS });
  const pieces: string[] = [];
  for (const [key, value] of Object.entries(body)) {
    if (value === undefined) continue;
    pieces.push(pieces.length === 0 ? '{' : ',', JSON.stringify(key), ':');
    if (!Array.isArray(value)) pieces.push(JSON.stringify(value));
    else {
      pieces.push('[');
      for (let from = 0; from < value.length; from += ITEMS_AT_ONCE) {
        pieces.push(from === 0 ? '' : ',', JSON.stringify(value.slice(from, from + ITEMS_AT_ONCE)).slice(1, -1));
        await breathe();
      }
      pieces.push(']');
    }
  }
  pieces.push('}');
  return Buffer.from(pieces.join(''));
}

/** A missing body counts as `{}`. Throws `request.invalid` with the name of the first invalid field. */
export function parseInput<Input extends z.ZodObject>(schema: Input, { params, query, headers, body }: RequestParts): z.output<Input> {
  const parsed = schema.safeParse({ params, query, headers, body: body ?? {} });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue === undefined) throw new ApiError('request.invalid', 'The request is invalid');
  const [part = '', ...inPart] = issue.path;
  const path = [...inPart, ...(issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [])].map(String).join('.');
  const param = path === '' ? (PARTS[String(part)] ?? 'request') : path;
  throw new ApiError('request.invalid', `Invalid "${param}": ${issue.message}`, { param });
}

const ID_BYTES = 16;
/** Random bytes for many ids, because asking for them each time costs more than the rest of an id. */
const POOL_BYTES = 256 * ID_BYTES;

export const newRequestId = createRequestIds();

function createRequestIds(): () => string {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;
  return () => {
    if (used === POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    used += ID_BYTES;
    return `req_${pool.toString('hex', used - ID_BYTES, used)}`;
  };
}
