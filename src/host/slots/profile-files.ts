/**
 * The profiles of a host: directories `<config>/profiles/<name>/` with slot files, which people may edit. Every problem
 * is reported and stays local. A profile is written under another name and renamed when complete; leftovers of a killed
 * process are repaired before the next change.
 */
import { randomUUID } from 'node:crypto';
import { renameSync } from 'node:fs';
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { readTextFile, unreadableText } from '../../files/read-text-file.ts';
import { listDirectory, syncDirectory, writeFileAtomically } from '../../files/write-file.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { createKeyedLock } from '../../platform/semaphore.ts';
import { ProfileName, SlotName } from '../../schema/words/names.ts';
import type { SpecProblem } from '../../schema/slot/spec-problem.ts';
import type { FoundText, FoundTexts } from './decide/plan-switch.ts';
import { isSlotFileName } from './slot-files.ts';

/** People choose from a list. More are not read. */
export const MOST_PROFILES = 100;
/** Same as the limit of one request. */
const MOST_SLOTS = 1000;
/** All files of a profile together. A slot usually has less than one kilobyte. */
const MOST_BYTES = 4 * 1024 * 1024;
/** Same as the directory of slots: files may contain secrets. */
const DIRECTORY_MODE = 0o750;
/** Profiles being written, replaced or removed. No profile has a name with a leading dot. */
const UNFINISHED = /^\.(?<name>[a-z0-9-]{1,40})\.[0-9a-f]{8}\.(?<kind>new|old)$/;

export interface FoundProfile {
  readonly texts: FoundTexts;
  readonly problems: readonly SpecProblem[];
}

export interface NewText {
  readonly text: string;
  readonly mode: number;
}

/** `read` and `names` never throw; the others throw the system's error. */
export function createProfileFiles(directory: string) {
  const lock = createKeyedLock();
  const pathOf = (name: string): string => path.join(directory, name);
  const unfinished = (name: ProfileName, kind: 'new' | 'old'): string => pathOf(`.${name}.${randomUUID().slice(0, 8)}.${kind}`);

  let restored: Promise<void> | undefined;

  /** Serializes changes, and repairs interrupted ones first. */
  const change = async <T>(work: (existing: ReadonlySet<string>) => Promise<T>): Promise<T> =>
    await lock('profiles', async () => {
      await restore(directory);
      const entries = await listDirectory(directory);
      return await work(new Set(entries.filter((entry) => !entry.startsWith('.'))));
    });

  /** Runs once. A read-only directory has no interrupted changes. */
  const ready = async (): Promise<void> => {
    await (restored ??= lock('profiles', async () => await restore(directory)).catch(() => undefined));
  };

  return {
    /** Sorted names, and problems with entries in `profiles/` that are not profiles. */
    async names(): Promise<{ readonly names: readonly ProfileName[]; readonly problems: readonly SpecProblem[] }> {
      await ready();
      const problems: SpecProblem[] = [];
      const names: ProfileName[] = [];
      const entries = await listDirectory(directory).catch((error: unknown) => {
        problems.push(problemAt(directory, `This directory cannot be read: ${messageOf(error)}`));
        return [];
      });
      for (const entry of entries.filter((each) => !each.startsWith('.')).toSorted()) {
        const name = ProfileName.safeParse(entry);
        const isDirectory = (await lstat(pathOf(entry)).catch(() => undefined))?.isDirectory() === true;
        if (!name.success)
          problems.push(problemAt(pathOf(entry), `This is not the name of a profile; rename it. ${name.error.issues[0]?.message ?? ''}`));
        else if (names.length < MOST_PROFILES) names.push(name.data);
        else if (isDirectory)
          problems.push(problemAt(pathOf(entry), `Only ${MOST_PROFILES} profiles are read; move this directory elsewhere`));
      }
      return { names, problems };
    },
    /** Undefined if there is no such profile. */
    async read(name: ProfileName): Promise<FoundProfile | undefined> {
      await ready();
      return await readProfile(pathOf(name));
    },
    /** Replaces the whole profile. `refuse` is called under the lock. */
    write: async <Refusal>(
      name: ProfileName,
      texts: ReadonlyMap<SlotName, NewText>,
      refuse: (existing: ReadonlySet<string>) => Refusal | undefined,
    ): Promise<Refusal | { readonly created: boolean }> =>
      await change(async (existing) => {
        const refusal = refuse(existing);
        if (refusal !== undefined) return refusal;
        const [place, old] = [unfinished(name, 'new'), unfinished(name, 'old')];
        try {
          await mkdir(place, { recursive: true, mode: DIRECTORY_MODE });
          for (const [slot, { text, mode }] of texts)
            await writeFileAtomically(path.join(place, `${slot}.toml`), text, { mode, sync: true });
          const created = !existing.has(name);
          if (!created) await refuseFile(pathOf(name));
          // Synchronous, so that no request finds the profile missing.
          if (!created) renameSync(pathOf(name), old);
          renameSync(place, pathOf(name));
          await syncDirectory(directory);
          if (!created) await retire(old, pathOf(name));
          return { created };
        } catch (error) {
          await rm(place, { recursive: true, force: true }).catch(() => undefined);
          throw error;
        }
      }),
    /** Returns false if there is no such profile. Removes a link, not its target. */
    remove: async (name: ProfileName): Promise<boolean> =>
      await change(async (existing) => {
        if (!existing.has(name)) return false;
        await refuseFile(pathOf(name));
        const place = unfinished(name, 'new');
        // An interrupted removal is completed and not undone, because it counts as "new".
        await rename(pathOf(name), place);
        await syncDirectory(directory);
        await rm(place, { recursive: true, force: true });
        return true;
      }),
  };
}

