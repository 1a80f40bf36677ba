/** Records processes in `<state>/run/<name>.json` and `<name>.exit` for the next controller. */
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { SYSTEM_DISK, type Disk } from '../../files/regular-file.ts';
import { UNCERTAIN_MS } from '../../files/read-text-file.ts';
import { identityOf } from '../../files/watch-directory.ts';
import { ifThere, listDirectory, makeSubdirectory, writeJsonAtomically } from '../../files/write-file.ts';
import { createKeyedLock, inTurns } from '../../platform/semaphore.ts';
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

const ProcessExit = z.object({
  code: z.int().exactOptional(),
  at: z.number(),
  message: z.string().exactOptional(),
  outOfMemory: z.literal(true).exactOptional(),
});
export type ProcessExit = z.output<typeof ProcessExit>;
/** A separate file, because recording an exit must not restore a record that is being removed. */
const ExitRecord = z.object({ pid: z.int(), start: z.string(), exit: ProcessExit });

export interface ProcessRecord extends z.output<typeof StoredRecord> {
  readonly exit?: ProcessExit;
}

export type ProcessRecords = ReturnType<typeof createProcessRecords>;

/** Each function rejects with the system's error if it cannot tell or do what it is asked. */
export const createRecordFiles = (disk: Disk = SYSTEM_DISK) => ({
  /** Undefined if there is no such file. */
  read: async (path: string): Promise<string | undefined> => await ifThere(disk.readFile(path, 'utf8')),
  list: async (directory: string) => await listDirectory(directory, disk),
  async write(path: string, content: unknown): Promise<void> {
    // The environment may contain the user's secrets.
    await makeSubdirectory(dirname(path), 0o700, disk);
    await writeJsonAtomically(path, content, 0o600, { disk });
  },
  remove: async (path: string): Promise<void> => await disk.rm(path, { force: true }),
  identity: async (directory: string) => await identityOf(directory, disk),
  /** Differs once a file was added, replaced or removed; undefined while the last change is too recent to tell. */
  async stamp(directory: string): Promise<string | undefined> {
    const facts = await ifThere(disk.stat(directory, { bigint: true }));
    const isSettled = facts !== undefined && Date.now() - Number(facts.mtimeNs / 1_000_000n) > UNCERTAIN_MS;
    return isSettled ? `${facts.dev}:${facts.ino}:${facts.mtimeNs}:${facts.ctimeNs}` : undefined;
  },
});

const keyOf = ({ name, pid, start }: ProcessRecord): string => `${name} ${pid} ${start}`;

/** Whether the name is valid as a file name. */
export const isSafeName = (name: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,80})$/.test(name);

/**
 * The directory is authoritative while it is the same one. If it was moved or deleted while processes run, this
 * controller's knowledge holds and is written to the next directory at this path. Damaged files replace no knowledge.
 */
export function createProcessRecords(directory: string, files = createRecordFiles()) {
  const pathOf = (name: string): string => join(directory, `${name}.json`);
  const exitPathOf = (name: string): string => join(directory, `${name}.exit`);
  /** Records of the last read, and later writes. */
  const known = new Map<string, ProcessRecord>();
  /** Names of damaged files. */
  let damaged: ReadonlySet<string> = new Set();
  /** Their directory; undefined if there was none yet. */
  let home: string | undefined;
  /** Serializes changes of one process: a late exit must not leave a file behind. */
  const lock = createKeyedLock();

  const isElsewhere = async (): Promise<boolean> => home !== undefined && (await files.identity(directory)) !== home;
  const writeRecord = async ({ exit: _none, ...record }: ProcessRecord): Promise<void> => {
    await files.write(pathOf(record.name), record);
    known.set(record.name, record);
    home ??= await files.identity(directory);
  };
  const readExit = async (record: ProcessRecord): Promise<ProcessRecord> => {
    const ended = ExitRecord.safeParse(parseJson((await files.read(exitPathOf(record.name))) ?? '')).data;
    return ended?.pid === record.pid && ended.start === record.start ? { ...record, exit: ended.exit } : record;
  };
  const readFiles = async (name: string): Promise<ProcessRecord | 'damaged' | undefined> => {
    const text = await files.read(pathOf(name));
    if (text === undefined) return undefined;
    const record = StoredRecord.safeParse(parseJson(text)).data;
    if (record?.name === name) return await readExit(record);
    const last = known.get(name);
    return last === undefined ? 'damaged' : await readExit(last);
  };
  const read = async (name: string): Promise<ProcessRecord | undefined> => {
    const found = isSafeName(name) ? await readFiles(name) : undefined;
    if (found !== undefined) return found === 'damaged' ? undefined : found;
    return (await isElsewhere()) ? known.get(name) : undefined;
  };
  const namesIn = async (extension: string): Promise<readonly string[]> => {
    const present = await files.list(directory);
    return present.filter((file) => file.endsWith(extension)).map((file) => file.slice(0, -extension.length));
  };
  /** Writes known records into a new directory. Fails while there is none. */
  const settle = async (): Promise<void> => {
    const present = new Set(await namesIn('.json'));
    for (const record of known.values()) if (!present.has(record.name)) await writeRecord(record);
    home = await files.identity(directory);
  };
  /** Earlier versions left exits behind. */
  const removeOrphanedExits = async (exits: readonly string[], present: readonly string[]): Promise<void> => {
    const orphans = exits.filter((name) => !present.includes(name));
    await inTurns(orphans, async (name) => await files.remove(exitPathOf(name)).catch(() => undefined));
  };
  return {
    read,
    stamp: async () => await files.stamp(directory),
    /** `lost`: a record that was there is gone, damaged or of another process, and nobody here changed it. */
    async readAll(): Promise<{ readonly records: readonly ProcessRecord[]; readonly lost: boolean }> {
      if (home === undefined) await removeOrphanedExits(await namesIn('.exit'), await namesIn('.json'));
      if (await isElsewhere()) await settle().catch(() => undefined);
      for (;;) {
        const place = await files.identity(directory);
        const elsewhere = home !== undefined && place !== home;
        const names = [...new Set([...(await namesIn('.json')), ...(elsewhere ? known.keys() : [])])].filter(isSafeName).toSorted();
        const found = await inTurns(names, async (name) => await readFiles(name));
        // The directory was moved during the read.
        if ((await files.identity(directory)) !== place) continue;
        const valid = found.map((record, index) =>
          typeof record === 'object' ? record : elsewhere ? known.get(names[index] ?? '') : undefined,
        );
        const records = valid.filter((record) => record !== undefined);
        if (elsewhere) return { records, lost: false };
        const present = new Set(records.map(keyOf));
        const bad = new Set(names.filter((_, index) => found[index] === 'damaged'));
        const lost = [...known.values()].some((record) => !present.has(keyOf(record))) || [...bad].some((name) => !damaged.has(name));
        home = place;
        damaged = bad;
        known.clear();
        for (const record of records) known.set(record.name, record);
        return { records, lost };
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
        await files.write(exitPathOf(name), { pid, start, exit });
      });
    },
    async remove(name: string): Promise<void> {
      await lock(name, async () => {
        known.delete(name);
        // The record last: once it is gone, nothing shows that a removal failed.
        await files.remove(exitPathOf(name));
        await files.remove(pathOf(name));
      });
    },
  };
}
