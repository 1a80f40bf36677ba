/** Processes that forward requests on the controller's port (docs/speed.md). One that dies loses only connections. */
import type { Socket } from 'node:net';
import type { Lender } from './lent-limits.ts';
import type { CaptureRule, TakeCaptured } from '../../gateway/capture/capture-taps.ts';
import type { ReportRequest, RunningRequest } from '../../gateway/exchange-deps.ts';
import type { GatewayTraffic } from '../../gateway/traffic/traffic.ts';
import type { Log } from '../../platform/log.ts';
import { sleep } from '../../platform/clock.ts';
import type { Board, RoutedView } from '../../reconciler/board.ts';
import { compareBoards, NO_BOARD } from './decide/board-changes.ts';
import { unpackRequests } from './decide/request-batch.ts';
import type { ToWorker, WorkerReport, WorkerStart } from './messages.ts';
import { createSharedTraffic } from './shared-traffic.ts';
import { WorkerProcess } from './worker-process.ts';

export interface WorkerPoolDeps {
  readonly count: number;
  readonly local: GatewayTraffic;
  readonly lender: Lender;
  readonly board: Board;
  readonly now: () => number;
  readonly log: Log;
  readonly metrics: {
    workerStarted(worker: number): void;
    workerReported(worker: number, report: Pick<WorkerReport, 'connections' | 'cpuSeconds' | 'memoryBytes'>, requests: number): void;
    workerEnded(worker: number): void;
  };
}

