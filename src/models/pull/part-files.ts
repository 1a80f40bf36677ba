/**
 * Unfinished downloads of one file on a volume that several pods share. Each writer has a file of its own, `<target>.<writer>.part`, so that nobody can
 * spoil what another one writes; the files also say who is at it, so that the others can wait. Two who do not see each other do the work twice.
 * The clocks of nodes differ: times are compared with those that the volume itself gives to a new file, and otherwise only for having changed.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';

export interface Part {
  readonly name: string;
  readonly bytes: number;
}

export interface PartFiles {
  /** Absolute. */
  readonly own: string;
  /** Shows that this writer is there, and answers who goes before it; undefined: nobody. Throws where the volume cannot be written. */
  ahead(): Promise<Part | undefined>;
  /** Removes the own part, and those that others left behind long ago. */
  clear(): Promise<void>;
}

/** Above the silence after which a download gives up. */
const STILL_MS = 90_000;
/** Nothing writes to a file for an hour and then goes on. */
const ABANDONED_MS = 3_600_000;
/** Ending of the files that only ask the volume for the time. */
const CLOCK = '.clock.part';

interface Seen extends Part {
  readonly mtimeMs: number;
  /** When it was last seen to have changed, on the clock of this process; undefined: not within `STILL_MS` before the first look. */
  readonly movedAt: number | undefined;
}

export interface PartFilesOptions {
  /** Absolute. */
  readonly target: string;
  readonly writer: string;
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number;
  /** A writer whose file has not changed for so long is not waited for. */
  readonly stillMs?: number;
}

export function createPartFiles({ target, writer, now, stillMs = STILL_MS }: PartFilesOptions): PartFiles {
  const directory = path.dirname(target);
  const base = `${path.basename(target)}.`;
  const own = `${target}.${writer}.part`;
  const isPart = (name: string): boolean => name.startsWith(base) && name.endsWith('.part') && !name.endsWith(CLOCK);
  let seen: ReadonlyMap<string, Seen> = new Map();

  async function look(): Promise<readonly Seen[]> {
    const names = (await readdir(directory)).filter((name) => isPart(name) && name !== path.basename(own));
    if (names.length === 0) return [];
    const volumeNow = await timeOfVolume(directory, base);
    const parts = await Promise.all(names.map(async (name) => partOf(path.join(directory, name), name, seen.get(name), volumeNow, now())));
    const found = parts.filter((part) => part !== undefined);
    seen = new Map(found.map((part) => [part.name, part]));
    return found;
  }

  return {
    own,
    async ahead() {
      await mkdir(directory, { recursive: true });
      const mine = { name: path.basename(own), bytes: await touch(own) };
      const others = await look();
      const live = others.filter((part) => part.movedAt !== undefined && now() - part.movedAt < stillMs);
      return live.filter((part) => goesBefore(part, mine)).toSorted((a, b) => (goesBefore(a, b) ? -1 : 1))[0];
    },
    async clear() {
      await rm(own, { force: true });
      const others = await look();
      if (others.length === 0) return;
      const volumeNow = await timeOfVolume(directory, base);
      for (const part of others) if (volumeNow - part.mtimeMs > ABANDONED_MS) await rm(path.join(directory, part.name), { force: true });
    },
  };
}

function goesBefore(a: Part, b: Part): boolean {
  return a.bytes === b.bytes ? a.name < b.name : a.bytes > b.bytes;
}

async function partOf(file: string, name: string, before: Seen | undefined, volumeNow: number, now: number): Promise<Seen | undefined> {
  const facts = await stat(file).catch(() => undefined);
  if (facts === undefined) return undefined;
  const { size: bytes, mtimeMs } = facts;
  if (before === undefined) return { name, bytes, mtimeMs, movedAt: volumeNow - mtimeMs < STILL_MS ? now : undefined };
  const moved = before.bytes !== bytes || before.mtimeMs !== mtimeMs;
  return { name, bytes, mtimeMs, movedAt: moved ? now : before.movedAt };
}

/** Creates it, or lets the volume set its time anew; its content stays. Answers its size. */
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
