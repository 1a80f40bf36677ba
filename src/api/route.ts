/** One row of the route table. The table is data: registration, access checks, documentation and `Allow` headers all come from it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { RequestHead } from '../gateway/decide/request-head.ts';
import type { Access } from './ports.ts';

export type RouteMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Schemas for the documentation. A handler that relies on one parses with it itself and answers `request.invalid`. */
export interface RouteSchemas {
  readonly params?: z.ZodType;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
}

/** A request that has passed the access check and whose body nobody has touched. */
export interface RawRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly head: RequestHead;
  readonly requestId: string;
}

export interface Route {
  readonly method: RouteMethod;
  /** In Fastify's pattern: `/v1/models/:id`, `/v1/models/*`. */
  readonly path: string;
  readonly access: Access;
  /** One sentence for the documentation. */
  readonly summary: string;
  /** Groups routes in the documentation. */
  readonly tag: string;
  readonly schemas?: RouteSchemas;
  /** Media types other than JSON that the route's body may have. */
  readonly consumes?: readonly string[];
  /** Takes JSON as it comes, past the framework: such a route's `handler` is never called. `path` holds no parameters then. */
  readonly raw?: (request: RawRequest) => void;
  /** What it returns is sent; an `ApiError` that it throws is answered in the contract's shape. */
  handler(request: FastifyRequest, reply: FastifyReply): unknown;
}
