/** Counts finished requests in memory, and stores the counts about once a second. */
import { setImmediate } from 'node:timers/promises';
import type { FinishedRequest } from '../gateway/exchange-deps.ts';
import type { Log } from '../platform/log.ts';
import { createKeyedLock } from '../platform/semaphore.ts';
import type { SensorReading } from '../schema/status/hardware.ts';
import type { Caused } from '../schema/status/slot-status.ts';
import type { SlotName } from '../schema/words/names.ts';
import { HOUR_MS, hourOf, sliceRange, sumUsage, type UsageRow, type UsageSum } from './decide/usage-rows.ts';
import { PendingRows, type SlotFacts } from './pending-rows.ts';
import type { StoreResult, UsageQuestion, UsageStore, UsageFault } from './usage-store.ts';

/** What ended before a crash of the service and was not written is lost. */
const WRITE_MS = 1000;
const RETRY_MS = 10_000;
const DAY_HOURS = 24;
/** 13 months of any length. */
const KEPT_HOURS = 397 * DAY_HOURS;
const PRUNE_MS = DAY_HOURS * HOUR_MS;
/** A log of some megabytes. */
const WRITES_OF_CHECKPOINT = 100;

/** The methods of the store. */
export type UsageDatabase = {
  readonly [Name in 'write' | 'read' | 'prune']: (...args: Parameters<UsageStore[Name]>) => Promise<ReturnType<UsageStore[Name]>>;
} & { close(): Promise<void> };

export interface UsageAnswer {
  readonly sums: readonly UsageSum[];
  /** Why usage is not stored at present, or not read. */
  readonly problem: string | undefined;
}

export interface UsageRecorder {
  /** On the hot path. */
  note(finished: FinishedRequest): void;
  /** Takes what the reconciler reports. */
  write(report: { readonly caused?: readonly Caused[] }): void;
  query(question: UsageQuestion): Promise<UsageAnswer>;
  /** What was found where energy is measured. Default: it is not. */
  sources?(): readonly SensorReading[];
  /** Writes what is left. */
  close(): Promise<void>;
}

export interface UsageRecorderDeps {
  readonly database: UsageDatabase;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly factsOf: (slot: SlotName) => SlotFacts;
  readonly log: Pick<Log, 'warn'>;
}

/** `keep` adds rows that were counted elsewhere. */
export function createUsageRecorder({ database, wallNow, now, factsOf, log }: UsageRecorderDeps): UsageRecorder & {
  keep(rows: readonly UsageRow[]): void;
} {
  const pending = new PendingRows();
  const warned = new Map<UsageFault | 'notice', number>();
  const mayPrune = createPruneTimes();
  const lock = createKeyedLock();
  /** One access to the database after the other. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => lock('', work);
  let timer: NodeJS.Timeout | undefined;
  let problem: string | undefined;

  function warn(cause: UsageFault | 'notice', message: string): void {
    const last = warned.get(cause);
    if (last !== undefined && now() - last < HOUR_MS) return;
    warned.set(cause, now());
    log.warn({}, message);
  }

  function plan(ms: number): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      void inTurn(write);
    }, ms);
    timer.unref();
  }

  function planWrite(): void {
    if (timer === undefined && pending.size > 0) plan(problem === undefined ? WRITE_MS : RETRY_MS);
  }

  async function write(): Promise<void> {
    const rows = pending.take();
    if (rows.length > 0) {
      const written = await database.write(rows);
      if (!written.ok) pending.putBack(rows);
      judge(written);
    }
    if (problem === undefined && mayPrune(now(), wallNow())) {
      const day = Math.floor((hourOf(wallNow()) - KEPT_HOURS) / DAY_HOURS);
      judge(await database.prune(day * DAY_HOURS));
    }
    planWrite();
  }

  async function read({ from, to, by, most }: UsageQuestion): Promise<UsageAnswer> {
    const unstored = sumUsage(
      pending.rows().filter(({ hour }) => hour >= from && hour < to),
      by,
    );
    const stored = await database.read({ from, to, by, most });
    const failed = stored.ok ? undefined : `Usage cannot be read: ${stored.message}`;
    const sums = stored.ok ? stored.value : [];
    // Slices are sorted and have no day in common, which saves most of the time for many sums.
    const isComplete = unstored.length === 0 && (by.includes('day') || by.includes('hour'));
    return { sums: isComplete ? sums : sumUsage([...sums, ...unstored], by), problem: problem ?? failed };
  }

  function judge(result: StoreResult<unknown>): void {
    problem = result.ok ? undefined : `Usage cannot be stored and stays in memory: ${result.message}`;
    if (!result.ok) warn(result.fault, problem ?? '');
    else if (result.notice !== undefined) warn('notice', result.notice);
  }

  return {
    note(finished) {
      const { slot } = finished;
      pending.add(finished, hourOf(wallNow()), slot === undefined ? undefined : factsOf(slot));
      planWrite();
    },
    keep(rows) {
      pending.putBack(rows);
      planWrite();
    },
    write({ caused = [] }) {
      for (const each of caused) pending.addCaused(each, hourOf(wallNow()), factsOf(each.slot));
      planWrite();
    },
    // Nothing is written between the two, so that each row is counted once.
    query: async (question) => await inTurn(async () => (await write(), await read(question))),
    close: async () =>
      await inTurn(async () => {
        await write();
        clearTimeout(timer);
        await database.close();
      }),
  };
}

/**
 * Once a day, and only after the clock has run evenly for an hour: one that jumps ahead for some minutes must not
 * delete everything.
 */
function createPruneTimes() {
  let offset = Number.NaN;
  let steadySince = 0;
  let prunedAt = Number.NEGATIVE_INFINITY;
  return (now: number, wallNow: number): boolean => {
    if (!(Math.abs(wallNow - now - offset) < HOUR_MS)) {
      offset = wallNow - now;
      steadySince = now;
    }
    if (now - steadySince < HOUR_MS || now - prunedAt < PRUNE_MS) return false;
    prunedAt = now;
    return true;
  };
}

/** Opens nothing before the first call. */
export function openUsageFile(path: string): UsageDatabase {
  let opening: Promise<UsageStore> | undefined;
  let writes = 0;
  const store = async (): Promise<UsageStore> => await (opening ??= loadStore(path));
  return {
    async write(rows) {
      const opened = await store();
      const written = opened.write(rows);
      writes += 1;
      if (writes % WRITES_OF_CHECKPOINT === 0) await opened.checkpoint();
      return written;
    },
    /** A slice at a time, since requests wait meanwhile. */
    async read(question) {
      const opened = await store();
      const range = opened.range();
      if (!range.ok) return range;
      const sums: UsageSum[] = [];
      const { from, to } = range.value;
      for (const slice of sliceRange({ from: Math.max(from, question.from), to: Math.min(to, question.to) }, question.by)) {
        const read = opened.read({ ...question, ...slice });
        if (!read.ok) return read;
        sums.push(...read.value);
        await setImmediate();
      }
      return { ok: true, value: sums };
    },
    prune: async (before) => (await store()).prune(before),
    async close() {
      const opened = await opening;
      await opened?.checkpoint();
      opened?.close();
    },
  };
}

/** SQLite takes 2 MB, which only a service that records usage pays. */
async function loadStore(path: string): Promise<UsageStore> {
  const { emitWarning } = process;
  // Node before 24.15 calls it experimental on the terminals of users.
  process.emitWarning = () => undefined;
  try {
    process.getBuiltinModule('node:sqlite');
  } finally {
    process.emitWarning = emitWarning;
  }
  return new (await import('./usage-store.ts')).UsageStore(path);
}
