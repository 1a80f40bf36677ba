/** Random slots that name each other, servers that fail in random ways, and a board that changes all the time. */
import { expect, test } from '@jest/globals';
import { MOST_MOVES } from '../../src/gateway/route/decide/fall-back.ts';
import { createRandom, type Random } from '../support/simulation/seeded-random.ts';
import { DISABLED, PARK, publish, slotName, type SlotSketch } from './support/board-fixture.ts';
import { begin, CHAT, chatBody, type Reply, post } from './support/client.ts';
import { sendJson, startUpstream, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const SEEDS = Array.from({ length: 12 }, (_, index) => index + 1);
const REQUESTS = 60;
const UNSURE = ['a', 'b', 'c'];
const CONDITIONS = [
  ['stalled', 'upstream.failed', 'loading > 0s'],
  ['stalled', 'upstream.failed', 'loading > 5ms', 'queue > 1'],
  ['stalled', 'upstream.failed', 'loading > 20ms', 'queue > 3'],
];
/** How a server ends a request, and how likely that is. */
const ENDS = { answers: 0.4, late: 0.1, dies: 0.15, fails: 0.1, refuses: 0.05, cuts: 0.1, hangs: 0.1 } as const;
type End = keyof typeof ENDS;

interface Attempt {
  readonly slot: string;
  readonly end: End;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const pick = <Each>(random: Random, from: readonly Each[]): Each | undefined => from[Math.floor(random.next() * from.length)];

function drawEnd(random: Random): End {
  let left = random.next();
  for (const end of ['answers', 'late', 'dies', 'fails', 'refuses', 'cuts'] as const) {
    left -= ENDS[end];
    if (left < 0) return end;
  }
  return 'hangs';
}

/** Notes each request by its id, and ends it as it draws. */
async function startServer(slot: string, random: Random | undefined, attempts: Map<string, Attempt[]>): Promise<FakeUpstream> {
  return await startUpstream({
    async answer({ body }, res, socket) {
      const id = String(/"id":"(\d+)"/.exec(body.toString('latin1'))?.[1]);
      const end = random === undefined ? 'answers' : drawEnd(random);
      attempts.set(id, [...(attempts.get(id) ?? []), { slot, end }]);
      if (end === 'late') await pause(10);
      if (end === 'answers' || end === 'late') sendJson(res, 200, { slot, id });
      else if (end === 'dies') socket.destroy();
      else if (end === 'fails') sendJson(res, 500, { error: { message: 'Broken' } });
      else if (end === 'refuses') sendJson(res, 400, { error: { message: 'Your mistake' } });
      else if (end === 'cuts') {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write(`data: ${slot}\n\n`, () => socket.destroy());
      }
    },
  });
}

function drawFallback(random: Random, name: string): NonNullable<SlotSketch['fallback']> {
  const others = [...UNSURE].filter((each) => each !== name && random.next() < 0.6).toSorted(() => random.next() - 0.5);
  const split = random.next() < 0.4 ? { split: { [pick(random, UNSURE) ?? 'a']: 30 } } : {};
  return { to: [...others, 'safe'], when: [...(pick(random, CONDITIONS) ?? ['stalled'])], ...split };
}

/** Stops the workloads of slots that are no longer open, as the executor does. */
function publishRandom(
  gateway: GatewayFixture,
  random: Random,
  fallbacks: ReadonlyMap<string, SlotSketch['fallback']>,
  ports: ReadonlyMap<string, readonly number[]>,
): void {
  const before = [...gateway.board.current().slots.values()];
  const unsure = UNSURE.map((name): SlotSketch => {
    const fallback = fallbacks.get(name);
    const drawn = random.next();
    if (drawn < 0.25) return { name, fallback, admission: PARK };
    if (drawn < 0.35) return { name, fallback, admission: DISABLED };
    const targets = (ports.get(name) ?? [])
      .slice(0, random.next() < 0.5 ? 1 : 2)
      .map((port, index) => ({ workload: `w-${name}-${index}`, port }));
    return { name, fallback, targets };
  });
  const safe = (ports.get('safe') ?? []).map((port) => ({ workload: 'w-safe', port }));
  publish(gateway.board, ...unsure, { name: 'safe', targets: safe });
  const offered = new Set([...gateway.board.current().slots.values()].flatMap(({ targets }) => targets.map(({ workload }) => workload)));
  for (const { workload } of before.flatMap(({ targets }) => targets)) if (!offered.has(workload)) gateway.traffic.abort(workload);
}

/**
 * What is wrong with a request. The servers may see attempts in another order than the gateway made them, and some that
 * it had given up already.
 */
function faultOf(
  { status, text, headers }: Reply,
  { asked, isLarge }: { readonly asked: string; readonly isLarge: boolean },
  attempts: readonly Attempt[],
): string | undefined {
  const last = String(headers['x-svc-slot'] ?? asked);
  const ends = attempts.filter(({ slot }) => slot === last).map(({ end }) => end);
  const left = String(headers['x-svc-fallback'] ?? '')
    .matchAll(/(?<!split); from=([a-z]+)/g)
    .map(([, name]) => name)
    .toArray();
  if (new Set([...left, last]).size < left.length + 1) return 'visited a slot twice';
  if (left.length > MOST_MOVES) return 'moved too often';
  if (asked === 'safe' && (left.length > 0 || headers['x-svc-slot'] !== undefined)) return 'moved without a fallback';
  if (status === 200 && text.startsWith('data: ')) {
    const error = String.raw`data: \{"error":\{[^\n]*\n\n`;
    return ends.includes('cuts') && new RegExp(`^data: ${last}\n\n${error}$`).test(text) ? undefined : 'continued by another answer';
  }
  if (status === 200)
    return Object(JSON.parse(text)).slot === last && (ends.includes('answers') || ends.includes('late'))
      ? undefined
      : 'answered by another slot';
  if (status === 400) return ends.includes('refuses') ? undefined : 'refused by nobody';
  // It cannot be sent again, or it has killed three servers.
  if (isLarge && attempts.length <= 1) return undefined;
  return status === 502 && attempts.filter(({ end }) => end === 'dies').length >= 3 ? undefined : 'lost';
}

test.each(SEEDS)(
  'with the seed %i, each request is answered once, in one place, and none is lost that could be saved',
  async (seed) => {
    const random = createRandom(seed);
    const attempts = new Map<string, Attempt[]>();
    const gateway = await startGateway({ processes: 1 });
    const servers: FakeUpstream[] = [];
    const ports = new Map<string, readonly number[]>();
    for (const [name, count] of [...UNSURE.map((each) => [each, 2] as const), ['safe', 1] as const]) {
      const own = await Promise.all(Array.from({ length: count }, () => startServer(name, name === 'safe' ? undefined : random, attempts)));
      servers.push(...own);
      ports.set(
        name,
        own.map(({ port }) => port),
      );
    }
    const fallbacks = new Map(UNSURE.map((name) => [name, drawFallback(random, name)]));
    publishRandom(gateway, random, fallbacks, ports);
    const faults: string[] = [];
    let left = 0;
    let pending = REQUESTS;
    const sent = Array.from({ length: REQUESTS }, async (_, index) => {
      await pause(random.next() * 300);
      const asked = pick(random, [...UNSURE, 'safe']) ?? 'a';
      const id = String(index);
      // A body of more than 1 MiB flows to its server, unless its request had to wait.
      const body = chatBody({ model: asked, id, pad: 'x'.repeat(random.next() < 0.9 ? 100 : 1_200_000) });
      if (random.next() < 0.1) {
        left += 1;
        const req = begin(gateway.port, CHAT, { 'content-length': body.length });
        req.end(body);
        await pause(random.next() * 20);
        req.destroy();
      } else {
        const reply = await post(gateway.port, CHAT, body);
        const seen = attempts.get(id) ?? [];
        const fault = faultOf(reply, { asked, isLarge: body.length > 1_000_000 }, seen);
        const { status, text, headers } = reply;
        if (fault !== undefined) faults.push(`${id} for "${asked}" ${fault}: ${status} ${text} ${JSON.stringify([headers, seen])}`);
      }
      pending -= 1;
    });
    while (pending > 0) {
      await pause(random.next() * 20);
      publishRandom(gateway, random, fallbacks, ports);
    }
    await Promise.all(sent);
    expect(faults).toEqual([]);
    await until(() => gateway.gateway.load().requests === 0);
    expect(gateway.finished.length).toBeGreaterThanOrEqual(REQUESTS - left);
    expect(gateway.finished.length).toBeLessThanOrEqual(REQUESTS);
    expect(gateway.finished.some(({ moves = [] }) => moves.length > 0)).toBe(true);
    expect([...UNSURE, 'safe'].map((name) => gateway.traffic.holds.inFlight(slotName(name)))).toEqual([0, 0, 0, 0]);
    expect(gateway.gateway.load().bufferedBytes).toBe(0);
    expect(gateway.faults).toEqual([]);
    await gateway.close();
    await Promise.all(servers.map((server) => server.kill()));
  },
  60_000,
);