interface WorkerPoolStart extends Omit<WorkerStart, 'board' | 'captures'> {
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface WorkerPoolListeners {
  readonly finished: ReportRequest;
  readonly refused: ReportRequest;
  readonly onFault: (fault: unknown, requestId: string) => void;
  readonly tokenUsed: (id: string) => void;
  readonly captured: TakeCaptured;
  readonly takeOver: (socket: Socket, bytes: Uint8Array) => void;
  /** The first worker listens, or none does any more. */
  readonly listening: (anyone: boolean, address: Pick<WorkerStart, 'host' | 'port'>) => void;
}

/** A worker is asked for a sign of life so often, which also keeps what metrics show of it up to date. */
const SYNC_MS = 10_000;
/** A worker that does not answer for so long hangs: its connections are lost in any case. */
const HANGS_MS = 15_000;
/** The same while it starts, on a machine that is busy. */
const STARTS_MS = 60_000;
const END_MS = 2000;
const LOOK_MS = 500;
const START_MS = 30_000;

interface Member {
  readonly process: WorkerProcess;
  /** The last number that it was sent; and when it was sent the first one that it did not answer. */
  asked: number;
  synced: number;
  unansweredSince: number | undefined;
  connections: number;
  /** When it was last asked for them. */
  running: readonly RunningRequest[];
}

export type WorkerPool = ReturnType<typeof createWorkerPool>;

export function createWorkerPool({ count, local, board, now, log, metrics, lender }: WorkerPoolDeps) {
  const members = new Map<number, Member>();
  const waiting = new Set<() => void>();
  let listeners: WorkerPoolListeners | undefined;
  let shown: RoutedView = NO_BOARD;
  let captures: readonly CaptureRule[] = [];
  let timer: NodeJS.Timeout | undefined;
  let anyoneListens = false;
  let address: Pick<WorkerStart, 'host' | 'port'> | undefined;

  const sendAll = (message: ToWorker): void => members.forEach(({ process }) => process.send(message));
  const traffic = createSharedTraffic({ local, board, now, abort: (workload) => sendAll({ kind: 'abort', workload }), sync });
  board.subscribe((view) => {
    const change = compareBoards(shown, view);
    shown = view;
    if (change !== undefined) sendAll({ kind: 'board', change });
  });

  function look(): void {
    for (const done of waiting) done();
  }

  function sync(looks = false): Promise<void> {
    const asked = new Map<Member, number>();
    for (const member of members.values()) {
      if (!member.process.exists) continue;
      member.asked += 1;
      member.unansweredSince ??= now();
      member.process.send({ kind: 'sync', number: member.asked, looks });
      asked.set(member, member.asked);
    }
    if (asked.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        for (const [member, number] of asked) if (member.synced < number) return;
        waiting.delete(done);
        resolve();
      };
      waiting.add(done);
    });
  }

  function onReport(number: number, report: WorkerReport): void {
    const member = members.get(number);
    if (member === undefined) return;
    member.synced = Math.max(member.synced, report.synced);
    if (member.synced >= member.asked) member.unansweredSince = undefined;
    member.connections = report.connections;
    member.running = report.running ?? member.running;
    const requests = unpackRequests(report.requests);
    metrics.workerReported(number, report, requests.length);
    for (const request of requests) {
      if (request.atDoor) listeners?.refused(request);
      else listeners?.finished(request);
    }
    for (const id of report.tokens) listeners?.tokenUsed(id);
    traffic.take(number, report, report.isUrgent);
    look();
  }

  function lookWhoListens(): void {
    const anyone = members.values().some(({ process }) => process.listens);
    if (anyone !== anyoneListens && address !== undefined) listeners?.listening(anyone, address);
    anyoneListens = anyone;
  }

  function onGone(number: number): void {
    const member = members.get(number);
    // Its unanswered messages need no answer.
    if (member !== undefined) Object.assign(member, { synced: member.asked, unansweredSince: undefined, connections: 0, running: [] });
    traffic.forget(number);
    lender.forget(number);
    metrics.workerEnded(number);
    lookWhoListens();
    look();
  }

  function endThoseThatHang(): void {
    for (const [number, { process, unansweredSince }] of members) {
      const limitMs = process.listens ? HANGS_MS : STARTS_MS;
      if (unansweredSince === undefined || now() - unansweredSince < limitMs) continue;
      log.error({ worker: number }, `Worker ${number} is ended: it has not answered for ${limitMs / 1000} s`);
      process.kill();
    }
    void sync();
  }

  function add(number: number, { file, env, ...start }: WorkerPoolStart): Member {
    const process = new WorkerProcess({
      number,
      file,
      env,
      log,
      start: () => ({ ...start, captures, board: compareBoards(NO_BOARD, shown) }),
      onStarted: () => metrics.workerStarted(number),
      onListening: lookWhoListens,
      onReport: (report) => onReport(number, report),
      onConnection: (socket, bytes) => listeners?.takeOver(socket, bytes),
      onFault: ({ message, stack, requestId }) => listeners?.onFault(Object.assign(new Error(message), { stack }), requestId),
      onCaptured: (ids, text) => listeners?.captured(ids, text),
      onLimitAsk: (ask) => lender.lend(number, ask),
      onLimitReport: (report) => lender.take(number, report),
      onGone: () => onGone(number),
    });
    return { process, asked: 0, synced: 0, unansweredSince: undefined, connections: 0, running: [] };
  }

  return {
    traffic,
    sync,
    connections: (): number => members.values().reduce((sum, { connections }) => sum + connections, 0),
    /** Lists those of workers; of one that hangs, what it had before. */
    async running(): Promise<readonly RunningRequest[]> {
      await Promise.race([sync(true), sleep(LOOK_MS)]);
      return members
        .values()
        .flatMap(({ running }) => running)
        .toArray();
    },
    cancel: (requestId: string): void => sendAll({ kind: 'cancel', requestId }),
    /** Resolves when requests that begin in any process are captured by these. */
    async capture(rules: readonly CaptureRule[]): Promise<void> {
      captures = rules;
      sendAll({ kind: 'captures', rules });
      await sync();
    },
    listen: (all: WorkerPoolListeners): void => void (listeners = all),
    /** Resolves when all workers listen, or have failed to: then they are started again later. */
    async start(start: WorkerPoolStart): Promise<void> {
      const { SVC_CONTROL_PLANE: plane } = start.settings;
      address = start;
      for (let number = 1; number <= count; number += 1) members.set(number, add(number, start));
      timer = setInterval(endThoseThatHang, SYNC_MS).unref();
      const settled = Promise.all(members.values().map(({ process }) => process.settled));
      await Promise.race([settled, sleep(START_MS, AbortSignal.timeout(START_MS))]);
      const up = [...members.values()].filter(({ process }) => process.listens).length;
      if (up === count) log.info({ workers: count }, plane === 'separate' ? apart(count) : together(count));
      else log.error({ workers: up }, `Only ${up} of ${count} workers have started; the others are started again`);
    },
    leave: (): void => sendAll({ kind: 'leave' }),
    async close(graceMs: number, parkedMs: number): Promise<void> {
      clearInterval(timer);
      listeners = listeners && { ...listeners, listening: () => undefined };
      const ended = Promise.all(members.values().map(({ process }) => process.retire()));
      sendAll({ kind: 'close', graceMs, parkedMs });
      const kill = setTimeout(() => members.forEach(({ process }) => process.kill()), graceMs + END_MS);
      await ended;
      clearTimeout(kill);
    },
  };
}

const together = (count: number): string => `${count + 1} processes forward requests: this one, and ${count} of their own`;
const apart = (count: number): string =>
  `${count === 1 ? 'A process of its own forwards' : `${count} processes of their own forward`} requests for texts, and this one decides`;
