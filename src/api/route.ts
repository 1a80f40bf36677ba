/** One row of the route table. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { ExchangeRequest } from '../gateway/exchange.ts';
import type { Access } from './ports.ts';

export type RouteMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Schemas for the documentation. A handler that relies on one also parses its input with it and answers `request.invalid`. */
export interface RouteSchemas {
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
}

/** A request that has passed the access check and whose body has not been read. */
export type RawRequest = Omit<ExchangeRequest, 'path'>;

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
  readonly schemas?: RouteSchemas;
  /** Media types other than JSON that the route accepts. */
  readonly consumes?: readonly string[];
  /** Serves the route without the framework, which then never calls `handler`. Requires a JSON body and a `path` without parameters. */
  readonly raw?: (request: RawRequest) => void;
  /** The returned value is sent; a thrown `ApiError` is answered in the documented shape. */
  handler(request: FastifyRequest, reply: FastifyReply): unknown;
}