/** Repairs interrupted changes. */
async function restore(directory: string): Promise<void> {
  for (const entry of await listDirectory(directory)) {
    const { name, kind } = UNFINISHED.exec(entry)?.groups ?? {};
    if (name === undefined) continue;
    const [left, place] = [path.join(directory, entry), path.join(directory, name)];
    const isThere = (await lstat(place).catch(() => undefined)) !== undefined;
    if (kind === 'old') await (isThere ? retire(left, place) : rename(left, place));
    else await rm(left, { recursive: true, force: true });
  }
}

/** Removes a replaced profile. Other files, such as notes, move to the new one. */
async function retire(old: string, place: string): Promise<void> {
  const isDirectory = (await lstat(old)).isDirectory();
  const others = isDirectory ? (await readdir(old)).filter((entry) => !isSlotFileName(entry)) : [];
  for (const entry of others) await rename(path.join(old, entry), path.join(place, entry));
  await rm(old, { recursive: true, force: true });
}

/** Throws if the user has a file in place of the directory. */
async function refuseFile(place: string): Promise<void> {
  const facts = await lstat(place);
  if (!facts.isDirectory() && !facts.isSymbolicLink())
    throw new Error(`"${place}" is a file, but a profile is a directory; move it elsewhere`);
}

async function readProfile(place: string): Promise<FoundProfile | undefined> {
  const nothing = (message: string): FoundProfile => ({ texts: new Map(), problems: [problemAt(place, message)] });
  const facts = await lstat(place).catch((error: unknown) => (codeOf(error) === 'ENOENT' ? undefined : messageOf(error)));
  if (facts === undefined) return undefined;
  if (typeof facts === 'string') return nothing(`This directory cannot be read: ${facts}`);
  if (facts.isSymbolicLink()) return nothing('Links to profiles are not followed; replace this link with a directory of copies');
  if (!facts.isDirectory()) return nothing('A profile is a directory with slot files; move this file elsewhere');
  let files: readonly string[];
  try {
    files = (await readdir(place)).filter(isSlotFileName).toSorted();
  } catch (error) {
    return nothing(`This directory cannot be read: ${messageOf(error)}`);
  }
  if (files.length === 0) return nothing('This directory has no slot files and would disable every slot; add files such as "primary.toml"');
  if (files.length > MOST_SLOTS) return nothing(`This directory has ${files.length} slot files, more than ${MOST_SLOTS}; remove some`);
  return await readFiles(place, files);
}

async function readFiles(place: string, files: readonly string[]): Promise<FoundProfile> {
  const texts = new Map<SlotName, FoundText>();
  const problems: SpecProblem[] = [];
  let bytes = 0;
  for (const file of files) {
    const name = SlotName.safeParse(file.slice(0, -'.toml'.length));
    const at = path.join(place, file);
    if (!name.success) {
      problems.push(problemAt(at, `The file name is not the name of a slot; rename it. ${name.error.issues[0]?.message ?? ''}`));
      continue;
    }
    const found = await readOne(at);
    if (found === undefined) continue;
    bytes += found.kind === 'text' ? Buffer.byteLength(found.text) : 0;
    if (bytes > MOST_BYTES) {
      problems.push(problemAt(place, `These files have more than ${MOST_BYTES / 2 ** 20} MiB together; make them smaller`));
      return { texts: new Map(), problems };
    }
    texts.set(name.data, found);
  }
  return { texts, problems };
}

async function readOne(at: string): Promise<FoundText | undefined> {
  const isLink = (await lstat(at).catch(() => undefined))?.isSymbolicLink() === true;
  if (isLink) return { path: at, ...unreadableText('Links in profiles are not followed; replace this link with a copy') };
  const read = await readTextFile(at);
  return read && { path: at, ...read.file };
}

const problemAt = (file: string, message: string): SpecProblem => ({ path: [], file, message });
