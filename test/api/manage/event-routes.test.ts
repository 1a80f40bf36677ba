import { ModelId } from '../../../src/schema/words/names.ts';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SlotName } from '../../../src/schema/words/names.ts';
import { startWorld, type World } from './world.ts';

const primary = SlotName.parse('primary');
const embed = SlotName.parse('embed');

let world: World;
beforeEach(async () => {
  world = await startWorld({ heartbeatMs: 40, keptEntries: 50 });
});
afterEach(() => world.close());

const add = (message: string, slot = primary): void => world.feed.add({ at: Date.now(), slot, kind: 'action', message });

/** Reads events until `done` holds, closes the connection and returns all text so far. */
async function listen(path: string, done: (text: string) => boolean, headers: Record<string, string> = {}): Promise<string> {
  const stop = new AbortController();
  const response = await fetch(world.url + path, { headers, signal: stop.signal });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  expect(response.headers.get('x-accel-buffering')).toBe('no');
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (done(text)) break;
  }
  stop.abort();
  return text;
}

/** Resolves when a client is subscribed; entries before that would not be sent to it. */
async function connected(): Promise<void> {
  while (world.feed.listeners() === 0) await sleep(5);
}

const messages = (text: string): string[] => [...text.matchAll(/"message":"([^"]*)"/g)].map(([, message = '']) => message);
const ids = (text: string): number[] => [...text.matchAll(/^id: (\d+)\nevent: timeline$/gm)].map(([, id]) => Number(id));

describe('GET /api/events', () => {
  test('sends new entries with ids, and heartbeats in between', async () => {
    add('before');
    const reading = listen('/api/events', (text) => text.includes('after 2') && text.includes(': heartbeat'));
    await connected();
    add('after 1');
    add('after 2');
    const text = await reading;
    expect(messages(text)).toEqual(['after 1', 'after 2']);
    expect(ids(text)).toEqual([2, 3]);
  });

  test('resumes after Last-Event-ID without losing or repeating an entry', async () => {
    for (let index = 1; index <= 20; index++) add(`entry ${index}`);
    const first = await listen('/api/events?last_event_id=0', (text) => text.includes('entry 8"'));
    const seen = ids(first).filter((id) => id <= 8);
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const second = await listen('/api/events', (text) => text.includes('entry 20"'), { 'last-event-id': '8' });
    expect(ids(second)).toEqual([9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
    expect(second).not.toContain('event: gap');
  });

  test('reports how far requests are, without an id, and that they have ended', async () => {
    const reading = listen('/api/events?slot=primary', (text) => text.includes('"progress":null'));
    await connected();
    world.feed.reportProgress(embed, { done: 1, total: 2 });
    world.feed.reportProgress(primary, { done: 3, total: 20 });
    await sleep(20);
    world.feed.reportProgress(primary, undefined);
    const text = await reading;
    expect(text).toContain('\n\nevent: progress\ndata: {"slot":"primary","progress":{"done":3,"total":20}}\n\n');
    expect(text).toContain('event: progress\ndata: {"slot":"primary","progress":null}\n\n');
    expect(text).not.toContain('embed');
    while (world.feed.reportProgress(primary, undefined) > 0) await sleep(5);
  });

  test('reports how far downloads are, and that they have ended or failed', async () => {
    const [id, progress] = [ModelId.parse('bge-m3'), { what: 'bge-m3-q8_0.gguf', doneBytes: 5, totalBytes: 10 }];
    world.pulls = [{ id, progress, failure: undefined }];
    const reading = listen('/api/events', (text) => text.includes('"failed":true'));
    await connected();
    await sleep(1200);
    const failure = { kind: 'retry', reason: 'ModelPullFailed', message: 'getaddrinfo ENOTFOUND hub.invalid' } as const;
    world.pulls = [{ id, progress: undefined, failure }];
    const text = await reading;
    world.pulls = [];
    expect(text).toMatch(/\n\nevent: pulls\ndata: \{"pulls":\[\{.*"done_bytes":5,.*"model":"bge-m3".*\}\]\}\n\n/);
    expect(text).toContain('"message":"getaddrinfo ENOTFOUND hub.invalid"');
    expect(text.match(/event: pulls/g)).toHaveLength(2);
  });

  test('reports dropped entries and continues with the oldest retained one', async () => {
    for (let index = 1; index <= 80; index++) add(`entry ${index}`);
    const text = await listen('/api/events', (all) => all.includes('entry 80"'), { 'last-event-id': '5' });
    expect(text.match(/event: gap/g)).toHaveLength(1);
    expect(text).toContain('"oldest":31');
    expect(ids(text)[0]).toBe(31);
  });

  test('reports a gap to a client whose last id is ahead of the feed', async () => {
    add('entry 1');
    const text = await listen('/api/events', (all) => all.includes('entry 1"'), { 'last-event-id': '900' });
    expect(text).toContain('event: gap');
  });

  test('can be limited to one slot', async () => {
    const reading = listen('/api/events?slot=embed', (text) => text.includes('mine'));
    await connected();
    add('other');
    add('mine', embed);
    expect(messages(await reading)).toEqual(['mine']);
  });

  test('unsubscribes a client that disconnects', async () => {
    await listen('/api/events', (text) => text.includes('connected'));
    while (world.feed.listeners() > 0) await sleep(5);
    await fetch(`${world.url}/api/events`, { method: 'HEAD' });
    while (world.feed.listeners() > 0) await sleep(5);
  });

  test('refuses an id that is not a number', async () => {
    const response = await fetch(`${world.url}/api/events`, { headers: { 'last-event-id': 'x1' } });
    expect(response.status).toBe(400);
    expect(JSON.parse(await response.text()).error.param).toBe('Last-Event-ID');
  });

  test('disconnects a client that never reads, and uses almost no memory for it until then', async () => {
    const { port } = new URL(world.url);
    const socket = connect(Number(port), '127.0.0.1');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    socket.pause();
    socket.write('GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await connected();
    const before = process.memoryUsage().heapUsed + process.memoryUsage().external;
    // 60 MB in all: far more than the system's socket buffers take.
    const text = 'x'.repeat(20_000);
    for (let index = 0; index < 3000 && world.feed.listeners() > 0; index++) {
      add(text);
      if (index % 20 === 0) await sleep(1);
    }
    const held = process.memoryUsage().heapUsed + process.memoryUsage().external - before;
    while (world.feed.listeners() > 0) await sleep(10);
    expect(held).toBeLessThan(40e6);
    socket.resume();
    await closed;
  });
});
