import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Reader } from '../../../src/reconciler/board.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { startWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await startWorld();
  world.save(SlotName.parse('primary'), '[model]\ndefault = "a"\n');
  await world.idle();
});
afterEach(() => world.close());

describe('GET /api/slots/{name}/logs', () => {
  test('sends the last lines as plain text', async () => {
    world.logs.set('primary', ['one', 'two', 'three']);
    const response = await fetch(`${world.url}/api/slots/primary/logs?tail=2`);
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(await response.text()).toBe('two\nthree\n');
  });

  test('with follow stays open, and closes the runtime’s stream when the client disconnects', async () => {
    world.logs.set('primary', ['one']);
    const stop = new AbortController();
    const response = await fetch(`${world.url}/api/slots/primary/logs?follow=1`, { signal: stop.signal });
    const { value } = (await response.body?.getReader().read()) ?? {};
    expect(new TextDecoder().decode(value)).toBe('one\n');
    expect(world.openLogs()).toBe(1);
    stop.abort();
    while (world.openLogs() > 0) await sleep(5);
  });

  test('reports that there is no workload, sends what the last one that failed logged, and refuses a tail that is not a number', async () => {
    const response = await fetch(`${world.url}/api/slots/primary/logs`);
    expect(response.headers.get('x-svc-workload')).toBe('none');
    expect(await response.text()).toBe('');
    const board = world.board.current();
    const slots = new Map([...board.slots].map(([name, slot]) => [name, { ...slot, lastLog: ['loading', 'error: damaged'] }]));
    world.board.publish({ ...board, slots });
    const ended = await fetch(`${world.url}/api/slots/primary/logs?tail=1`);
    expect(ended.headers.get('x-svc-workload')).toBe('ended');
    expect(await ended.text()).toBe('error: damaged\n');
    const refused = await fetch(`${world.url}/api/slots/primary/logs?tail=-1`);
    expect(JSON.parse(await refused.text()).error).toMatchObject({ code: 'request.invalid', param: 'tail' });
    expect((await fetch(`${world.url}/api/slots/other/logs`)).status).toBe(404);
  });
});

describe('timeline and explain', () => {
  test('timeline returns the newest entries, oldest first', async () => {
    const response = await fetch(`${world.url}/api/slots/primary/timeline?limit=1`);
    const { entries } = JSON.parse(await response.text());
    expect(entries).toEqual([expect.objectContaining({ slot: 'primary', kind: 'state', from: 'warming', to: 'ready', seq: 2 })]);
    expect(new Date(entries[0].at).toISOString()).toBe(entries[0].at);
  });

  test.each([
    ['admin', 'true laptop user:anna'],
    ['all', 'true laptop user:anna'],
    ['read-only', 'false undefined undefined'],
  ] as const)('explain for a token of the scope %s shows logs and callers or neither: %s', async (scope, text) => {
    await world.close();
    world = await startWorld({ authorize: () => ({ ok: true, caller: { key: 'token:2', identity: 'x', scope } }) });
    await world.tokens.change(
      () => new Map([['1a2b3c4d', { label: 'laptop', scope: 'v1-only', created_at: '2026-01-01T00:00:00Z', hash: 'hash' }]]),
    );
    world.save(SlotName.parse('primary'), '[model]\ndefault = "a"\n');
    await world.idle();
    const board = world.board.current();
    const explain = (_now: number, reader?: Reader): string =>
      [reader?.readsLogs, reader?.nameOf('token:1a2b3c4d'), reader?.nameOf('user:anna')].join(' ');
    world.board.publish({ ...board, slots: new Map([...board.slots].map(([name, slot]) => [name, { ...slot, explain }])) });
    const answer = await fetch(`${world.url}/api/slots/primary/explain`);
    expect(JSON.parse(await answer.text()).text).toBe(text.replaceAll('undefined', ''));
  });

  test('explain returns the board’s explanation', async () => {
    const response = await fetch(`${world.url}/api/slots/primary/explain`);
    expect(JSON.parse(await response.text())).toEqual({
      name: 'primary',
      text: 'slot primary: ready\n  because the model is "a"',
      problems: [],
      workloads: [],
      memory: null,
    });
  });

  test('explain lists the workloads', async () => {
    const one = { name: 'svc-slot-primary', phase: 'running', serving: true, generation: 1, pid: 4711, inFlight: 2 } as const;
    world.workloads.set('primary', [
      { ...one, startedAt: '2026-01-01T00:00:00Z', container: null, memoryBytes: 5, deviceMemoryBytes: null, message: null },
    ]);
    const response = await fetch(`${world.url}/api/slots/primary/explain`);
    expect(JSON.parse(await response.text()).workloads).toEqual([
      {
        name: 'svc-slot-primary',
        phase: 'running',
        serving: true,
        generation: 1,
        started_at: '2026-01-01T00:00:00Z',
        pid: 4711,
        container: null,
        in_flight: 2,
        memory_bytes: 5,
        device_memory_bytes: null,
        message: null,
      },
    ]);
  });
});
