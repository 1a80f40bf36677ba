/** Statuses in `<state>/status/<slot>.json`, each written only when it changed, and timelines: for people, scripts and the next start. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Report, StatusSink } from '../reconciler/ports.ts';
import type { SlotName } from '../schema/names.ts';
import { isSameValue } from '../schema/same-value.ts';
import type { SlotStatus, TimelineEntry } from '../schema/slot-status.ts';
import { messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { appendTimeline } from './timeline-files.ts';
import { writeFileAtomically } from './write-file.ts';

export interface StatusFiles extends StatusSink {
  /** Resolves when everything given so far is on disk or has failed. */
  flush(): Promise<void>;
}

interface StatusFilesOptions {
  /** `<state>/status`. Undefined: statuses are kept elsewhere. */
  readonly statusDirectory: string | undefined;
  /** `<state>/timelines`. */
  readonly timelineDirectory: string;
  readonly log: SourceLog;
}

/** What waits to be written: of a status only the newest, of timelines everything. */
interface Backlog {
  readonly statuses: Map<SlotName, SlotStatus | undefined>;
  readonly entries: Map<SlotName, TimelineEntry[]>;
}

/** A disk that takes nothing must not fill the memory: beyond this the oldest entries of a slot are dropped. */
const MOST_WAITING = 10_000;

export function createStatusFiles(options: StatusFilesOptions): StatusFiles {
  const { log } = options;
  const statusDirectory = options.statusDirectory ?? '';
  const kept = (report: Report): Report['statuses'] => (statusDirectory === '' ? [] : report.statuses);
  const written = new Map<SlotName, SlotStatus>();
  let backlog: Backlog = { statuses: new Map(), entries: new Map() };
  let working: Promise<void> | undefined;
  let failing = false;
  let swept = false;

  const attempt = async (what: string, work: () => Promise<void>) => {
    try {
      await work();
      failing = false;
    } catch (error) {
      // Once, not with each pass: a full disk stays full.
      if (!failing) log.warn({ error: messageOf(error) }, `Writing ${what} failed; statuses on disk are out of date`);
      failing = true;
    }
  };
  const drain = async () => {
    while (backlog.statuses.size + backlog.entries.size > 0) {
      const taken = backlog;
      backlog = { statuses: new Map(), entries: new Map() };
      for (const [slot, status] of taken.statuses) {
        const path = join(statusDirectory, `${slot}.json`);
        await attempt(`the status of slot "${slot}"`, async () =>
          status === undefined ? await rm(path, { force: true }) : await writeFileAtomically(path, textOf(status), { mode: 0o644 }),
        );
      }
      for (const [slot, entries] of taken.entries) {
        await attempt(`the timeline of slot "${slot}"`, async () => await appendTimeline(options.timelineDirectory, slot, entries));
      }
    }
    working = undefined;
  };
  const sweep = async (report: Report) => {
    const present = new Set<string>(report.statuses.map((status) => `${status.name}.json`));
    const files = statusDirectory === '' ? [] : await readdir(statusDirectory).catch((): string[] => []);
    const stale = files.filter((file) => file.endsWith('.json') && !present.has(file));
    await Promise.all(stale.map(async (file) => await rm(join(statusDirectory, file), { force: true }).catch(() => undefined)));
  };
  const begin = async (report: Report) => {
    // Slots that went while the controller was away.
    if (!swept) await sweep(report);
    swept = true;
    await drain();
  };

  return {
    write(report) {
      const statuses = kept(report);
      const present = new Set(statuses.map((status) => status.name));
      for (const status of statuses) {
        // Of thousands, nearly all are the very objects of the last report.
        if (!isSameValue(written.get(status.name), status)) backlog.statuses.set(status.name, status);
        written.set(status.name, status);
      }
      for (const name of written.keys()) {
        if (present.has(name)) continue;
        written.delete(name);
        backlog.statuses.set(name, undefined);
      }
      for (const entry of report.entries) {
        const waiting = backlog.entries.get(entry.slot) ?? [];
        waiting.push(entry);
        if (waiting.length > MOST_WAITING) waiting.shift();
        backlog.entries.set(entry.slot, waiting);
      }
      // With nothing to do it would have ended before it could be told that it has begun.
      if (!swept || backlog.statuses.size + backlog.entries.size > 0) working ??= begin(report);
    },
    async flush() {
      while (working !== undefined) await working;
    },
  };
}

function textOf(status: SlotStatus): string {
  return `${JSON.stringify(status, undefined, 2)}\n`;
}
