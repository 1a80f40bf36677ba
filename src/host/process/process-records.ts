/** What is written down of each process, in `<state>/run/<name>.json` and `<name>.exit`, so that the next controller finds it. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { Revision, SlotName } from '../../schema/names.ts';

const StoredRecord = z.object({
  name: z.string(),
  slot: SlotName,
  revision: Revision,
  generation: z.int(),
  pid: z.int().min(2),
  /** With the pid and the boot: this process and no other. See `process-identity.ts`. */
  start: z.string().min(1),
  bootId: z.string(),
  /** Unix milliseconds. */
  startedAt: z.number(),
  /** As the workload has it; what `program` stands for its first element. */
  argv: z.tuple([z.string()], z.string()),
  program: z.array(z.string()).min(1),
  env: z.record(z.string(), z.string()),
  port: z.object({ host: z.int(), container: z.int() }),
});

const ProcessExit = z.object({ code: z.int().optional(), at: z.number(), message: z.string().optional() });
export type ProcessExit = z.output<typeof ProcessExit>;
/** In a file of its own: who notes an end must not bring back a record that another has just removed. */
const ExitRecord = z.object({ pid: z.int(), start: z.string(), exit: ProcessExit });

export interface ProcessRecord extends z.output<typeof StoredRecord> {
  readonly exit?: ProcessExit;
}

export interface ProcessRecords {
  /** All that can be read; a file that is not a record is passed over. */
  readAll(): Promise<readonly ProcessRecord[]>;
  read(name: string): Promise<ProcessRecord | undefined>;
  /** All or nothing: a reader never sees half of it. */
  write(record: ProcessRecord): Promise<void>;
  /** Notes how a process ended; the first to do so is right. Without a record of that process it changes nothing. */
  writeExit(record: Pick<ProcessRecord, 'name' | 'pid' | 'start'>, exit: ProcessExit): Promise<void>;
  remove(name: string): Promise<void>;
}

const SAFE_NAME = /^[a-z0-9](?:[a-z0-9-]{0,80})$/;
/** Whether a name may become a file's name. */
export const isSafeName = (name: string): boolean => SAFE_NAME.test(name);

export function createProcessRecords(directory: string): ProcessRecords {
  const pathOf = (name: string): string => join(directory, `${name}.json`);
  const exitPathOf = (name: string): string => join(directory, `${name}.exit`);
  const text = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
  const replace = async (path: string, content: unknown): Promise<void> => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const draft = `${path}.${process.pid}.tmp`;
    // The environment may hold a person's secrets.
    await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
    await rename(draft, path);
  };
  const read = async (name: string): Promise<ProcessRecord | undefined> => {
    if (!isSafeName(name)) return undefined;
    const record = parse(StoredRecord, await text(pathOf(name)));
    if (record?.name !== name) return undefined;
    const ended = parse(ExitRecord, await text(exitPathOf(name)));
    return ended?.pid === record.pid && ended.start === record.start ? { ...record, exit: ended.exit } : record;
  };
  return {
    read,
    async readAll() {
      const files = await readdir(directory).catch(() => []);
      const names = files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -'.json'.length));
      const records = await Promise.all(names.toSorted().map(read));
      return records.filter((record) => record !== undefined);
    },
    async write({ exit: _none, ...record }) {
      await replace(pathOf(record.name), record);
    },
    async writeExit({ name, pid, start }, exit) {
      const present = await read(name);
      if (present?.pid !== pid || present.start !== start || present.exit !== undefined) return;
      await replace(exitPathOf(name), { pid, start, exit });
    },
    async remove(name) {
      await rm(pathOf(name), { force: true });
      await rm(exitPathOf(name), { force: true });
    },
  };
}

function parse<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
