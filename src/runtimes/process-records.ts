/** What is written down of each process, in `<state>/run/<name>.json`, so that the next controller finds it. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { Revision, SlotName } from '../spec/names.ts';

export const ProcessRecord = z.object({
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
  exit: z.object({ code: z.int().optional(), at: z.number(), message: z.string().optional() }).optional(),
});
export type ProcessRecord = z.output<typeof ProcessRecord>;

export interface ProcessRecords {
  /** All that can be read; a file that is not a record is passed over. */
  readAll(): Promise<readonly ProcessRecord[]>;
  read(name: string): Promise<ProcessRecord | undefined>;
  /** All or nothing: a reader never sees half of it. */
  write(record: ProcessRecord): Promise<void>;
  remove(name: string): Promise<void>;
}

const SAFE_NAME = /^[a-z0-9](?:[a-z0-9-]{0,80})$/;
/** Whether a name may become a file's name. */
export const isSafeName = (name: string): boolean => SAFE_NAME.test(name);

export function createProcessRecords(directory: string): ProcessRecords {
  const pathOf = (name: string): string => join(directory, `${name}.json`);
  const read = async (name: string): Promise<ProcessRecord | undefined> => {
    if (!isSafeName(name)) return undefined;
    const text = await readFile(pathOf(name), 'utf8').catch(() => undefined);
    const record = text === undefined ? undefined : parse(text);
    return record?.name === name ? record : undefined;
  };
  return {
    read,
    async readAll() {
      const files = await readdir(directory).catch(() => []);
      const names = files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -'.json'.length));
      const records = await Promise.all(names.toSorted().map(read));
      return records.filter((record) => record !== undefined);
    },
    async write(record) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const draft = join(directory, `.${record.name}.${process.pid}.tmp`);
      // The environment may hold a person's secrets.
      await writeFile(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
      await rename(draft, pathOf(record.name));
    },
    remove: (name) => rm(pathOf(name), { force: true }),
  };
}

function parse(text: string): ProcessRecord | undefined {
  try {
    return ProcessRecord.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
