/** The directory of kept prompts: `<state>/prompts/<slot>`. Nothing behind a link is read or deleted. */
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, isAbsent } from '../../platform/error-text.ts';
import type { Log } from '../../platform/log.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { chooseSuperfluous, HEAD_BYTES, isContinued, parseName, UNFINISHED, type StoredFile } from './decide/prompt-files.ts';

export interface PromptDirectoryOptions {
  /** `<state>/prompts`. */
  readonly root: string;
  readonly log: Pick<Log, 'warn'>;
  readonly wallNow: () => number;
}

export interface Located extends StoredFile {
  readonly path: string;
}

export function createPromptDirectory({ root, log, wallNow }: PromptDirectoryOptions) {
  const directoryOf = (slot: string): string => join(root, slot);

  async function namesIn(...[directory = root]: readonly string[]): Promise<readonly string[]> {
    const facts = await Promise.all([root, directory].map(async (path) => await lstat(path).catch(whereAbsent(undefined))));
    return facts.every((each) => each?.isDirectory() === true) ? await readdir(directory) : [];
  }

  async function list(slot: string): Promise<readonly Located[]> {
    const directory = directoryOf(slot);
    const files = await Promise.all((await namesIn(directory)).map(async (name) => await look(directory, name)));
    return files.flatMap((file) => file ?? []);
  }

  /** Deletes what is not a file of ours: only this program and its servers write here. */
  async function look(directory: string, name: string): Promise<Located | undefined> {
    const path = join(directory, name);
    const file = parseName(name);
    const facts = await lstat(path).catch(whereAbsent(undefined));
    if (facts === undefined || name.endsWith(UNFINISHED)) return undefined;
    if (file !== undefined && facts.isFile() && facts.nlink === 1)
      return { ...file, path, bytes: facts.size, ageMs: wallNow() - facts.mtimeMs };
    await rm(path, { recursive: true, force: true });
    log.warn({ path }, 'A foreign entry among kept prompts was deleted');
    return undefined;
  }

  return {
    directoryOf,
    list,
    /** Makes the directory of a slot. */
    async make(slot: SlotName): Promise<void> {
      const directory = directoryOf(slot);
      for (const each of [root, directory]) {
        await mkdir(each, { mode: 0o700 }).catch((error: unknown) => {
          if (codeOf(error) !== 'EEXIST') throw error;
        });
        if (!(await lstat(each)).isDirectory()) throw new Error(`"${each}" is not a directory: remove it`);
      }
    },
    /** Deletes what a service that was killed has left of a save or a restore. Returns whether there was anything. */
    async sweep(slot: SlotName): Promise<boolean> {
      const left = (await namesIn(directoryOf(slot))).filter((name) => name.endsWith(UNFINISHED));
      for (const name of left) await rm(join(directoryOf(slot), name), { force: true });
      return left.length > 0;
    },
    /** Files of the same conversation as that of `path`, some turns ago. */
    async findReplaced(slot: SlotName, key: string, path: string, tokens: number): Promise<readonly Located[]> {
      const files = (await list(slot)).filter((file) => file.key === key);
      if (files.length === 0) return [];
      const head = await headOf(path);
      const continued = await Promise.all(files.map(async (file) => isContinued(await headOf(file.path), file.tokens, head, tokens)));
      return files.filter((_, index) => continued[index]);
    },
    async makeRoom(limitBytes: number): Promise<void> {
      const files = (await Promise.all((await namesIn()).map(list))).flat();
      for (const { path } of chooseSuperfluous(files, limitBytes)) await rm(path, { force: true });
    },
    async keepOnly(slots: ReadonlySet<string>): Promise<void> {
      for (const name of await namesIn()) if (!slots.has(name)) await rm(directoryOf(name), { recursive: true, force: true });
    },
  };
}

async function headOf(path: string): Promise<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

export const whereAbsent =
  <Value>(value: Value) =>
  (error: unknown): Value => {
    if (isAbsent(error)) return value;
    throw error;
  };
