/**
 * What open pages of the dashboard ask of the service, without a browser, which would need more of the machine than the service. Each does as `dashboard/src/io/store.ts`: it
 * reads the list, has the stream of events, asks every two seconds for what has changed, and after events for the slots that have.
 */
import { request, type ClientRequest } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';

const EVERY_MS = 2000;
const PAGE = 500;
const Status = z.object({ slots_version: z.string() });
const List = z.object({ version: z.string(), continue: z.string().nullable() });

export interface Viewers {
  /** Resolves once each page has read the whole list. */
  readonly opened: Promise<void>;
  stop(): Promise<void>;
}

export function startViewers(url: string, count: number): Viewers {
  const ended = new AbortController();
  const streams: ClientRequest[] = [];
  const read = async (path: string): Promise<unknown> =>
    await (await fetch(`${url}${path}`, { headers: { 'accept-encoding': 'gzip' } })).json();
  async function readList(since: string): Promise<string> {
    const query = `/api/slots?limit=${PAGE}${since === '' ? '' : `&since=${encodeURIComponent(since)}`}`;
    let page = List.parse(await read(query));
    const { version } = page;
    while (page.continue !== null) page = List.parse(await read(`${query}&continue=${encodeURIComponent(page.continue)}`));
    return version;
  }
  async function view(version: string): Promise<void> {
    let hasEvents = false;
    streams.push(openStream(url, () => (hasEvents = true)));
    for (let [since, list] = ['', version]; !ended.signal.aborted;) {
      since = Status.parse(await read(`/api/status?since=${encodeURIComponent(since)}`)).slots_version;
      if (hasEvents) list = await readList(list);
      hasEvents = false;
      await pause(EVERY_MS, undefined, { signal: ended.signal }).catch(() => undefined);
    }
  }
  const lists = Array.from({ length: count }, async (_, index) => {
    // Pages are not opened at the same time.
    await pause((index * EVERY_MS) / count);
    return await readList('');
  });
  const views = lists.map(async (list) => view(await list));
  return {
    opened: Promise.all(lists).then(() => undefined),
    async stop() {
      ended.abort();
      await Promise.all(views);
      for (const stream of streams) stream.destroy();
    },
  };
}

function openStream(url: string, onEvents: () => void): ClientRequest {
  const stream = request(`${url}/api/events`, { headers: { 'last-event-id': '0' }, agent: false });
  // Comments keep the stream alive, and are no events.
  stream.on('response', (answer) =>
    answer.on('data', (bytes: Buffer) => bytes.includes('data:') && onEvents()).on('error', () => undefined),
  );
  stream.on('error', () => undefined);
  stream.end();
  return stream;
}
