/** The event stream, `GET /api/events`. */
import { Readable } from 'node:stream';
import { z } from 'zod';
import { showTo, type Caller } from '../../auth/decide/decide-access.ts';
import { SlotName } from '../../schema/words/names.ts';
import { ApiError, text } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';
import type { ManageDeps } from './manage-deps.ts';
import type { SlotTraffic } from '../../gateway/traffic/traffic.ts';
import type { TimelineEntry } from '../../schema/status/slot-status.ts';
import { viewPulls } from './decide/inventory-view.ts';
import { viewTimelineEntry } from './decide/slot-view.ts';

const EventsQuery = z.strictObject({
  slot: SlotName.optional().describe('Only this slot’s events'),
  last_event_id: z
    .string()
    .optional()
    .describe('Same as the header "Last-Event-ID", for clients that cannot set it; 0: all retained events'),
});

const EventsHeaders = z.object({ 'last-event-id': z.string().optional().describe('Last id that the client has received') });

export function createEventRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  return [
    defineRoute('GET', '/api/events', 'read', {
      tag: 'events',
      summary:
        'The timeline of all slots as server-sent events; resumes after "Last-Event-ID", and sends "gap" if entries were dropped, and "progress" and "pulls" while images are drawn and models are downloaded',
      input: z.object({ query: EventsQuery, headers: EventsHeaders }),
      answers: {
        200: text(
          'Events "timeline", with an entry as JSON, "gap", "progress", with a slot and how far its request is, or null once it has ended, and "pulls", with what "/api/pulls" answers',
          'text/event-stream; charset=utf-8',
        ),
      },
      handler({ query, headers }, { caller, onClose }) {
        const after = lastEventId(headers['last-event-id'] ?? query.last_event_id);
        const stream = createEventStream(deps, { after, slot: query.slot, caller });
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
    throw new ApiError('request.invalid', '"Last-Event-ID" is invalid: send a whole number', { param: 'Last-Event-ID' });
  return Number(id);
}

/** Shorter than the idle timeouts of common proxies (60 s). */
const HEARTBEAT_MS = 15_000;
/** Consecutive heartbeats that could not be sent before the client is disconnected: a minute without reading. */
const MISSED_HEARTBEATS = 4;

const PULLS_EVERY_MS = 1000;

/** `after`: the last id that the client has received; undefined: only new entries. */
type Wanted = Readonly<{ after: number | undefined; slot: SlotName | undefined; caller: Caller | undefined }>;

/**
 * Keeps a position in the feed instead of entries, so a slow client costs no memory: it gets the entries that are still
 * retained, after a "gap" event if some were dropped. A client that does not read is disconnected and can resume.
 */
function createEventStream(deps: ManageDeps, { after, slot: only, caller }: Wanted): Readable {
  const { stopping, watchProgress, heartbeatMs = HEARTBEAT_MS } = deps;
  const feed = deps.manage.events;
  // The client's id was never assigned: the numbering has started again since.
  const ahead = after !== undefined && after > feed.last();
  let position = ahead ? 0 : (after ?? feed.last());
  let hasRoom = false;
  let missed = 0;
  const progressOf = new Map<string, SlotTraffic['progress']>();
  const stream = new Readable({
    read() {
      hasRoom = true;
      missed = 0;
      pump();
    },
  });

  function send(text: string): void {
    hasRoom = stream.push(text);
  }

  function pump(): void {
    while (hasRoom && !stream.destroyed && !stream.readableEnded) {
      const { entries, gap } = feed.since(position);
      const begin = (entries[0]?.seq ?? feed.last() + 1) - 1;
      if (gap && begin > position) {
        position = begin;
        send(gapNotice(entries[0]?.seq));
        continue;
      }
      if (entries.length === 0) return pumpProgress();
      for (const entry of entries) {
        position = entry.seq;
        if (only === undefined || only === entry.slot) send(eventText(entry, caller));
        if (!hasRoom) return;
      }
    }
  }

  function pumpProgress(): void {
    for (const [slot, progress = null] of progressOf) {
      if (!hasRoom || stream.destroyed || stream.readableEnded) return;
      progressOf.delete(slot);
      send(`event: progress\ndata: ${JSON.stringify({ slot, progress })}\n\n`);
    }
  }

  const stopWatching = watchProgress((slot, progress) => {
    if (only !== undefined && only !== slot) return;
    progressOf.set(slot, progress);
    queueMicrotask(pump);
  });
  let sentPulls = '[]';
  const sendPulls = (): void => {
    const all = viewPulls(deps.board.current(), deps.manage.pulls()).pulls;
    const pulls = showTo(caller, only === undefined ? all : all.filter(({ slot }) => slot === only));
    const text = JSON.stringify(pulls);
    if (!hasRoom || stream.destroyed || text === sentPulls) return;
    sentPulls = text;
    send(`event: pulls\ndata: {"pulls":${text}}\n\n`);
  };
  const pullsTimer = setInterval(sendPulls, PULLS_EVERY_MS);
  pullsTimer.unref();
  // A microtask runs after the entry is in the feed, whenever the feed calls.
  const unsubscribe = feed.subscribe(() => queueMicrotask(pump));
  const heartbeat = setInterval(() => {
    if (hasRoom) send(': heartbeat\n\n');
    else if (++missed >= MISSED_HEARTBEATS) stream.destroy(new Error('Closed an event stream whose client does not read'));
  }, heartbeatMs);
  heartbeat.unref();
  const end = (): void => {
    hasRoom = false;
    stream.push(null);
  };
  stopping.addEventListener('abort', end, { once: true });
  stream.once('close', () => {
    hasRoom = false;
    unsubscribe();
    stopWatching();
    clearInterval(heartbeat);
    clearInterval(pullsTimer);
    stopping.removeEventListener('abort', end);
  });
  // An id first, so that a client that disconnects before the first entry resumes from here.
  send(`retry: 1000\nid: ${position}\n: connected\n\n`);
  if (ahead) send(gapNotice(feed.since(0).entries[0]?.seq));
  return stream;
}

function eventText(entry: TimelineEntry, caller: Caller | undefined): string {
  return `id: ${entry.seq}\nevent: timeline\ndata: ${JSON.stringify(showTo(caller, viewTimelineEntry(entry)))}\n\n`;
}

function gapNotice(oldest: number | undefined): string {
  const message = 'Older entries were dropped; read "/api/slots" again';
  return `event: gap\ndata: ${JSON.stringify({ message, oldest: oldest ?? null })}\n\n`;
}
