/** Reads the failures that an earlier controller recorded in its status files. Nothing else in them is read. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { CRASH_KINDS, type FailureRecords, type RecordedFailures } from '../schema/status/slot-status.ts';
import { SlotName } from '../schema/words/names.ts';
import { parseReason } from '../schema/status/reasons.ts';
import { listDirectory } from './write-file.ts';

const Recorded = z.object({
  observedGeneration: z.int(),
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
 * `directory`: `<state>/status`. A damaged file is logged and left out; rejects if the directory exists and cannot be
 * read.
 */
export function createStatusRecords(directory: string, log: SourceLog): FailureRecords {
  return {
    async read() {
      const records = new Map<SlotName, RecordedFailures>();
      for (const file of await listDirectory(directory)) {
        const name = SlotName.safeParse(/^(.*)\.json$/.exec(file)?.[1]);
        if (!name.success) continue;
        const record = await readRecord(join(directory, file), name.data, log);
        if (record !== undefined) records.set(name.data, record);
      }
      return records;
    },
  };
}

async function readRecord(path: string, slot: SlotName, log: SourceLog): Promise<RecordedFailures | undefined> {
  try {
    return Recorded.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    log.warn(
      { slot, error: messageOf(error) },
      `The status of slot "${slot}" in "${path}" is damaged, so its crashes are counted from zero`,
    );
    return undefined;
  }
}
