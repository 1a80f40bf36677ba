/**
 * The timeline as server-sent events for one client. The stream holds a place in the feed and no entries of its own, so a client that
 * reads slowly costs no memory: it gets what the feed still keeps, with a notice when that begins later than where it was. One
 * that does not read at all is cut; it comes back with `Last-Event-ID`.
 */
import { Readable } from 'node:stream';
import type { TimelineEntry } from '../../schema/slot-status.ts';
import type { EventFeed } from '../ports.ts';
import { viewTimelineEntry } from './decide/timeline-view.ts';

/** Below the idle limits of common proxies (60 s). */
const HEARTBEAT_MS = 15_000;
/** Heartbeats in a row for which there was no room: a minute without reading. */
const MISSED_HEARTBEATS = 4;

export interface EventStreamOptions {
  /** The last id the client has seen; undefined: only what comes from now on. */
  readonly after: number | undefined;
  /** Only this slot's entries. */
  readonly slot: string | undefined;
  readonly signal: AbortSignal;
  readonly heartbeatMs?: number | undefined;
}

export type Feed = Pick<EventFeed, 'since' | 'last' | 'subscribe'>;

export function createEventStream(feed: Feed, options: EventStreamOptions): Readable {
  // An id that was never given out: the controller's memory is younger than the client's.
  const ahead = options.after !== undefined && options.after > feed.last();
  let place = ahead ? 0 : (options.after ?? feed.last());
  let hasRoom = false;
  let missed = 0;
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
      const { entries, gap } = feed.since(place);
      const begin = (entries[0]?.seq ?? feed.last() + 1) - 1;
      if (gap && begin > place) {
        place = begin;
        send(gapNotice(entries[0]?.seq));
        continue;
      }
      if (entries.length === 0) return;
      for (const entry of entries) {
        place = entry.seq;
        if (options.slot === undefined || options.slot === entry.slot) send(eventText(entry));
        if (!hasRoom) return;
      }
    }
  }

  // Later in the same turn, so that the entry stands in the feed whenever the feed calls, and a burst costs one pump.
  const unsubscribe = feed.subscribe(() => queueMicrotask(pump));
  const heartbeat = setInterval(() => {
    if (hasRoom) send(': heartbeat\n\n');
    else if (++missed >= MISSED_HEARTBEATS) stream.destroy(new Error('Cut an event stream whose client does not read'));
  }, options.heartbeatMs ?? HEARTBEAT_MS);
  heartbeat.unref();
  const end = (): void => {
    hasRoom = false;
    stream.push(null);
  };
  options.signal.addEventListener('abort', end, { once: true });
  stream.once('close', () => {
    hasRoom = false;
    unsubscribe();
    clearInterval(heartbeat);
    options.signal.removeEventListener('abort', end);
  });
  // An id first, so that a client that is cut before the first entry resumes from here.
  send(`retry: 1000\nid: ${place}\n: connected\n\n`);
  if (ahead) send(gapNotice(feed.since(0).entries[0]?.seq));
  return stream;
}

function eventText(entry: TimelineEntry): string {
  return `id: ${entry.seq}\nevent: timeline\ndata: ${JSON.stringify(viewTimelineEntry(entry))}\n\n`;
}

function gapNotice(oldest: number | undefined): string {
  const message = 'Older entries are gone; read /api/slots again';
  return `event: gap\ndata: ${JSON.stringify({ message, oldest: oldest ?? null })}\n\n`;
}
