/** The event stream, `GET /api/events`. */
import { z } from 'zod';
import { SlotName } from '../../schema/words/names.ts';
import { ApiError } from '../api-error.ts';
import { text } from '../server/answer.ts';
import { defineRoute } from '../define-route.ts';
import type { DocumentedRoute } from '../server/route.ts';
import { createEventStream } from './event-stream.ts';
import type { ManageDeps } from './manage-deps.ts';

const EventsQuery = z.strictObject({
  slot: SlotName.optional().describe('Only this slot’s events'),
  last_event_id: z
    .string()
    .optional()
    .describe('Same as the header "Last-Event-ID", for clients that cannot set it; 0: all retained events'),
});

const EventsHeaders = z.object({ 'last-event-id': z.string().optional().describe('The last id that the client has received') });

export function createEventRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/events',
      access: 'read',
      tag: 'events',
      summary:
        'The timeline of all slots as server-sent events; resumes after "Last-Event-ID", and sends "gap" if entries were dropped, and "progress" while images are drawn',
      input: z.object({ query: EventsQuery, headers: EventsHeaders }),
      answers: {
        200: text(
          'Events "timeline", with an entry as JSON, "gap", and "progress", with a slot and how far its request is, or null once it has ended',
          'text/event-stream; charset=utf-8',
        ),
      },
      errors: [],
      handler({ query, headers }, { onClose }) {
        const stream = createEventStream(deps.manage.events, {
          after: lastEventId(headers['last-event-id'] ?? query.last_event_id),
          slot: query.slot,
          signal: deps.stopping,
          watchProgress: deps.watchProgress,
          heartbeatMs: deps.heartbeatMs,
        });
        // Also closes the stream of a HEAD request.
        onClose(() => stream.destroy());
        return { status: 200, body: stream, headers: { 'cache-control': 'no-cache', 'x-accel-buffering': 'no' } };
      },
    }),
  ];
}

function lastEventId(sent: string | undefined): number | undefined {
  const id = sent?.trim() ?? '';
  if (id === '') return undefined;
  if (!/^[0-9]{1,15}$/.test(id))
    throw new ApiError('request.invalid', 'Send a whole number in "Last-Event-ID"', { param: 'Last-Event-ID' });
  return Number(id);
}
