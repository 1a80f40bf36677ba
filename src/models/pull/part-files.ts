/**
 * Partial downloads of one file on a volume that several pods share. Each writer has its own part, `<target>.<writer>.part`, so that
 * writers cannot damage each other's data. The parts also show who is downloading, so that others can wait; two writers that do not see
 * each other download the file twice. The clocks of nodes differ: file times are compared only with the time that the volume gives to
 * a new file, and otherwise only with earlier values of themselves.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { removePart } from './part-blocks.ts';

export interface Part {
  readonly name: string;
  readonly bytes: number;
}

export interface PartFiles {
  /** Absolute path of this writer's part. */
  readonly own: string;
  /** Marks this writer as active and returns the part of the active writer that is furthest ahead of it. Throws if the volume is not writable. */
  ahead(): Promise<Part | undefined>;
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
      const changed = before === undefined ? ageMs < STILL_MS : before.bytes !== bytes || before.mtimeMs !== mtimeMs;
      others.push({ name, bytes, mtimeMs, ageMs, changedAt: changed ? performance.now() : before?.changedAt });
    }
    known = new Map(others.map((part) => [part.name, part]));
    return others;
  }

  return {
    own,
    async ahead() {
      await mkdir(directory, { recursive: true });
      const mine = { name: path.basename(own), bytes: await touch(own) };
      const active = (await readOthers()).filter(({ changedAt }) => changedAt !== undefined && performance.now() - changedAt < stillMs);
      return active.filter((part) => compare(part, mine) < 0).toSorted(compare)[0];
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

/** Creates the file, or lets the volume update its time and keeps its content. Returns its size. */
async function touch(file: string): Promise<number> {
  const handle = await open(file, 'a');
  try {
    const { size } = await handle.stat();
    await handle.truncate(size);
    return size;
  } finally {
    await handle.close();
  }
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
