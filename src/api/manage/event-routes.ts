/** The event stream, `GET /api/events`. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { SlotName } from '../../schema/names.ts';
import { ApiError } from '../api-error.ts';
import type { Route } from '../route.ts';
import { createEventStream } from './event-stream.ts';
import type { ManageDeps } from './manage-deps.ts';
import { queryOf } from './request-input.ts';

const EventsQuery = z.strictObject({
  slot: SlotName.optional().describe('Only this slot’s events'),
  last_event_id: z
    .string()
    .optional()
    .describe('Same as the header "Last-Event-ID", for clients that cannot set it; 0: all retained events'),
});

export function createEventRoutes(deps: ManageDeps): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/events',
      access: 'read',
      tag: 'events',
      summary: 'The timeline of all slots as server-sent events; resumes after "Last-Event-ID", and sends "gap" if entries were dropped',
      schemas: { query: EventsQuery },
      handler(request, reply) {
        const query = queryOf(request, EventsQuery);
        const stream = createEventStream(deps.manage.events, {
          after: lastEventId(request, query.last_event_id),
          slot: query.slot,
          signal: deps.stopping,
          heartbeatMs: deps.heartbeatMs,
        });
        // Also closes the stream of a HEAD request.
        reply.raw.once('close', () => stream.destroy());
        return reply
          .type('text/event-stream; charset=utf-8')
          .header('cache-control', 'no-cache')
          .header('x-accel-buffering', 'no')
          .send(stream);
      },
    },
  ];
}

function lastEventId(request: FastifyRequest, inQuery: string | undefined): number | undefined {
  const header = request.headers['last-event-id'];
  const text = (typeof header === 'string' ? header : inQuery)?.trim() ?? '';
  if (text === '') return undefined;
  if (!/^[0-9]{1,15}$/.test(text))
    throw new ApiError('request.invalid', 'Send a whole number in "Last-Event-ID"', { param: 'Last-Event-ID' });
  return Number(text);
}
