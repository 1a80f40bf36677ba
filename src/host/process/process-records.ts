/** Records each process in `<state>/run/<name>.json` and `<name>.exit`, so that the next controller finds it. */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeJsonAtomically } from '../../files/write-file.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { Revision, SlotName } from '../../schema/names.ts';

const StoredRecord = z.object({
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

export function createProcessRecords(directory: string) {
  const pathOf = (name: string): string => join(directory, `${name}.json`);
  const exitPathOf = (name: string): string => join(directory, `${name}.exit`);
  const text = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
  // The environment may contain the user's secrets.
  const replace = async (path: string, content: unknown): Promise<void> => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeJsonAtomically(path, content, 0o600);
  };
  const read = async (name: string): Promise<ProcessRecord | undefined> => {
    if (!isSafeName(name)) return undefined;
    const record = StoredRecord.safeParse(parseJson(await text(pathOf(name)))).data;
    if (record?.name !== name) return undefined;
    const ended = ExitRecord.safeParse(parseJson(await text(exitPathOf(name)))).data;
    return ended?.pid === record.pid && ended.start === record.start ? { ...record, exit: ended.exit } : record;
  };
  return {
    read,
    /** Returns all valid records; other files are ignored. */
    async readAll(): Promise<readonly ProcessRecord[]> {
      const files = await readdir(directory).catch(() => []);
      const names = files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -'.json'.length));
      const records = await Promise.all(names.toSorted().map(read));
      return records.filter((record) => record !== undefined);
    },
    /** Atomic: a reader never sees a part of it. */
    async write({ exit: _none, ...record }: ProcessRecord): Promise<void> {
      await replace(pathOf(record.name), record);
    },
    /** Records how a process ended; only the first call counts. Does nothing if there is no record of that process. */
    async writeExit({ name, pid, start }: ProcessRecord, exit: ProcessExit): Promise<void> {
      const present = await read(name);
      if (present?.pid !== pid || present.start !== start || present.exit !== undefined) return;
      await replace(exitPathOf(name), { pid, start, exit });
    },
    async remove(name: string): Promise<void> {
      await rm(pathOf(name), { force: true });
      await rm(exitPathOf(name), { force: true });
    },
  };
}
