/** Records each process in `<state>/run/<name>.json` and `<name>.exit`, so that the next controller finds it. */
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
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
  /** Together with the pid and the boot id it identifies the process. See `process-table.ts`. */
  start: z.string().min(1),
  bootId: z.string(),
  /** Unix milliseconds. */
  startedAt: z.number(),
  /** The workload's argument vector; `program` is what its first element was resolved to. */
  argv: z.tuple([z.string()], z.string()),
  program: z.array(z.string()).min(1),
  env: z.record(z.string(), z.string()),
  port: z.object({ host: z.int(), container: z.int() }),
});

const ProcessExit = z.object({ code: z.int().exactOptional(), at: z.number(), message: z.string().exactOptional() });
export type ProcessExit = z.output<typeof ProcessExit>;
/** In a separate file, since recording an exit must not restore a record that was removed at the same time. */
const ExitRecord = z.object({ pid: z.int(), start: z.string(), exit: ProcessExit });

export interface ProcessRecord extends z.output<typeof StoredRecord> {
  readonly exit?: ProcessExit;
}

export type ProcessRecords = ReturnType<typeof createProcessRecords>;

/** Whether a name can be used as a file name. */
export const isSafeName = (name: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,80})$/.test(name);

/**
 * The directory is the truth as long as it is the same one. If it was moved or deleted while processes run, what this controller knew of them holds, and is written
 * into the next directory at this path.
 */
export function createProcessRecords(directory: string) {
  const pathOf = (name: string): string => join(directory, `${name}.json`);
  const exitPathOf = (name: string): string => join(directory, `${name}.exit`);
  const text = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
  /** The records of the directory when it was last read, and those that were written since. */
  const known = new Map<string, ProcessRecord>();
  /** The directory that they are in; undefined if there was none yet. */
  let home: string | undefined;
  /** What writes or removes the files of one process runs in turn: an exit that is recorded late must not leave a file behind. */
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
  /** Brings the files in line with what is known after the directory has become another one. Fails while there is none. */
  const settle = async (): Promise<void> => {
    const present = new Set(await namesIn('.json'));
    for (const record of known.values()) if (!present.has(record.name)) await writeRecord(record);
    home = await identityOf(directory);
  };
  return {
    read,
    /** Returns all valid records; other files are ignored. */
    async readAll(): Promise<readonly ProcessRecord[]> {
      if (home === undefined) await removeOrphanedExits(await namesIn('.exit'), await namesIn('.json'), exitPathOf);
      if (await isElsewhere()) await settle().catch(() => undefined);
      for (;;) {
        const place = await identityOf(directory);
        const elsewhere = home !== undefined && place !== home;
        const names = new Set([...(await namesIn('.json')), ...(elsewhere ? known.keys() : [])]);
        const records = (await Promise.all([...names].toSorted().map(read))).filter((record) => record !== undefined);
        if (elsewhere) return records;
        // Of a directory that was moved meanwhile, not everything was read.
        if ((await identityOf(directory)) !== place) continue;
        home = place;
        known.clear();
        for (const record of records) known.set(record.name, record);
        return records;
      }
    },
    /** Atomic: a reader never sees a part of it. */
    async write(record: ProcessRecord): Promise<void> {
      await lock(record.name, async () => await writeRecord(record));
    },
    /** Records how a process ended; only the first call counts. Does nothing if there is no record of that process. */
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

/** Identifies a directory, which differs from a later one at the same path. Undefined if there is none. */
async function identityOf(directory: string): Promise<string | undefined> {
  const facts = await stat(directory, { bigint: true }).catch(() => undefined);
  return facts === undefined ? undefined : `${facts.dev}:${facts.ino}:${facts.birthtimeNs}`;
}

/** Earlier versions left them behind. */
async function removeOrphanedExits(exits: readonly string[], records: readonly string[], pathOf: (name: string) => string): Promise<void> {
  const orphans = exits.filter((name) => !records.includes(name));
  await Promise.all(orphans.map(async (name) => await rm(pathOf(name), { force: true }).catch(() => undefined)));
}
