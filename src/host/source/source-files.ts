/**
 * Writes what a commit declares into the directory of the configuration, as one change, and remembers it. Before the
 * first file changes, all texts are on disk, and a journal says what is to be done: a killed service finishes it.
 */
import { rmSync } from 'node:fs';
import { readdir, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { createTextFileMemory } from '../../files/read-text-file.ts';
import { LARGE_TEXT_BYTES, readRegularFile } from '../../files/regular-file.ts';
import {
  explainWriteError,
  ifThere,
  makeSubdirectory,
  stageFile,
  syncDirectory,
  writeJsonAtomically,
  type StagedFile,
} from '../../files/write-file.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { inTurns } from '../../platform/semaphore.ts';
import { isSecret } from './decide/judge-tree.ts';
import type { FileEdit, Owned } from './decide/plan-source.ts';

export interface SourceFilesOptions {
  readonly configDir: string;
  /** `<state>/source`. */
  readonly directory: string;
  /** Runs work while no pass reads the configuration. */
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>;
}

const OwnedFile = z.object({ text: z.string(), commit: z.string() });
/** What the source has applied, and what people have told it. */
const Applied = z.object({
  format: z.literal(1),
  /** Null before the first one. */
  commit: z.string().nullable(),
  /** Unix milliseconds. */
  at: z.number(),
  suspended: z.boolean(),
  files: z.record(z.string(), OwnedFile),
});
export interface Applied extends Omit<z.output<typeof Applied>, 'format' | 'files'> {
  readonly files: Owned;
}

const Edit = z
  .object({ path: z.string(), before: z.string().optional(), after: z.string().optional() })
  .transform(({ path: file, before, after }): FileEdit => ({ path: file, before, after }));
const Journal = z.object({ applied: Applied, edits: z.array(Edit) });

export const NOTHING: Applied = { commit: null, at: 0, suspended: false, files: new Map() };

/** New files may contain tokens in `[env]`. */
const FILE_MODE = 0o640;
/** Texts may contain them, too. */
const RECORD_MODE = 0o600;

export type SourceFiles = ReturnType<typeof createSourceFiles>;

export function createSourceFiles({ configDir, directory, exclusive }: SourceFilesOptions) {
  const memory = createTextFileMemory();
  const [recordFile, journalFile] = [path.join(directory, 'applied.json'), path.join(directory, 'journal.json')];
  const placeOf = (file: string): string => path.join(isSecret(file) ? directory : configDir, file);

  const readOne = async (file: string): Promise<string | null | undefined> => {
    const read = await memory.read(placeOf(file));
    return read?.file.kind === 'unreadable' ? null : read?.file.text;
  };

  async function write(file: string, value: unknown): Promise<void> {
    await makeSubdirectory(directory, 0o700);
    await writeJsonAtomically(file, value, RECORD_MODE, { sync: true });
  }
  const save = async (applied: Applied): Promise<void> => await write(recordFile, stored(applied));

  /** Keeps the last local text that a commit replaced, because nobody has saved it in the repository. */
  async function keepReplaced(edits: readonly FileEdit[], owned: Owned): Promise<void> {
    for (const { path: file, before } of edits)
      if (before !== undefined && !isSecret(file) && before !== owned.get(file)?.text) {
        const kept = await stageFile(path.join(directory, 'replaced', file), before, { mode: RECORD_MODE });
        kept.commit();
      }
  }

  /** Puts all edits in place that are not there yet. What somebody has edited meanwhile stays. */
  async function place(edits: readonly FileEdit[]): Promise<void> {
    const staged = new Map<string, StagedFile>();
    try {
      for (const { path: file, after } of edits)
        if (after !== undefined)
          staged.set(file, await stageFile(placeOf(file), after, { ...(await ownerOf(file, placeOf(file))), sync: true }));
      await exclusive(async () => {
        const present = await inTurns(edits, async ({ path: file }) => await readOne(file));
        // Synchronous, so that no pass reads a mix of new and old texts.
        for (const [index, { path: file, before, after }] of edits.entries()) {
          if (present[index] !== before) continue;
          if (after === undefined) rmSync(placeOf(file), { force: true });
          else staged.get(file)?.commit();
        }
      });
      const directories = new Set(edits.map(({ path: file }) => path.dirname(placeOf(file))));
      for (const each of directories) {
        // A profile without slots is one with a mistake. The directory remains if it has other files.
        if (path.basename(path.dirname(each)) === 'profiles') await rmdir(each).catch(() => undefined);
        await syncDirectory(each);
      }
    } finally {
      for (const file of staged.values()) await file.discard();
    }
  }

  return {
    /** Throws if a record exists and cannot be read: without it, files would have no owner. */
    async read(): Promise<Applied> {
      const text = await ifThere(readRegularFile(recordFile, { mostBytes: 2 * LARGE_TEXT_BYTES }));
      if (text === undefined) return NOTHING;
      const found = Applied.safeParse(parseJson(text));
      if (!found.success)
        throw new Error(`"${recordFile}" is damaged or of a later version; delete it, and the files that are declared get an owner again`);
      return restored(found.data);
    },
    save,
    /** Returns what a killed service has begun to apply, once it is in place. Throws the system's error. */
    async finish(): Promise<Applied | undefined> {
      const text = await ifThere(readRegularFile(journalFile, { mostBytes: 4 * LARGE_TEXT_BYTES }));
      if (text === undefined) return undefined;
      const journal = Journal.safeParse(parseJson(text)).data;
      if (journal !== undefined) {
        await place(journal.edits);
        await write(recordFile, journal.applied);
      }
      await rm(journalFile, { force: true });
      return journal && restored(journal.applied);
    },
    /** All or nothing, also if the service is killed. Throws an error whose message explains what to do. */
    async apply(edits: readonly FileEdit[], applied: Applied, owned: Owned): Promise<void> {
      let begun = false;
      try {
        if (edits.length > 0) {
          await keepReplaced(edits, owned);
          await write(journalFile, { applied: stored(applied), edits });
          begun = true;
          await place(edits);
        }
        await save(applied);
        await rm(journalFile, { force: true });
      } catch (error) {
        // Nothing is in place, or the journal remains until all is.
        if (begun && (await isUntouched(edits, readOne))) await rm(journalFile, { force: true }).catch(() => undefined);
        throw new Error(explainWriteError(configDir, error), { cause: error });
      }
    },
    /** Undefined: there is no file. Null: an entry that is no text. */
    async readLocal(paths: Iterable<string>): Promise<ReadonlyMap<string, string | null>> {
      const all = [...paths];
      const texts = await inTurns(all, readOne);
      return new Map(all.flatMap((file, index) => (texts[index] === undefined ? [] : [[file, texts[index]] as const])));
    },
    /** Names of the engines that only files of this machine declare. */
    async localEngines(owned: Owned): Promise<ReadonlySet<string>> {
      const names = await readdir(placeOf('engines')).catch((): string[] => []);
      const own = names.filter((name) => name.endsWith('.toml') && !owned.has(`engines/${name}`));
      return new Set(own.map((name) => name.slice(0, -'.toml'.length)));
    },
  };
}

/** A file keeps its mode and owner, as with an editor. */
async function ownerOf(file: string, place: string) {
  if (isSecret(file)) return { mode: RECORD_MODE };
  const facts = await stat(place).catch(() => undefined);
  return facts?.isFile() === true ? { mode: facts.mode & 0o777, owner: { uid: facts.uid, gid: facts.gid } } : { mode: FILE_MODE };
}

const isUntouched = async (edits: readonly FileEdit[], readOne: (file: string) => Promise<string | null | undefined>): Promise<boolean> =>
  (await inTurns(edits, async ({ path: file, before }) => (await readOne(file)) === before)).every((same) => same);

const stored = ({ files, ...applied }: Applied) => ({ format: 1 as const, ...applied, files: Object.fromEntries(files) });
const restored = ({ format: _format, files, ...applied }: z.output<typeof Applied>): Applied => ({
  ...applied,
  files: new Map(Object.entries(files)),
});
