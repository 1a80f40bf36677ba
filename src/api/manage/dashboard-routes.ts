/**
 * The dashboard at `/`: one route for each of its files. They are open: they are the same for everyone and contain no data. What the page shows, it asks `/api` for, with the credential of the user who looks at it.
 * The routes are not part of the OpenAPI document, which describes what programs use.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../api-error.ts';
import type { Route } from '../server/route.ts';
import { chooseEncoding, hasVersion, SECURITY_HEADERS } from '../dashboard/decide/page-headers.ts';
import type { PageFile, PageFiles } from '../dashboard/read-files.ts';

export function createDashboardRoutes(files: PageFiles): readonly Route[] {
  if (!files.has('/')) return [unbuilt()];
  return [...files].map(([path, file]) => ({
    ...facts(path),
    handler: (request, reply) => sendFile(file, request, reply),
  }));
}

function facts(path: string) {
  return { method: 'GET', path, access: 'open', tag: 'dashboard', summary: 'A file of the dashboard' } as const;
}

function unbuilt(): Route {
  return {
    ...facts('/'),
    handler() {
      throw new ApiError(
        'route.not_found',
        'Run "npm run build:dashboard" in the checkout and start again: the dashboard has not been built. The API is at "/api/openapi.json"',
      );
    },
  };
}

function sendFile({ type, cache, etag, bodies }: PageFile, { headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
  void reply.headers({ ...SECURITY_HEADERS, 'cache-control': cache, etag, vary: 'Accept-Encoding' });
  if (hasVersion(headers['if-none-match'], etag)) return reply.code(304).send();
  const accepted = headers['accept-encoding'];
  const encoding = chooseEncoding(Array.isArray(accepted) ? accepted.join(',') : accepted);
  const body = bodies[encoding];
  if (body === undefined || encoding === 'identity') return reply.type(type).send(bodies.identity);
  return reply.header('content-encoding', encoding).type(type).send(body);
}
