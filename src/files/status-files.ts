/**
 * Writes changed statuses to `<state>/status/<slot>.json` and appends to timelines: for users, scripts and the next
 * start.
 */
import { join } from 'node:path';
import { z } from 'zod';
import type { Report } from '../reconciler/ports.ts';
import { SlotName } from '../schema/words/names.ts';
import { isSameValue } from '../schema/words/same-value.ts';
import {
  CONDITION_TYPES,
  SLOT_STATES,
  CRASH_KINDS,
  type SlotStatus,
  type TimelineEntry,
  type FailureRecords,
  type RecordedFailures,
} from '../schema/status/slot-status.ts';
import { codeOf, isAbsent, messageOf } from '../platform/error-text.ts';
import { retryRead } from '../platform/clock.ts';
import type { SourceLog } from '../platform/log.ts';
import { inTurns } from '../platform/semaphore.ts';
import { readIfSuitable, readRegularFile, SYSTEM_DISK, type Disk } from './regular-file.ts';
import { appendTimeline, removeOldTimelines, timelinePath } from './timeline-files.ts';
import { createWriteLog, listDirectory, syncDirectory, writeJsonAtomically } from './write-file.ts';
import { parseJson } from '../platform/decide/parse-json.ts';
import { parseReason } from '../schema/status/reasons.ts';

interface StatusFilesOptions {
  /** `<state>/status`. Undefined if statuses are stored elsewhere. */
  readonly statusDirectory: string | undefined;
  /** `<state>/timelines`. */
  readonly timelineDirectory: string;
  readonly log: SourceLog;
  /** Default: the system's. */
  readonly disk?: Disk;
  /** Default: an unreferenced timer. */
  readonly defer?: (work: () => void, ms: number) => void;
}

/** Pending writes: the newest status of each slot, and all timeline entries. */
interface Backlog {
  /** Undefined: the slot was removed. */
  readonly statuses: Map<SlotName, SlotStatus | undefined>;
  readonly entries: Map<SlotName, TimelineEntry[]>;
}

/** Limits memory while the disk refuses writes; the oldest entries of a slot are dropped. */
const MAX_WAITING_ENTRIES = 10_000;
/** Most that a power failure takes from a timeline. Syncing each entry would cost more than writing it (ADR 0113). */
const SYNC_EVERY_MS = 5000;

const unreferenced = (work: () => void, ms: number): void => void setTimeout(work, ms).unref();

export function createStatusFiles({ statusDirectory, timelineDirectory, log, disk, defer = unreferenced }: StatusFilesOptions) {
  const known = new Map<SlotName, SlotStatus>();
  let backlog: Backlog = { statuses: new Map(), entries: new Map() };
  let working: Promise<void> | undefined;
  const writes = createWriteLog(log);
  let swept = false;
  /** Timelines written since the last sync. */
  const unsynced = new Set<string>();
  /** The slots of the last report. */
  let present: ReadonlySet<SlotName> = new Set();
  let leaving = false;

  const hasBacklog = (): boolean => backlog.statuses.size + backlog.entries.size > 0;
  /** Leaves in the map what could not be written. Returns whether something was. */
  const writeEach = async <T>(waiting: Map<SlotName, T>, what: string, write: (path: string, value: T) => Promise<void>) => {
    let wrote = false;
    for (const [slot, value] of waiting) {
      const path = what === 'status' ? join(statusDirectory ?? '', `${slot}.json`) : timelinePath(timelineDirectory, slot);
      try {
        await write(path, value);
        waiting.delete(slot);
        wrote ||= value !== undefined;
      } catch (error) {
        writes.failed(`the ${what} of slot "${slot}"`, path, error);
      }
    }
    return wrote;
  };
  const syncSoon = (path: string): void => {
    if (unsynced.size === 0) defer(() => void sync(), SYNC_EVERY_MS);
    unsynced.add(path);
  };
  const sync = async (): Promise<void> => {
    const paths = unsynced.size === 0 ? [] : [...unsynced, timelineDirectory];
    unsynced.clear();
    for (const path of paths) await syncDirectory(path, disk);
  };
  /** Keeps failed writes in the backlog, unless there is something newer. */
  const restore = ({ statuses, entries }: Backlog): void => {
    for (const [slot, status] of statuses) if (!backlog.statuses.has(slot)) backlog.statuses.set(slot, status);
    for (const [slot, added] of entries)
      backlog.entries.set(slot, [...added, ...(backlog.entries.get(slot) ?? [])].slice(-MAX_WAITING_ENTRIES));
  };
  const drain = async () => {
    if (!swept) {
      await removeStaleStatuses(statusDirectory, present, disk);
      await removeOldTimelines(timelineDirectory, (slot) => present.has(slot), disk);
    }
    swept = true;
    while (hasBacklog()) {
      const { statuses, entries } = backlog;
      backlog = { statuses: new Map(), entries: new Map() };
      const wroteStatus = await writeEach(statuses, 'status', async (path, status) => await writeStatus(path, status, disk));
      const wroteEntries = await writeEach(entries, 'timeline', async (path, added) => {
        await appendTimeline(path, added, disk);
        syncSoon(path);
      });
      if (statuses.size + entries.size === 0) {
        if (wroteStatus || wroteEntries) writes.succeeded(timelineDirectory);
        continue;
      }
      restore({ statuses, entries });
      break;
    }
    working = undefined;
  };
  const resume = (): void => {
    // Without work, `drain` would reset `working` before it is assigned here.
    if (!swept || hasBacklog()) working ??= drain();
  };
  const addStatuses = (statuses: Report['statuses']) => {
    for (const status of statuses) {
      // Nearly all statuses are the same objects as in the last report.
      if (!isSameValue(known.get(status.name), status)) backlog.statuses.set(status.name, status);
      known.set(status.name, status);
    }
    for (const name of known.keys()) {
      if (present.has(name) || (leaving && known.get(name)?.failures !== undefined)) continue;
      known.delete(name);
      backlog.statuses.set(name, undefined);
    }
  };

  return {
    write(report: Report): void {
      const names = new Set([...report.statuses.map(({ name }) => name), ...report.refused.keys()]);
      if (!leaving && [...present].some((name) => !names.has(name))) swept = false;
      present = names;
      if (statusDirectory !== undefined) addStatuses(report.statuses);
      for (const entry of report.entries) {
        const waiting = backlog.entries.get(entry.slot) ?? [];
        waiting.push(entry);
        if (waiting.length > MAX_WAITING_ENTRIES) waiting.shift();
        backlog.entries.set(entry.slot, waiting);
      }
      resume();
    },
    /** Retries failed writes. */
    retry: resume,
    /** Writes all statuses to a new directory. */
    renew(): void {
      if (statusDirectory !== undefined) for (const [slot, status] of known) backlog.statuses.set(slot, status);
      resume();
    },
    /** Slots missing from later reports end with the service and were not removed: their recorded failures stay. */
    leave: () => void (leaving = true),
    /** Resolves when all pending writes are done or have failed. */
    async flush(): Promise<void> {
      while (working !== undefined) await working;
      await sync();
    },
  };
}

