/** What slots have learned of their requests, in `<state>/learned/<slot>.json`: times only, and nothing of what they contained. */
import { join } from 'node:path';
import { RequestHistory, type RequestHistories } from '../schema/status/request-history.ts';
import { SlotName } from '../schema/words/names.ts';
import { messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { readRegularFile, SYSTEM_DISK, type Disk } from './regular-file.ts';
import { createWriteLog, listDirectory, writeJsonAtomically } from './write-file.ts';

/** When somebody works is personal data. */
const MODE = 0o600;

/** A file that cannot be read is logged and left out. One that cannot be written is written with the next change. */
export function createRequestHistoryFiles(directory: string, log: SourceLog, disk: Disk = SYSTEM_DISK) {
  const backlog = new Map<SlotName, RequestHistory | undefined>();
  let working: Promise<void> | undefined;
  const writes = createWriteLog(log);
  const fileOf = (slot: SlotName): string => join(directory, `${slot}.json`);

  async function drain(): Promise<void> {
    for (const [slot, history] of backlog) {
      backlog.delete(slot);
      const path = fileOf(slot);
      try {
        if (history === undefined) await disk.rm(path, { force: true });
        else await writeJsonAtomically(path, history, MODE, { disk });
        if (history !== undefined) writes.succeeded(path);
      } catch (error) {
        writes.failed(`what slot "${slot}" has learned`, path, error);
      }
    }
    working = undefined;
  }
  return {
    async read() {
      const histories = new Map<SlotName, RequestHistory>();
      const files = await listDirectory(directory, disk).catch((error: unknown) => [warn(directory, error)]);
      for (const file of files) {
        const name = SlotName.safeParse(/^(.*)\.json$/.exec(file)?.[1]);
        if (!name.success) continue;
        const path = fileOf(name.data);
        try {
          histories.set(name.data, RequestHistory.parse(JSON.parse(await readRegularFile(path, { disk }))));
        } catch (error) {
          warn(path, error);
        }
      }
      return histories;
    },
    write(slot, history) {
      backlog.set(slot, history);
      working ??= drain();
    },
    /** Resolves when all pending writes are done or have failed. */
    async flush(): Promise<void> {
      while (working !== undefined) await working;
    },
  } satisfies RequestHistories & { flush(): Promise<void> };

  function warn(path: string, error: unknown): string {
    log.warn({ file: path, error: messageOf(error) }, `"${path}" cannot be read, so what it has of earlier requests is learned anew`);
    return '';
  }
}
