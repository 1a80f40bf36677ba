/** Gives a provider limited access to the files of a model, and remembers what it read. */
import { createHash } from 'node:crypto';
import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { openRegularFile } from '../files/regular-file.ts';
import { isSameValue } from '../schema/words/same-value.ts';
import type { MountedModels } from './decide/workflows-mount.ts';

/** The cause is the error of the file system. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';
  readonly file: string;

  constructor(file: string, cause: unknown) {
    super(`Cannot read "${file}"`, { cause });
    this.file = file;
  }
}

/** Limit for all reads of a model. Headers have at most some tens of MiB, in each shard. */
const MAX_READ_BYTES = 2 ** 31;
/** More than the files of any known model. */
const MAX_CALLS = 10_000;

/** `directory`: inside the store, without links. */
export function openModelFiles(root: string, directory: string, mounts: readonly MountedModels[] = []) {
  const stamps = new Map<string, string>();
  let listed: readonly string[] | undefined;
  let readBytes = 0;
  let calls = 0;

  const placeOf = (name: string) => realPlace(root, mounts, path.join(directory, name));

  const count = (bytes: number): void => {
    calls += 1;
    readBytes += bytes;
    if (calls > MAX_CALLS || readBytes > MAX_READ_BYTES) throw new Error('reading it takes more than any known model needs');
  };

  /** Takes the stamp before reading, so that a concurrent change is noticed later. */
  async function visit<Value>(name: string, look: (file: string) => Promise<Value>): Promise<Value> {
    try {
      // Missing files count too, in case the reader goes on without them.
      if (!stamps.has(name)) stamps.set(name, '');
      const { base, file: shown } = placeOf(name);
      const file = await inStore(base, shown);
      if (stamps.get(name) === '') stamps.set(name, await stampOf(file));
      return await look(file);
    } catch (error) {
      throw new UnreadableFile(name, error);
    }
  }

  return {
    async names(): Promise<readonly string[]> {
      listed ??= await namesIn(placeOf('').file);
      return listed;
    },
    sizeOf: async (name: string) =>
      visit(name, async (file) => {
        count(0);
        return (await stat(file)).size;
      }),
    read: async (name: string, offset: number, length: number) =>
      visit(name, async (file) => {
        count(length);
        return readBytesOf(file, offset, length);
      }),
    /** Changes when a file that was read is replaced or written. */
    version() {
      // The number of a device changes when it is mounted again.
      const parts = [...stamps].map(([name, stamp]) => `${name} ${stamp.slice(stamp.indexOf(' '))}`).toSorted();
      return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 12);
    },
    /** Whether everything that was read is still as it was. */
    async isUnchanged() {
      const same = [...stamps].map(async ([name, stamp]) => (await stampOf(placeOf(name).file).catch(() => '')) === stamp);
      const now = listed === undefined ? undefined : await namesIn(placeOf('').file);
      return isSameValue(listed, now) && (await Promise.all(same)).every(Boolean);
    },
  };
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return (await readdir(directory).catch((): string[] => [])).toSorted((a, b) => (a < b ? -1 : 1));
}

/** Throws if links leave the store. */
async function inStore(base: string, file: string): Promise<string> {
  const [realBase, real] = await Promise.all([realpath(base), realpath(file)]);
  if (!isInside(realBase, real)) throw new Error('it is outside the model store');
  return real;
}

async function stampOf(file: string): Promise<string> {
  const { dev, ino, mtimeMs, size } = await stat(file);
  return `${dev} ${ino} ${mtimeMs} ${size}`;
}

async function readBytesOf(file: string, offset: number, length: number): Promise<Uint8Array> {
  await using handle = await openRegularFile(file, { mostBytes: Number.POSITIVE_INFINITY });
  const { size } = await handle.stat();
  const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(length, size - offset)));
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

type RealPlace = Readonly<{ base: string; file: string; isMounted: boolean }>;

/** A mounted file keeps its path: files of a ConfigMap are links into a directory that each update replaces. */
export function realPlace(root: string, mounts: readonly MountedModels[], shown: string): RealPlace {
  for (const { at, directory } of mounts) {
    const place = path.join(root, at);
    if (isInside(place, shown)) return { base: directory, file: path.join(directory, path.relative(place, shown)), isMounted: true };
  }
  return { base: root, file: shown, isMounted: false };
}

/** Does not follow links. */
export function isInside(directory: string, file: string): boolean {
  const relative = path.relative(directory, file);
  // Names may begin with two dots.
  return relative !== '..' && !relative.startsWith('../') && !path.isAbsolute(relative);
}
