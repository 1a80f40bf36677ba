/**
 * The server of `SVC_LIMITS_URL`, a Valkey or a Redis, that adds up the counts of all gateways.
 *
 *   connect ─► report that this gateway is there, every second ─► after five of them, what it grants counts
 *   anything fails, or takes too long ─► lost: nothing is asked until another connection has been made
 *
 * The five seconds are longer than any gateway takes to connect again, so that all have reported what they used without
 * the server, or what it has forgotten. A connection that only broke needs none. The client is loaded only with the
 * setting.
 */
import { randomUUID } from 'node:crypto';
import type { Log } from '../../platform/log.ts';
import { messageOf } from '../../platform/error-text.ts';
import { pause } from '../../platform/clock.ts';
import type { Clock } from '../../reconciler/ports.ts';
import { COUNTING_SCRIPT, parseAnswer, type CountAnswer, type CountReport } from './counting-script.ts';
import type { CountServer } from './shared-limits.ts';

/** A request waits for at most so long, once; in a data centre, an answer takes less than a millisecond. */
const ANSWER_MS = 500;
const BEAT_MS = 1000;
const SETTLING = 'the server has just answered; it counts when all gateways have reported to it';
const SETTLE_MS = 5000;
/** A connection that broke is made again within less: nobody has counted much without the server. */
const BRIEF_MS = 1000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2000;
/** In one slot of a cluster, so that a proxy in front of one can serve it. */
const PREFIX = '{svc-limits}:';
/** The key of the gateways themselves: each counts as one request for ten seconds. */
const GATEWAYS = 'gateways';
const PRESENT: CountReport = {
  counts: [[1, 10_000], [], [], []],
  need: [0, 0, 0, 0],
  limits: [-1, -1, -1, -1],
  keepMs: [0, 0, 0, 0],
  part: 0,
};

export interface ValkeyOptions {
  readonly url: string;
  /** Its first line is the password; called for each connection. Default: that of the URL. */
  readonly readPassword?: (() => Promise<string>) | undefined;
  readonly clock: Pick<Clock, 'at' | 'now'>;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

export interface ValkeyCounts extends CountServer {
  /** Undefined: the counts are shared. Otherwise the reason why not. */
  problem(): string | undefined;
  /** Keeps the connection until the signal aborts. */
  start(signal: AbortSignal): Promise<void>;
}

export type Connect = (options: ValkeyOptions, onEnd: (reason: string) => void) => Promise<Connection>;

export interface Connection {
  count(...args: readonly string[]): Promise<unknown>;
  /** The first error that is none of a command. */
  problem(): string | undefined;
  close(): void;
}

interface Session {
  readonly connection: Connection;
  sharedAt: number;
  lose(reason: string): void;
}

export function createValkeyCounts(options: ValkeyOptions, connect: Connect = connectTo): ValkeyCounts {
  const { clock, log } = options;
  const { now } = clock;
  const holder = randomUUID();
  const resets: (() => void)[] = [];
  let seq = 0;
  let session: Session | undefined;
  let gateways = 1;
  let problem: string | undefined = 'the server has not answered yet';
  /** When the connection broke, through which counts were shared. */
  let brokenAt = -Infinity;

  async function ask({ connection, lose }: Session, key: string, report: CountReport): Promise<CountAnswer | undefined> {
    seq += 1;
    try {
      const reply = await within(ANSWER_MS, connection.count(`${PREFIX}${key}`, holder, String(seq), JSON.stringify(report)));
      const answer = parseAnswer(reply);
      const wrong = connection.problem();
      if (wrong === undefined) return answer;
      lose(wrong);
    } catch (error) {
      lose(connection.problem() ?? messageOf(error));
    }
    return undefined;
  }

  /** Keeps one connection. Returns what ended it. */
  async function hold(signal: AbortSignal): Promise<{ readonly ended: string; readonly wasShared: boolean }> {
    const lost = Promise.withResolvers<string>();
    // The connection may end before it has been made.
    const held: { session?: Session } = {};
    function lose(reason: string): void {
      if (session === held.session) session = undefined;
      lost.resolve(reason);
    }
    const connection = await connect(options, (reason) => {
      if (session !== undefined && session === held.session && now() >= session.sharedAt) brokenAt = now();
      lose(reason);
    });
    const own: Session = { connection, sharedAt: Infinity, lose };
    held.session = own;
    let isFirst = true;
    for (
      let ended: unknown;
      ended === undefined && !signal.aborted;
      ended = await Promise.race([lost.promise, pause(clock, BEAT_MS, signal)])
    ) {
      const answer = await ask(own, GATEWAYS, PRESENT);
      if (answer === undefined) continue;
      // Not all have reported to a server that has started again.
      gateways = Math.max(answer.others.length + 1, now() < own.sharedAt ? gateways : 1);
      if (isFirst || !answer.wasKnown) {
        const isBrief = isFirst && answer.wasKnown && now() - brokenAt < BRIEF_MS;
        own.sharedAt = now() + (isBrief ? 0 : SETTLE_MS);
        session = own;
        problem = SETTLING;
        for (const reset of resets) reset();
      }
      isFirst = false;
      if (now() < own.sharedAt || problem === undefined) continue;
      problem = undefined;
      log.info({ gateways }, 'The counts of callers are shared with all gateways of "SVC_LIMITS_URL"');
    }
    lose('The service stops');
    connection.close();
    return { ended: await lost.promise, wasShared: now() >= own.sharedAt };
  }

  const isShared = (): boolean => session !== undefined && now() >= session.sharedAt;

  function note(found: string): void {
    if (problem !== found)
      log.warn({ problem: found }, `The counts of callers are not shared: this gateway enforces its part of each limit (${found})`);
    problem = found;
  }

  return {
    problem: () => (isShared() ? undefined : problem),
    isShared,
    gateways: () => gateways,
    onReset: (callback) => void resets.push(callback),
    ask: async (key, report) => (session === undefined ? undefined : await ask(session, `caller:${key}`, report)),
    async start(signal) {
      for (let failures = 0; !signal.aborted; failures += 1) {
        const { ended, wasShared } = await hold(signal).catch((error: unknown) => ({ ended: messageOf(error), wasShared: false }));
        if (signal.aborted) return;
        if (wasShared) failures = 0;
        note(ended);
        await pause(clock, Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10)), signal);
      }
    },
  };
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`the server has not answered within ${ms} ms`)), ms);
  return await Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}

/** Rejects without the password in the message. */
const connectTo: Connect = async ({ url, readPassword }, onEnd) => {
  const { Redis } = await import('iovalkey');
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  const secret = readPassword === undefined ? decodeURIComponent(password) : firstLine(await readPassword());
  let problem: string | undefined;
  const client = new Redis({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 6379 : Number(port),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(secret === '' ? {} : { password: secret }),
    db: Number(pathname.slice(1)),
    ...(/^(?:rediss|valkeys):$/.test(protocol) ? { tls: {} } : {}),
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    connectTimeout: ANSWER_MS,
    retryStrategy: () => null,
  });
  client.on('error', (error: Error) => {
    problem ??= messageOf(error);
  });
  client.once('close', () => onEnd(problem ?? 'the server has closed the connection'));
  try {
    await within(2 * ANSWER_MS, client.connect());
  } catch (error) {
    client.disconnect();
    throw new Error(problem ?? messageOf(error), { cause: error });
  }
  return {
    count: async (...args) => await client.eval(COUNTING_SCRIPT, 1, ...args),
    problem: () => problem,
    close: () => client.disconnect(),
  };
};

const firstLine = (text: string): string => text.split('\n', 1)[0]?.trim() ?? '';
