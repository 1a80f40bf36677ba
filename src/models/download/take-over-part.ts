/**
 * Partial downloads of one file on a shared volume: `<target>.<writer>.part`. Parts also show who is downloading, so
 * that others can wait; an abandoned part is taken over. Clocks of nodes differ: file times are compared only with the
 * time that the volume gives a new file, or with earlier values.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { succeeds } from '../../files/write-file.ts';
import { journalOf, removePart } from './resume-part.ts';

export interface Part {
  readonly name: string;
  readonly bytes: number;
}

export interface PartFilesOptions {
  readonly target: string;
  readonly writer: string;
  /** A writer is inactive once its part has not changed for this long. */
  readonly stillMs?: number | undefined;
}

/** Longer than a download waits for a silent server. */
const STILL_MS = 90_000;
/** No writer resumes its part after an hour without changes. */
const ABANDONED_MS = 3_600_000;
/** Released parts are dated back by this much. Writing only makes files younger, so others notice. */
const RELEASED_MS = 600_000;
const CLOCK = '.clock.part';

interface OtherPart extends Part {
  /** Its writer downloads, or has downloaded. */
  readonly begun: boolean;
  readonly mtimeMs: number;
  /** Measured by the clock of the volume. */
  readonly ageMs: number;
  /** Monotonic milliseconds. Undefined if the part was old when first seen. */
  readonly changedAt: number | undefined;
}

export type PartFiles = ReturnType<typeof createPartFiles>;

export function createPartFiles({ target, writer, stillMs = STILL_MS }: PartFilesOptions) {
  const directory = path.dirname(target);
  const base = `${path.basename(target)}.`;
  const own = `${target}.${writer}.part`;
  const isOther = (name: string): boolean =>
    name.startsWith(base) && name.endsWith('.part') && !name.endsWith(CLOCK) && name !== path.basename(own);
  let known: ReadonlyMap<string, OtherPart> = new Map();

  async function readOthers(): Promise<readonly OtherPart[]> {
    const present = new Set(await readdir(directory));
    const names = [...present].filter(isOther);
    if (names.length === 0) return [];
    const volumeNow = await timeOfVolume(directory, base);
    const others: OtherPart[] = [];
    for (const name of names) {
      const facts = await stat(path.join(directory, name)).catch(() => undefined);
      if (facts === undefined) continue;
      const { size: bytes, mtimeMs } = facts;
      const before = known.get(name);
      const ageMs = volumeNow - mtimeMs;
      const released = before !== undefined && mtimeMs < before.mtimeMs;
      const changed = before === undefined ? ageMs < STILL_MS : before.bytes !== bytes || before.mtimeMs !== mtimeMs;
      const changedAt = released ? undefined : changed ? performance.now() : before?.changedAt;
      others.push({ name, bytes, begun: bytes > 0 || present.has(journalOf(name)), mtimeMs, ageMs, changedAt });
    }
    known = new Map(others.map((part) => [part.name, part]));
    return others;
  }

  const isActive = ({ changedAt }: OtherPart): boolean => changedAt !== undefined && performance.now() - changedAt < stillMs;

  return {
    own,
    /**
     * Marks this writer as active. Returns the part that is ahead; undefined: this writer downloads. Throws if the
     * volume is read-only.
     */
    async ahead(): Promise<Part | undefined> {
      await mkdir(directory, { recursive: true });
      const bytes = await touch(own, 'a');
      const mine = { name: path.basename(own), bytes, begun: bytes > 0 };
      const active = (await readOthers()).filter(isActive);
      const first = active.filter((part) => compare(part, mine) < 0).toSorted(compare)[0];
      if (first !== undefined || mine.begun) return first;
      // The first byte may take long. Writers that begin together see each other, and return to the order of names.
      await touch(journalOf(own), 'a');
      const rival = (await readOthers()).find((part) => isActive(part) && part.begun);
      if (rival !== undefined) await rm(journalOf(own), { force: true });
      return rival;
    },
    /** The writer of the part notices before its next request. */
    async takeOver(): Promise<void> {
      const present = await stat(own).catch(() => undefined);
      if (present !== undefined && present.size > 0) return;
      const names = new Set(await readdir(directory));
      // Without its journal, the blocks of a part are unknown.
      const usable = (await readOthers()).filter((part) => !isActive(part) && part.bytes > 0 && names.has(journalOf(part.name)));
      const longest = usable.toSorted(compare)[0];
      if (longest === undefined) return;
      const from = path.join(directory, longest.name);
      // The journal first: only one of several writers gets it, and a journal without its part does no harm.
      if (!(await succeeds(rename(journalOf(from), journalOf(own))))) return;
      // An older file than the empty part it replaces would look released, and another writer would take it.
      await touch(from, 'r+');
      await rename(from, own);
    },
    /** Others need not wait and may take over the part. */
    async release(): Promise<void> {
      const facts = await stat(own).catch(() => undefined);
      if (facts?.size === 0) return removePart(own);
      if (facts !== undefined) await utimes(own, facts.atime, new Date(facts.mtimeMs - RELEASED_MS));
    },
    async clear(): Promise<void> {
      await removePart(own);
      for (const { name, ageMs } of await readOthers()) if (ageMs > ABANDONED_MS) await removePart(path.join(directory, name));
    },
  };
}

/** Longer parts first, then those whose download has begun; equal ones by name, so that all writers agree. */
const compare = (a: Pick<OtherPart, 'name' | 'bytes' | 'begun'>, b: typeof a): number =>
  b.bytes - a.bytes || Number(b.begun) - Number(a.begun) || (a.name < b.name ? -1 : 1);

/** Lets the volume update the file's time. Returns its size. `a` creates a missing file; `r+` throws. */
async function touch(file: string, flags: 'a' | 'r+'): Promise<number> {
  await using handle = await open(file, flags);
  const { size } = await handle.stat();
  await handle.truncate(size);
  return size;
}

async function timeOfVolume(directory: string, base: string): Promise<number> {
  const probe = path.join(directory, `${base}${randomUUID()}${CLOCK}`);
  try {
    await writeFile(probe, '');
    return (await stat(probe)).mtimeMs;
  } finally {
    await rm(probe, { force: true });
  }
}
