/** One row of the route table. */
import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { ExchangeRequest } from '../../gateway/exchange.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';
import type { Answers } from './answer.ts';
import type { Access } from '../../schema/access.ts';

export type RouteMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A request that has passed the access check and whose body has not been read. */
export type RawRequest = Omit<ExchangeRequest, 'path'>;

/** A request to change the protocol of its connection, which has passed the checks of site and access. */
export interface UpgradeRequest {
  readonly req: IncomingMessage;
  /** Bytes that came after the head. */
  readonly leftover: Buffer;
  readonly requestId: string;
  /** Whether the credentials would still be accepted. */
  readonly isAllowed: () => Promise<boolean>;
  /** Answers with an error and closes the connection. */
  readonly refuse: (code: ErrorCode, message: string, param?: string | null) => void;
  /** To be called once, when a connection that was taken has ended. */
  readonly done: () => void;
}

export interface Route {
  readonly method: RouteMethod;
  /** Fastify's pattern: `/v1/models/:id`, `/v1/models/*`. */
  readonly path: string;
  readonly access: Access;
  /** The route changes and reveals nothing, so requests from pages of any site, and under any name, are answered. Default: false. */
  readonly anySite?: true;
  /** Pages of the origins in `SVC_CORS_ORIGINS` may use the route. Default: false. */
  readonly cors?: true;
  /** One sentence for the documentation. */
  readonly summary: string;
  /** Groups routes in the documentation. */
  readonly tag: string;
  /** What the handler reads, as an object of `params`, `query`, `headers` and `body`. `defineRoute` parses requests with it. */
  readonly input?: z.ZodObject;
  /** The answers of the route other than errors, by status. */
  readonly answers?: Answers;
  /** The codes of the errors that this route answers, besides those that any route can answer. */
  readonly errors?: readonly ErrorCode[];
  /** Media types other than JSON that the route accepts. */
  readonly consumes?: readonly string[];
  /** The route accepts a form (`multipart/form-data`) and nothing else. Unless it is raw, its body is what `read-form.ts` makes of the form. */
  readonly multipart?: true;
  /** The largest body in bytes. Default: `SVC_BODY_LIMIT`. */
  readonly bodyLimit?: number;
  /** Serves the route without the framework, which then never calls `handler`. Requires a `path` without parameters. */
  readonly raw?: (request: RawRequest) => void;
  /** Takes the connection of a request that asks for a WebSocket; others come to `handler`. Requires a `path` without parameters. */
  readonly upgrade?: (request: UpgradeRequest) => void;
  /** The returned value is sent; a thrown `ApiError` is answered in the documented shape. */
  handler(request: FastifyRequest, reply: FastifyReply): unknown;
}

/** A route that says what it reads and answers. The OpenAPI document is made of such routes. */
export type DocumentedRoute = Route & Required<Pick<Route, 'input' | 'answers' | 'errors'>>;
