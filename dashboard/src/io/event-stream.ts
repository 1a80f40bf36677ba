/**
 * The event stream of the service. It resumes after the last event, and detects silence, so that stale data is never
 * shown as live.
 */
import { SILENCE_MS, retryDelayMs, type Freshness } from '../decide/pace.ts';
import { readEvents, SSE_BEGIN, type ServerEvent } from '../decide/stream-text.ts';
import type { Client } from './client.ts';

export interface EventStreamDeps {
  readonly client: Client;
  readonly onEvent: (event: ServerEvent) => void;
  /** Called for each connection. Earlier changes must be loaded. */
  readonly onOpen: () => void;
  readonly onFreshness: (freshness: Freshness) => void;
}

export interface EventConnection {
  /** Skips the back-off, e.g. after the user has entered a token. */
  retryNow(): void;
}

export function connectEvents({ client, onEvent, onOpen, onFreshness }: EventStreamDeps): EventConnection {
  // All events that the service still has, for the Activity page.
  let lastId = '0';
  let attempt = 0;
  let skipWait = (): void => undefined;

  async function readOnce(): Promise<void> {
    const quiet = new AbortController();
    let timer = setTimeout(() => quiet.abort(), SILENCE_MS);
    try {
      const response = await client.fetch('/api/events', { lastEventId: lastId, signal: quiet.signal, mayRepeat: false });
      onFreshness('live');
      onOpen();
      attempt = 0;
      let rest = { ...SSE_BEGIN, id: lastId };
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
        clearTimeout(timer);
        timer = setTimeout(() => quiet.abort(), SILENCE_MS);
        const read = readEvents(rest, part.value);
        rest = read.rest;
        for (const event of read.events) onEvent(event);
        lastId = rest.id;
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async function run(): Promise<never> {
    for (;;) {
      await readOnce().catch(() => undefined);
      onFreshness('stale');
      await new Promise<void>((resolve) => {
        skipWait = resolve;
        setTimeout(resolve, retryDelayMs(attempt, Math.random()));
      });
      attempt += 1;
    }
  }

  void run();
  window.addEventListener('online', () => skipWait());
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) skipWait();
  });
  return { retryNow: () => skipWait() };
}
