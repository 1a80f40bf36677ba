/**
 * Partial downloads of one file on a volume that several pods share. Each writer has its own part, `<target>.<writer>.part`, so that
 * writers cannot damage each other's data. The parts also show who is downloading, so that others can wait; two writers that do not see
 * each other download the file twice. What a writer leaves when it fails or is killed, another one takes over. The clocks of nodes differ: file times are compared only with the time that the volume gives to
 * a new file, and otherwise only with earlier values of themselves.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { journalOf, removePart } from './part-blocks.ts';

export interface Part {
  readonly name: string;
  readonly bytes: number;
}

export interface PartFiles {
  /** Absolute path of this writer's part. */
  readonly own: string;
  /** Marks this writer as active and returns the part of the active writer that is furthest ahead of it. Throws if the volume is not writable. */
  ahead(): Promise<Part | undefined>;
  /** Takes over the longest part that nobody writes any more, if this writer has none. Its writer notices it before its next request. */
  takeOver(): Promise<void>;
  /** Ends this writer without the file: others need not wait for it, and may take over its part. Nothing is left of an empty one. */
  release(): Promise<void>;
  /** Removes this writer's part, and parts that were abandoned. */
  clear(): Promise<void>;
}

export interface PartFilesOptions {
  /** Absolute path. */
  readonly target: string;
  readonly writer: string;
  /** A writer whose part has not changed for this long no longer counts as active. */
  readonly stillMs?: number | undefined;
}

/** Longer than a download waits for a silent server. */
const STILL_MS = 90_000;
/** No writer resumes its part after an hour without changes. */
const ABANDONED_MS = 3_600_000;
/** A part that was released is made to look this old. Writing makes a file younger only, so the others see the difference. */
const RELEASED_MS = 600_000;
/** Suffix of the files that are created only to learn the time of the volume. */
const CLOCK = '.clock.part';

interface OtherPart extends Part {
  readonly mtimeMs: number;
  /** Time since the last change, by the clock of the volume. */
  readonly ageMs: number;
  /** Time when a change was last noticed, by the monotonic clock of this process. Undefined if none was, and the part was old at first sight. */
  readonly changedAt: number | undefined;
}

export function createPartFiles({ target, writer, stillMs = STILL_MS }: PartFilesOptions): PartFiles {
  const directory = path.dirname(target);
  const base = `${path.basename(target)}.`;
  const own = `${target}.${writer}.part`;
  const isOther = (name: string): boolean =>
    name.startsWith(base) && name.endsWith('.part') && !name.endsWith(CLOCK) && name !== path.basename(own);
  let known: ReadonlyMap<string, OtherPart> = new Map();

  async function readOthers(): Promise<readonly OtherPart[]> {
    const names = (await readdir(directory)).filter(isOther);
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
      others.push({ name, bytes, mtimeMs, ageMs, changedAt });
    }
    known = new Map(others.map((part) => [part.name, part]));
    return others;
  }

  const isActive = ({ changedAt }: OtherPart): boolean => changedAt !== undefined && performance.now() - changedAt < stillMs;

  return {
    own,
    async ahead() {
      await mkdir(directory, { recursive: true });
      const mine = { name: path.basename(own), bytes: await touch(own, 'a') };
      const active = (await readOthers()).filter(isActive);
      return active.filter((part) => compare(part, mine) < 0).toSorted(compare)[0];
    },
    async takeOver() {
      if ((await sizeOf(own)) > 0) return;
      const names = new Set(await readdir(directory));
      // Without its journal, nobody knows which blocks a part has.
      const usable = (await readOthers()).filter((part) => !isActive(part) && part.bytes > 0 && names.has(journalOf(part.name)));
      const longest = usable.toSorted(compare)[0];
      if (longest === undefined) return;
      const from = path.join(directory, longest.name);
      // The journal first: only one of several writers gets it, and a journal without its part does no harm.
      const isFirst = await rename(journalOf(from), journalOf(own)).then(
        () => true,
        () => false,
      );
      if (!isFirst) return;
      // Younger than the empty part that it replaces: an older one would look as if this writer had released it, and another one would take it.
      await touch(from, 'r+');
      await rename(from, own);
    },
    async release() {
      const facts = await stat(own).catch(() => undefined);
      if (facts?.size === 0) return removePart(own);
      if (facts !== undefined) await utimes(own, facts.atime, new Date(facts.mtimeMs - RELEASED_MS));
    },
    async clear() {
      await removePart(own);
      for (const { name, ageMs } of await readOthers()) if (ageMs > ABANDONED_MS) await removePart(path.join(directory, name));
    },
  };
}

/** Sorts longer parts first; equal ones by name, so that all writers agree on the order. */
function compare(a: Part, b: Part): number {
  return b.bytes - a.bytes || (a.name < b.name ? -1 : 1);
}

/** Lets the volume update the time of the file, and keeps its content. Returns its size. `a` creates a file that is not there, with `r+` that throws. */
async function touch(file: string, flags: 'a' | 'r+'): Promise<number> {
  const handle = await open(file, flags);
  try {
    const { size } = await handle.stat();
    await handle.truncate(size);
    return size;
  } finally {
    await handle.close();
  }
}

async function sizeOf(file: string): Promise<number> {
  return stat(file).then(
    ({ size }) => size,
    () => 0,
  );
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
