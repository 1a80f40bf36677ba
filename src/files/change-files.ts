/** The last changes through the API, in `<state>/audit/changes.jsonl`, or in memory only. */
import { Change } from '../schema/status/resource-answers.ts';
import { messageOf } from '../platform/error-text.ts';
import type { SourceLog } from '../platform/log.ts';
import { appendJsonLines, readJsonLines } from './json-lines.ts';
import { SYSTEM_DISK, type Disk } from './regular-file.ts';
import { createWriteLog } from './write-file.ts';

export const MOST_CHANGES = 1000;
/** Some thousand changes of a slot. One older file is kept. */
const MOST_BYTES = 2 * 1024 * 1024;
/** Who does what is personal data. */
const MODES = { mode: 0o600, directoryMode: 0o700 } as const;

export interface ChangeRecord {
  add(change: Change): void;
  /** The last `MOST_CHANGES`, oldest first. Never rejects. */
  list(): Promise<readonly Change[]>;
}

/** `path` undefined: in memory. What cannot be written is kept, and written with the next change. */
export function createChangeRecord(path: string | undefined, log: SourceLog, disk: Disk = SYSTEM_DISK): ChangeRecord {
  let unwritten: readonly Change[] = [];
  let written = Promise.resolve();
  const writes = createWriteLog(log);

  async function write(file: string): Promise<void> {
    const changes = unwritten;
    if (changes.length === 0) return;
    try {
      await appendJsonLines(file, changes, { mostBytes: MOST_BYTES, ...MODES, disk });
      unwritten = unwritten.filter((change) => !changes.includes(change));
      writes.succeeded(file);
    } catch (error) {
      writes.failed('who changed what', file, error);
    }
  }

  async function read(file: string): Promise<readonly Change[]> {
    try {
      return await readJsonLines(file, Change, disk);
    } catch (error) {
      log.warn({ file, error: messageOf(error) }, `"${file}" cannot be read, so earlier changes are not listed`);
      return [];
    }
  }

  return {
    add(change) {
      unwritten = [...unwritten, change].slice(-MOST_CHANGES);
      if (path !== undefined) written = written.then(async () => await write(path));
    },
    async list() {
      // Nothing is written meanwhile, so no change is in the file and here.
      const listed = written.then(async () => {
        const earlier = path === undefined ? [] : await read(path);
        return [...earlier, ...unwritten].slice(-MOST_CHANGES);
      });
      written = listed.then(() => undefined);
      return await listed;
    },
  };
}
