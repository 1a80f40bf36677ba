/** Records processes in `<state>/run/<name>.json` and `<name>.exit` for the next controller. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { identityOf } from '../../files/watch-directory.ts';
import { makeSubdirectory, writeJsonAtomically } from '../../files/write-file.ts';
import { createKeyedLock } from '../../platform/semaphore.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { Revision, SlotName } from '../../schema/words/names.ts';

export const StoredRecord = z.object({
  name: z.string(),
  slot: SlotName,
  revision: Revision,
  generation: z.int(),
  pid: z.int().min(2),
  /** Identifies the process together with pid and boot id; see `process-table.ts`. */
  start: z.string().min(1),
  bootId: z.string(),
  /** Unix milliseconds. */
  startedAt: z.number(),
  /** `program` is the resolved first element. */
  argv: z.tuple([z.string()], z.string()),
  program: z.array(z.string()).min(1),
  env: z.record(z.string(), z.string()),
  port: z.object({ host: z.int(), container: z.int() }),
});

const ProcessExit = z.object({ code: z.int().exactOptional(), at: z.number(), message: z.string().exactOptional() });
export type ProcessExit = z.output<typeof ProcessExit>;
/** A separate file, because recording an exit must not restore a record that is being removed. */
const ExitRecord = z.object({ pid: z.int(), start: z.string(), exit: ProcessExit });

export interface ProcessRecord extends z.output<typeof StoredRecord> {
  readonly exit?: ProcessExit;
}

export type ProcessRecords = ReturnType<typeof createProcessRecords>;

/** Whether the name is valid as a file name. */
export const isSafeName = (name: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,80})$/.test(name);

/**
 * The directory is authoritative while it is the same one. If it was moved or deleted while processes run, this
 * controller's knowledge holds and is written to the next directory at this path.
 */
export function createProcessRecords(directory: string) {
  const pathOf = (name: string): string => join(directory, `${name}.json`);
  const exitPathOf = (name: string): string => join(directory, `${name}.exit`);
  const text = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
  /** Records of the last read, and later writes. */
  const known = new Map<string, ProcessRecord>();
  /** Their directory; undefined if there was none yet. */
  let home: string | undefined;
  /** Serializes changes of one process: a late exit must not leave a file behind. */
  const lock = createKeyedLock();

  const isElsewhere = async (): Promise<boolean> => home !== undefined && (await identityOf(directory)) !== home;
  // The environment may contain the user's secrets.
  const replace = async (path: string, content: unknown): Promise<void> => {
    await makeSubdirectory(directory, 0o700);
    await writeJsonAtomically(path, content, 0o600);
  };
  const writeRecord = async ({ exit: _none, ...record }: ProcessRecord): Promise<void> => {
    await replace(pathOf(record.name), record);
    known.set(record.name, record);
    home ??= await identityOf(directory);
  };
  const readFiles = async (name: string): Promise<ProcessRecord | undefined> => {
    const record = StoredRecord.safeParse(parseJson(await text(pathOf(name)))).data;
    if (record?.name !== name) return undefined;
    const ended = ExitRecord.safeParse(parseJson(await text(exitPathOf(name)))).data;
    return ended?.pid === record.pid && ended.start === record.start ? { ...record, exit: ended.exit } : record;
  };
  const read = async (name: string): Promise<ProcessRecord | undefined> => {
    if (!isSafeName(name)) return undefined;
    return (await readFiles(name)) ?? ((await isElsewhere()) ? known.get(name) : undefined);
  };
  const namesIn = async (extension: string): Promise<readonly string[]> => {
    const files = await readdir(directory).catch(() => []);
    return files.filter((file) => file.endsWith(extension)).map((file) => file.slice(0, -extension.length));
  };
  /** Writes known records into a new directory. Fails while there is none. */
  const settle = async (): Promise<void> => {
    const present = new Set(await namesIn('.json'));
    for (const record of known.values()) if (!present.has(record.name)) await writeRecord(record);
    home = await identityOf(directory);
  };
  return {
    read,
    /** Ignores invalid files. */
    async readAll(): Promise<readonly ProcessRecord[]> {
      if (home === undefined) await removeOrphanedExits(await namesIn('.exit'), await namesIn('.json'), exitPathOf);
      if (await isElsewhere()) await settle().catch(() => undefined);
      for (;;) {
        const place = await identityOf(directory);
        const elsewhere = home !== undefined && place !== home;
        const names = new Set([...(await namesIn('.json')), ...(elsewhere ? known.keys() : [])]);
        const records = (await Promise.all([...names].toSorted().map(read))).filter((record) => record !== undefined);
        if (elsewhere) return records;
        // The directory was moved during the read.
        if ((await identityOf(directory)) !== place) continue;
        home = place;
        known.clear();
        for (const record of records) known.set(record.name, record);
        return records;
      }
    },
    /** Atomic. */
    async write(record: ProcessRecord): Promise<void> {
      await lock(record.name, async () => await writeRecord(record));
    },
    /** Only the first call counts. Does nothing without a record of the process. */
    async writeExit({ name, pid, start }: ProcessRecord, exit: ProcessExit): Promise<void> {
      await lock(name, async () => {
        const present = await read(name);
        if (present?.pid !== pid || present.start !== start || present.exit !== undefined) return;
        await replace(exitPathOf(name), { pid, start, exit });
      });
    },
    async remove(name: string): Promise<void> {
      await lock(name, async () => {
        known.delete(name);
        await rm(pathOf(name), { force: true });
        await rm(exitPathOf(name), { force: true });
      });
    },
  };
}

/** Earlier versions left exits behind. */
async function removeOrphanedExits(exits: readonly string[], records: readonly string[], pathOf: (name: string) => string): Promise<void> {
  const orphans = exits.filter((name) => !records.includes(name));
  await Promise.all(orphans.map(async (name) => await rm(pathOf(name), { force: true }).catch(() => undefined)));
}
