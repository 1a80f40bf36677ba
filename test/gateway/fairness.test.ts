/** Callers take turns at a slot with `max_in_flight`, through the whole gateway: one floods it, another one asks now and then. */
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccessDecision } from '../../src/auth/decide/decide-access.ts';
import type { CallerLimits } from '../../src/schema/words/caller-limits.ts';
import { PARK, publish, slotName, type SlotSketch } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, errorOf, post, type Reply } from './support/client.ts';
import { sendJson, startUpstream, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const limits = new Map<string, CallerLimits>();
let gateway: GatewayFixture;
let upstream: FakeUpstream;
/** Names of requests in the order in which the server got them, and those that it has not answered. */
let got: string[];
let open: ServerResponse[];

function authorize(_access: unknown, { rawHeaders }: { readonly rawHeaders: readonly string[] }): AccessDecision {
  const name = rawHeaders[rawHeaders.indexOf('x-who') + 1] ?? '';
  return { ok: true, caller: { key: `token:${name}`, identity: name, scope: 'v1-only', limits: limits.get(name) } };
}

beforeEach(async () => {
  expect.hasAssertions();
  limits.clear();
  [got, open] = [[], []];
  upstream = await startUpstream({
    answer({ body }, res) {
      got.push(String(/"name":"([^"]+)"/.exec(body.toString('latin1'))?.[1]));
      open.push(res);
    },
  });
  gateway = await startGateway({ authorize, settings: { SVC_PARK_LIMIT: '1000', SVC_PARK_TIMEOUT: '300s' } });
});
afterEach(async () => {
  expect(gateway.faults).toEqual([]);
  await gateway.close();
  await upstream.kill();
});

const opened = (name: string, most?: number): SlotSketch => ({
  name,
  targets: [{ workload: `w-${name}`, port: upstream.port }],
  ...(most === undefined ? {} : { limits: { maxInFlight: most } }),
});
const ask = async (who: string, name: string, model = 'primary'): Promise<Reply> =>
  await post(gateway.port, CHAT, chatBody({ model, name }), { headers: { 'x-who': who } });
const askMany = (who: string, count: number, model = 'primary'): readonly Promise<Reply>[] =>
  Array.from({ length: count }, async (_, index) => await ask(who, `${who} ${index}`, model));
const waiting = (slot = 'primary'): number => gateway.traffic.ofSlot(slotName(slot)).parked;
const inFlight = (slot = 'primary'): number => gateway.traffic.ofSlot(slotName(slot)).inFlight;

async function answerOne(): Promise<void> {
  await until(() => open.length > 0);
  const res = open.shift();
  if (res !== undefined) sendJson(res, 200, { choices: [] });
}

async function answerAll(replies: readonly Promise<Reply>[]): Promise<void> {
  const [all, isDone] = [Promise.all(replies), { yet: false }];
  const watched = all.then(() => (isDone.yet = true));
  while (!isDone.yet) {
    while (open.length > 0) await answerOne();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await watched;
  for (const { status } of await all) expect(status).toBe(200);
}

/** How many requests the server got between the moment at which one was sent and its turn. */
async function turnsUntilServed(who: string, name: string, model?: string): Promise<{ turns: number; reply: Promise<Reply> }> {
  const slot = model ?? 'primary';
  const before = waiting(slot);
  const reply = ask(who, name, model);
  await until(() => waiting(slot) === before + 1);
  const served = got.length;
  while (!got.includes(name)) {
    const count = got.length;
    await answerOne();
    await until(() => got.length > count);
  }
  return { turns: got.indexOf(name) - served, reply };
}

describe('A flood of 500 requests of one caller', () => {
  test('lets another one that asks now and then wait for one turn each time, and all are answered', async () => {
    publish(gateway.board, opened('primary', 4));
    const flood = askMany('flood', 500);
    await until(() => waiting() === 496 && got.length === 4);
    const others: Promise<Reply>[] = [];
    for (let asked = 0; asked < 20; asked += 1) {
      const { turns, reply } = await turnsUntilServed('other', `other ${asked}`);
      expect(turns).toBeLessThanOrEqual(1);
      expect(inFlight()).toBe(4);
      others.push(reply);
      for (let more = 0; more < 3; more += 1) await answerOne();
      await until(() => open.length === 4);
    }
    await answerAll([...flood, ...others]);
    expect(got).toHaveLength(520);
    expect([waiting(), inFlight()]).toEqual([0, 0]);
  });

  test('does so while two models take turns in memory', async () => {
    publish(gateway.board, opened('primary', 2), { name: 'second', admission: PARK });
    const flood = [...askMany('flood', 60), ...askMany('flood second', 60, 'second')];
    await until(() => waiting() === 58 && waiting('second') === 60);
    const others: Promise<Reply>[] = [];
    for (let swap = 0; swap < 6; swap += 1) {
      const [now, later] = swap % 2 === 0 ? ['primary', 'second'] : ['second', 'primary'];
      const before = waiting(later);
      const early = ask('other', `early ${swap}`, later);
      await until(() => waiting(later) === before + 1);
      const { turns, reply } = await turnsUntilServed('other', `other ${swap}`, now);
      expect(turns).toBeLessThanOrEqual(1);
      // The other model gets the memory: requests that wait stay, and those in flight end first.
      publish(gateway.board, { name: now, admission: PARK }, { name: later, admission: PARK });
      while (inFlight(now) > 0) {
        const count = inFlight(now);
        await answerOne();
        await until(() => inFlight(now) < count);
      }
      const served = got.length;
      publish(gateway.board, { name: now, admission: PARK }, opened(later, 2));
      await until(() => got.length === served + 2);
      expect(got.slice(served)).toContain(`early ${swap}`);
      others.push(reply, early);
    }
    publish(gateway.board, opened('primary', 2), opened('second', 2));
    await answerAll([...flood, ...others]);
  });

  test('is passed on at once where the slot has no limit', async () => {
    publish(gateway.board, opened('primary'));
    const flood = askMany('flood', 100);
    await until(() => got.length === 100);
    expect([waiting(), inFlight()]).toEqual([0, 100]);
    await answerAll(flood);
  });
});

describe('Waiting requests', () => {
  test('get shares by weight, and higher classes come first', async () => {
    limits.set('heavy', { weight: 3 });
    limits.set('urgent', { priority: 'high' });
    publish(gateway.board, { name: 'primary', admission: PARK });
    const callers = ['light', 'heavy'].flatMap((who) => askMany(who, 40));
    await until(() => waiting() === 80);
    const urgent = askMany('urgent', 3);
    await until(() => waiting() === 83);
    publish(gateway.board, opened('primary', 1));
    await answerAll([...callers, ...urgent]);
    expect(got.slice(0, 3).every((name) => name.startsWith('urgent'))).toBe(true);
    expect(got.slice(3, 43).filter((name) => name.startsWith('heavy'))).toHaveLength(30);
  });

  test('follow an edit of the limit, are refused beyond "max_queue", and leave with their client', async () => {
    publish(gateway.board, { ...opened('primary', 1), limits: { maxInFlight: 1, maxQueue: 3 } });
    const first = ask('a', 'first');
    await until(() => got.length === 1);
    const leaving = begin(gateway.port, CHAT, { 'x-who': 'b' });
    leaving.end(chatBody({ name: 'leaving' }));
    await until(() => waiting() === 1);
    const some = askMany('c', 2);
    await until(() => waiting() === 3);
    const refused = await ask('d', 'refused');
    expect([refused.status, errorOf(refused.text)]).toMatchObject([429, { code: 'slot.queue_full' }]);
    expect(errorOf(refused.text).message).toContain('3 waiting requests already ("max_queue")');
    leaving.destroy();
    await until(() => waiting() === 2);
    publish(gateway.board, opened('primary', 2));
    await until(() => got.length === 2 && waiting() === 1);
    publish(gateway.board, opened('primary'));
    await until(() => got.length === 3 && waiting() === 0);
    await answerAll([first, ...some]);
    expect(got).not.toContain('leaving');
  });

  test('are in use, and no demand for a load', async () => {
    publish(gateway.board, opened('primary', 1));
    const both = askMany('a', 2);
    await until(() => waiting() === 1);
    const demand = () => gateway.traffic.read().demand.get(slotName('primary'));
    expect(demand()).toMatchObject({ waiting: 1, waitingSince: undefined });
    const at = performance.now();
    publish(gateway.board, { name: 'primary', admission: PARK });
    expect(demand()?.waitingSince).toBeGreaterThanOrEqual(at);
    publish(gateway.board, opened('primary', 1));
    expect(demand()).toMatchObject({ waiting: 1, waitingSince: undefined });
    await answerAll(both);
  });

  test('go to the next server when theirs dies, without more in flight than allowed', async () => {
    publish(gateway.board, opened('primary', 1));
    const all = askMany('a', 5);
    await until(() => waiting() === 4);
    open.shift()?.socket?.destroy();
    await until(() => open.length === 1);
    expect(inFlight()).toBe(1);
    await answerAll(all);
  });

  test('are told when they have waited for too long', async () => {
    await gateway.close();
    gateway = await startGateway({ authorize, settings: { SVC_PARK_TIMEOUT: '50ms' } });
    publish(gateway.board, opened('primary', 1));
    const first = ask('a', 'first');
    await until(() => got.length === 1);
    const late = await ask('b', 'late');
    expect([late.status, errorOf(late.text)]).toMatchObject([429, { code: 'slot.queue_full' }]);
    expect(late.headers['retry-after']).toBeDefined();
    await answerAll([first]);
  });
});