/** Only recorded failures are read back to decide, so only they must survive a power failure. */
async function writeStatus(path: string, status: SlotStatus | undefined, disk: Disk = SYSTEM_DISK): Promise<void> {
  if (status === undefined) await disk.rm(path, { force: true });
  else await writeJsonAtomically(path, status, 0o644, { sync: status.failures !== undefined, disk });
}

/** Removes the statuses of slots that were deleted while the controller was not running. */
async function removeStaleStatuses(directory: string | undefined, present: ReadonlySet<SlotName>, disk = SYSTEM_DISK): Promise<void> {
  if (directory === undefined) return;
  const names = new Set([...present].map((name) => `${name}.json`));
  const files = await disk.readdir(directory).catch((): string[] => []);
  const stale = files.filter((file) => file.endsWith('.json') && !names.has(file));
  await Promise.all(stale.map(async (file) => await disk.rm(join(directory, file), { force: true }).catch(() => undefined)));
}

const Earlier = z.object({
  name: SlotName,
  state: z.enum(SLOT_STATES),
  since: z.number(),
  // A later version may know more conditions.
  conditions: z.array(z.object({ type: z.string(), status: z.enum(['True', 'False', 'Unknown']), lastTransitionAt: z.number() })),
});
const TYPES = z.enum(CONDITION_TYPES);

/** Reads the statuses of an earlier run. Ignores damaged files, and logs unreadable ones. Never throws. */
export async function readEarlierStatuses(directory: string, log: SourceLog, disk?: Disk) {
  const readAll = async (onError: (error: unknown) => string | Promise<string>) => {
    const files = (await listDirectory(directory, disk)).filter((file) => file.endsWith('.json'));
    return await inTurns(files, async (file) => await readIfSuitable(join(directory, file), { disk }).catch(onError));
  };
  const warn = (error: unknown): string => {
    log.warn({ error: messageOf(error) }, `Statuses in "${directory}" cannot be read, so the times in them begin anew`);
    return '';
  };
  const reading = retryRead(async () => await readAll((error) => Promise.reject(error)));
  const texts = await reading.catch(async () => await readAll(warn)).catch((error: unknown) => [warn(error)]);
  const statuses = texts.flatMap((text) => Earlier.safeParse(parseJson(text)).data ?? []);
  return new Map(statuses.map(({ name, state, since, conditions }) => [name, { state, since, conditions: conditions.flatMap(known) }]));
}

function known(condition: z.output<typeof Earlier>['conditions'][number]) {
  const type = TYPES.safeParse(condition.type).data;
  return type === undefined ? [] : [{ ...condition, type }];
}

/** Reads the failures that an earlier controller recorded in its status files. Nothing else in them is read. */

const Recorded = z.object({
  observedGeneration: z.int(),
  failedSpec: z.string().exactOptional(),
  failures: z
    .array(
      z.object({
        at: z.number(),
        kind: z.enum(CRASH_KINDS),
        reason: z.string().transform((text) => parseReason(text) ?? 'Unknown'),
        message: z.string(),
      }),
    )
    .default([]),
});

/**
 * `directory`: `<state>/status`. A damaged file is logged and left out; rejects if the directory or a file exists and
 * cannot be read.
 */
export function createStatusRecords(directory: string, log: SourceLog, disk?: Disk): FailureRecords {
  return {
    async read() {
      const records = new Map<SlotName, RecordedFailures>();
      for (const file of await listDirectory(directory, disk)) {
        const name = SlotName.safeParse(/^(.*)\.json$/.exec(file)?.[1]);
        if (!name.success) continue;
        const record = await readRecord(join(directory, file), name.data, log, disk);
        if (record !== undefined) records.set(name.data, record);
      }
      return records;
    },
  };
}

async function readRecord(path: string, slot: SlotName, log: SourceLog, disk?: Disk): Promise<RecordedFailures | undefined> {
  try {
    return Recorded.parse(JSON.parse(await readRegularFile(path, { disk })));
  } catch (error) {
    // An error of the system says nothing about the record.
    if (codeOf(error) !== '' && !isAbsent(error)) throw error;
    log.warn(
      { slot, error: messageOf(error) },
      `The status of slot "${slot}" in "${path}" is damaged, so its crashes are counted from zero`,
    );
    return undefined;
  }
}
