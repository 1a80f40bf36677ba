/** When requests needed slots, in `<state>/learned/<slot>.json`; nothing of what they contained. */
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
  const writes = createWriteLog(log);
  let written = Promise.resolve();

  async function store(slot: SlotName, history: RequestHistory | undefined): Promise<void> {
    const path = join(directory, `${slot}.json`);
    try {
      if (history === undefined) return await disk.rm(path, { force: true });
      await writeJsonAtomically(path, history, MODE, { disk });
      writes.succeeded(path);
    } catch (error) {
      writes.failed(`what slot "${slot}" has learned`, path, error);
    }
  }
  const warn = (path: string, error: unknown): void =>
    log.warn({ file: path, error: messageOf(error) }, `"${path}" cannot be read, so what it has of earlier requests is learned anew`);

  return {
    async read() {
      const histories = new Map<SlotName, RequestHistory>();
      const files = await listDirectory(directory, disk).catch((error: unknown) => (warn(directory, error), []));
      for (const file of files) {
        const name = SlotName.safeParse(/^(.*)\.json$/.exec(file)?.[1]);
        const path = join(directory, file);
        try {
          if (name.success) histories.set(name.data, RequestHistory.parse(JSON.parse(await readRegularFile(path, { disk }))));
        } catch (error) {
          warn(path, error);
        }
      }
      return histories;
    },
    write: (slot, history) => void (written = written.then(async () => await store(slot, history))),
    /** Resolves when all writes are done or have failed. */
    flush: async () => await written,
  } satisfies RequestHistories & { flush(): Promise<void> };
}
