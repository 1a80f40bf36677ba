/** Gateways of two processes each that share limits through a server in memory, with the time of jest. */
import { createSharedLimits } from '../../../src/gateway/limits/shared-limits.ts';
import { createValkeyCounts, type Connect } from '../../../src/gateway/limits/valkey-counts.ts';
import { shareOf } from '../../../src/gateway/limits/decide/count-report.ts';
import { createCallerLimits, createLocalAccounts, type AdmitCaller } from '../../../src/gateway/traffic/admit-caller.ts';
import type { CallerLimits } from '../../../src/schema/words/caller-limits.ts';
import { createLeasedAccounts } from '../../../src/turbo/workers/leased-limits.ts';
import { createLender } from '../../../src/turbo/workers/lent-limits.ts';
import type { Random } from '../../support/simulation/seeded-random.ts';
import { createInMemoryCounts } from '../../support/valkey/in-memory-counts.ts';

export const KEY = 'token:1a2b3c4d';
export const SETTLED_MS = 8000;

export const now = (): number => Date.now();
export const sleep = async (ms: number): Promise<void> => await new Promise((resolve) => setTimeout(resolve, ms));
const CLOCK = {
  now,
  at(at: number, callback: () => void) {
    const timer = setTimeout(callback, at - now());
    return () => clearTimeout(timer);
  },
};

const urlOf = (gateway: number): string => `redis://valkey/${gateway}`;

/** A server whose connections are delayed by 1 to `latencyMs`, and may break before or after it has computed. */
export function createServer(random: Random, latencyMs: number, breaks = 0) {
  let offsetMs = 0;
  const counts = createInMemoryCounts(() => now() + offsetMs);
  /** By connection: the gateway, as its URL names it. */
  const ends = new Map<(reason: string) => void, string>();
  const cutOff = new Set<string>();
  let isUp = true;
  let thawed: Promise<void> | undefined;
  const connect: Connect = async ({ url }, onEnd) => {
    await sleep(random.int(1, latencyMs));
    if (!isUp || cutOff.has(url)) throw new Error('connect ECONNREFUSED');
    let isOpen = true;
    let arrivesAt = 0;
    const end = (reason: string): void => {
      isOpen = false;
      ends.delete(end);
      onEnd(reason);
    };
    ends.set(end, url);
    return {
      async count(key = '', holder = '', seq = '', report = '') {
        arrivesAt = Math.max(arrivesAt, now() + random.int(1, latencyMs));
        await sleep(arrivesAt - now());
        await thawed;
        // What is on its way arrives, though the gateway may have given up.
        if (!isUp) throw new Error('Connection is closed.');
        const reply = await counts.count(key, holder, seq, report);
        await sleep(random.int(1, latencyMs));
        if (random.chance(breaks)) end('read ECONNRESET');
        if (!isOpen) throw new Error('Connection is closed.');
        return reply;
      },
      problem: () => undefined,
      close: () => end('closed'),
    };
  };
  return {
    connect,
    kill(): void {
      isUp = false;
      counts.forget();
      for (const end of ends.keys()) end('read ECONNRESET');
    },
    start: (): void => void (isUp = true),
    forget: counts.forget,
    /** Only this gateway cannot reach it any more. */
    cut(gateway: number): void {
      cutOff.add(urlOf(gateway));
      for (const [end, url] of ends) if (url === urlOf(gateway)) end('read ECONNRESET');
    },
    stepClock: (byMs: number): void => void (offsetMs += byMs),
    freeze(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      thawed = promise;
      return () => {
        thawed = undefined;
        resolve();
      };
    },
  };
}

export interface World {
  readonly doors: readonly AdmitCaller[];
  readonly gateways: readonly ReturnType<typeof createValkeyCounts>[];
  readonly warnings: string[];
}

/** Gateways of two processes each. */
export function createWorld(connect: Connect, count: number, signal: AbortSignal): World {
  const warnings: string[] = [];
  const gateways: ReturnType<typeof createValkeyCounts>[] = [];
  const doors = Array.from({ length: count }, (_, gateway) => {
    const log = { info: () => undefined, warn: (_fields: object, message: string) => void warnings.push(message) };
    const server = createValkeyCounts({ url: urlOf(gateway), clock: CLOCK, log }, connect);
    gateways.push(server);
    const accounts = createLocalAccounts(now, (limits) => shareOf(limits, server.gateways()));
    const lender = createLender({ accounts, processes: 2, now, shared: createSharedLimits({ server, accounts, now }) });
    void server.start(signal);
    return [0, 1].map((process) => {
      const leased = createLeasedAccounts({
        now,
        ask: (ask) => void Promise.resolve(lender.lend(process, ask)).then(leased.answer),
        report: (report) => lender.take(process, report),
      });
      return createCallerLimits(leased);
    });
  });
  return { doors: doors.flat(), gateways, warnings };
}

interface Seen {
  readonly times: number[];
  mostInFlight: number;
}

/** 32 clients, each at one process, or those that `chooses` picks for each request. */
export function flood({ doors }: World, random: Random, limits: CallerLimits, untilMs: number): Seen {
  const seen: Seen = { times: [], mostInFlight: 0 };
  let inFlight = 0;
  const client = async (index: number): Promise<void> => {
    while (now() < untilMs) {
      const door = doors[index % doors.length];
      const request = await door?.({ key: KEY, limits }, 400);
      if (request?.kind === 'admitted') {
        seen.times.push(now());
        inFlight += 1;
        seen.mostInFlight = Math.max(seen.mostInFlight, inFlight);
        await sleep(random.int(1, 80));
        inFlight -= 1;
        request.settle({ tokens: undefined, isServed: true });
      }
      await sleep(random.int(5, 100));
    }
  };
  for (let index = 0; index < 32; index += 1) void client(index);
  return seen;
}

/** The most that any minute has had. */
export function busiest(times: readonly number[], from = 0, until = Infinity): number {
  const within = times.filter((at) => at >= from && at < until);
  let first = 0;
  return within.reduce((most, at, index) => {
    while (at - (within[first] ?? 0) >= 60_000) first += 1;
    return Math.max(most, index - first + 1);
  }, 0);
}
