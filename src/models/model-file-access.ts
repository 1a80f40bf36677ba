/** Gives a provider access to the files of one model, within limits, and remembers what it looked at, so that the result holds until one of these files changes. */
import { open, readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ModelFiles } from '../providers/provider.ts';
import type { MountedModels } from './decide/workflows-mount.ts';

/** The file is missing or cannot be read. The cause is the error of the file system. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';
  readonly file: string;

  constructor(file: string, cause: unknown) {
    super(`Cannot read "${file}"`, { cause });
    this.file = file;
  }
}

export interface SeenFile {
  isUnchanged(): Promise<boolean>;
}

interface OpenModelFiles extends ModelFiles {
  seen(): readonly SeenFile[];
}

/** Of all reads of one model. Headers of known formats have at most a few tens of MiB, and each shard of a model has one. */
const MAX_READ_BYTES = 2 ** 31;
/** Calls for one model. More than the files of any known model. */
const MAX_CALLS = 10_000;

/** `directory` is an absolute path within the store, without links. */
export function openModelFiles(root: string, directory: string, mounts: readonly MountedModels[] = []): OpenModelFiles {
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

  /** Its stamp is taken before anything is read, so that a change in between is noticed later. */
  async function visit<Value>(name: string, look: (file: string) => Promise<Value>): Promise<Value> {
    try {
      // One that is not there is remembered as such, in case that its reader goes on without it.
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
    async names() {
      listed ??= await namesIn(placeOf('').file);
      return listed;
    },
    sizeOf: async (name) =>
      visit(name, async (file) => {
        count(0);
        return (await stat(file)).size;
      }),
    read: async (name, offset, length) =>
      visit(name, async (file) => {
        count(length);
        return readBytesOf(file, offset, length);
      }),
    seen(): readonly SeenFile[] {
      const files = [...stamps].map(([name, stamp]) => ({
        isUnchanged: async () => (await stampOf(placeOf(name).file).catch(() => '')) === stamp,
      }));
      const names = listed;
      if (names === undefined) return files;
      const isUnchanged = async (): Promise<boolean> => {
        const now = await namesIn(placeOf('').file);
        return now.length === names.length && now.every((name, index) => name === names[index]);
      };
      return [...files, { isUnchanged }];
    },
  };
}

/** In one order, and empty if the directory cannot be read. */
async function namesIn(directory: string): Promise<readonly string[]> {
  return (await readdir(directory).catch((): string[] => [])).toSorted((a, b) => (a < b ? -1 : 1));
}

/** Resolves links, and rejects where they leave the store. */
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
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(length, size - offset)));
    let filled = 0;
    while (filled < buffer.length) {
      const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, offset + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  } finally {
    await handle.close();
  }
}

/**
 * Directories outside of the model store whose files appear in it, such as a ConfigMap that a kubelet mounts: its files are links into a directory that is replaced as a whole
 * when the ConfigMap changes. So such a file keeps the path that it appears under, whatever it links to.
 */

interface RealPlace {
  /** Links must not lead out of this directory. Absolute. */
  readonly base: string;
  /** Absolute. */
  readonly file: string;
  readonly isMounted: boolean;
}

/** Where a file is that appears at the absolute path `shown` of a store. */
export function realPlace(root: string, mounts: readonly MountedModels[], shown: string): RealPlace {
  for (const { at, directory } of mounts) {
    const place = path.join(root, at);
    if (isInside(place, shown)) return { base: directory, file: path.join(directory, path.relative(place, shown)), isMounted: true };
  }
  return { base: root, file: shown, isMounted: false };
}

/** Whether a path is that of a directory or of something in it. Both are absolute; links are not followed. */
export function isInside(directory: string, file: string): boolean {
  const relative = path.relative(directory, file);
  // Names may begin with two dots.
  return relative !== '..' && !relative.startsWith('../') && !path.isAbsolute(relative);
}
