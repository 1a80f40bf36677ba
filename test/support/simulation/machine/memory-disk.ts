/**
 * A file system in memory. Every call may fail, and after a power failure a text is what was synced, or empty, torn or full of zeros, and a name may be back
 * that was changed since its directory was synced.
 */
import { basename, dirname } from 'node:path';
import type { FileHandle } from 'node:fs/promises';
import type { Disk } from '../../../../src/files/regular-file.ts';
import type { Random } from '../seeded-random.ts';

interface Inode {
  readonly ino: bigint;
  data: Buffer;
  /** What a power failure leaves; undefined if nothing was synced. */
  synced: Buffer | undefined;
  /** Unix milliseconds. */
  writtenAt: number;
}

/** A change of a name. */
interface Entry {
  readonly path: string;
  readonly inode: Inode | undefined;
}

export interface MemoryDiskOptions {
  readonly random: Random;
  readonly wallNow: () => number;
  /** Called before each call; throws what the system would. `writes`: it needs space. `opens`: it needs a descriptor. */
  readonly check: (call: { readonly writes?: boolean; readonly opens?: boolean }) => void;
}

/** How a process reaches the disk. A killed one never gets an answer. */
export type Reach = <T>(work: () => T | Promise<T>) => Promise<T>;

export interface MemoryDisk {
  /** The calls as one process makes them. */
  openFor(reach: Reach): Disk;
  /** Files that other programs read and write; what they write is synced. */
  text(path: string): string | undefined;
  /** What a power failure leaves for certain. */
  safeText(path: string): string | undefined;
  put(path: string, text: string | undefined): void;
  list(directory: string): readonly string[];
  losePower(): void;
}

export function createMemoryDisk(options: MemoryDiskOptions): MemoryDisk {
  const { random, wallNow } = options;
  const files = new Map<string, Inode>();
  const directories = new Map<string, bigint>([['/', 1n]]);
  /** Names as a power failure leaves them, and the changes that it may undo. */
  const safe = new Map<string, Inode>();
  let unsynced: Entry[] = [];
  let made = 1n;

  const newInode = (): Inode => ({ ino: (made += 1n), data: Buffer.alloc(0), synced: undefined, writtenAt: wallNow() });
  const link = (path: string, inode: Inode | undefined): void => {
    if (inode === undefined) files.delete(path);
    else files.set(path, inode);
    unsynced.push({ path, inode });
  };
  const keep = ({ path, inode }: Entry): void => void (inode === undefined ? safe.delete(path) : safe.set(path, inode));
  const need = (path: string): Inode => files.get(path) ?? failed(directories.has(path) ? 'EISDIR' : 'ENOENT', path);
  const list = (directory: string): readonly string[] =>
    [...files.keys(), ...directories.keys()].filter((path) => path !== '/' && dirname(path) === directory).map((path) => basename(path));
  const store = (inode: Inode, data: Buffer): void => {
    // What fits is written before the error.
    inode.data = data.subarray(0, random.int(0, data.length));
    options.check({ writes: true });
    inode.data = data;
    inode.writtenAt = wallNow();
  };
  const syncEntries = (directory: string): void => {
    for (const entry of unsynced) if (dirname(entry.path) === directory) keep(entry);
    unsynced = unsynced.filter(({ path }) => dirname(path) !== directory);
  };
  const makeDirectory = (path: string): void => void directories.set(path, (made += 1n));
  /** What a disk has of a text that was not synced. */
  const remainsOf = ({ data, synced }: Inode): Buffer => {
    if (synced?.equals(data) === true) return data;
    const torn = data.subarray(0, random.int(0, data.length));
    return random.pick([synced ?? Buffer.alloc(0), Buffer.alloc(0), torn, Buffer.alloc(data.length), data]);
  };

  const openFor = (reach: Reach): Disk => {
    const call =
      <Args extends readonly unknown[], T>(needs: { readonly opens?: boolean }, work: (...args: Args) => T) =>
      async (...args: Args): Promise<T> =>
        await reach(() => {
          options.check(needs);
          return work(...args);
        });
    const handleOf = (path: string, inode: Inode | undefined): FileHandle =>
      Object.assign(Object.create(null), {
        close: async () => await reach(() => undefined),
        [Symbol.asyncDispose]: async () => undefined,
        chmod: call({}, () => undefined),
        sync: call({}, () => {
          if (inode === undefined) syncEntries(path);
          else inode.synced = inode.data;
        }),
        stat: call({}, (how?: { readonly bigint?: boolean }) => factsOf(path, inode, how)),
        truncate: call({}, (size: number) => void (inode === undefined || (inode.data = inode.data.subarray(0, size)))),
        readFile: call({}, () => inode?.data ?? failed('EISDIR', path)),
        read: call({}, (buffer: Buffer, offset: number, length: number, position: number) => ({
          bytesRead: inode?.data.copy(buffer, offset, position, position + length) ?? 0,
          buffer,
        })),
        writeFile: call({}, (text: string | Uint8Array) => void (inode && store(inode, Buffer.from(text)))),
        appendFile: call({}, (text: string) => void (inode && store(inode, Buffer.concat([inode.data, Buffer.from(text)])))),
      });
    const factsOf = (path: string, inode: Inode | undefined, { bigint = false }: { readonly bigint?: boolean } = {}): object => {
      const ms = inode?.writtenAt ?? 0;
      const ns = BigInt(Math.round(ms)) * 1_000_000n;
      const ino = inode?.ino ?? directories.get(path) ?? 0n;
      const kinds = {
        isFile: () => inode !== undefined,
        isDirectory: () => inode === undefined,
        isSymbolicLink: () => false,
        isFIFO: () => false,
        isSocket: () => false,
      };
      const size = inode?.data.length ?? 0;
      if (!bigint) return { ...kinds, dev: 1, ino: Number(ino), size, mode: 0o600, mtimeMs: ms };
      return { ...kinds, dev: 1n, ino, size: BigInt(size), mtimeNs: ns, ctimeNs: ns, birthtimeNs: ino };
    };
    const open = (path: string, flags: string | number): FileHandle => {
      if (flags === 'wx' || flags === 'a+') {
        if (!directories.has(dirname(path))) failed('ENOENT', path);
        if (flags === 'wx' && files.has(path)) failed('EEXIST', path);
        if (!files.has(path)) link(path, newInode());
      } else if (directories.has(path)) return handleOf(path, undefined);
      return handleOf(path, need(path));
    };
    return Object.assign(Object.create(null), {
      open: call({ opens: true }, open),
      readFile: call({ opens: true }, (path: string, encoding?: BufferEncoding) =>
        encoding === undefined ? need(path).data : need(path).data.toString(encoding),
      ),
      readdir: call({ opens: true }, (path: string) => (directories.has(path) ? list(path) : failed('ENOENT', path))),
      ...Object.fromEntries(
        ['stat', 'lstat'].map((name) => [
          name,
          call({}, (path: string, how?: { readonly bigint?: boolean }) =>
            factsOf(path, directories.has(path) ? undefined : need(path), how),
          ),
        ]),
      ),
      chown: call({}, () => undefined),
      rm: call({}, (path: string, { force = false }: { readonly force?: boolean } = {}) => {
        if (files.has(path)) link(path, undefined);
        else if (!force) failed('ENOENT', path);
      }),
      rename: call({}, (from: string, to: string) => {
        const inode = need(from);
        link(from, undefined);
        link(to, inode);
      }),
      mkdir: call({}, (path: string) => {
        if (directories.has(path)) failed('EEXIST', path);
        if (!directories.has(dirname(path))) failed('ENOENT', path);
        makeDirectory(path);
      }),
    });
  };

  return {
    openFor,
    list,
    safeText: (path) => safe.get(path)?.synced?.toString('utf8'),
    text: (path) => files.get(path)?.data.toString('utf8'),
    put(path, text) {
      for (let parent = dirname(path); !directories.has(parent); parent = dirname(parent)) makeDirectory(parent);
      const inode = text === undefined ? undefined : { ...newInode(), data: Buffer.from(text), synced: Buffer.from(text) };
      link(path, inode);
      syncEntries(dirname(path));
    },
    losePower() {
      // The journal keeps the order of names.
      for (const entry of unsynced.slice(0, random.int(0, unsynced.length))) keep(entry);
      unsynced = [];
      files.clear();
      for (const [path, inode] of safe) {
        const data = remainsOf(inode);
        const left: Inode = { ...inode, data, synced: data };
        files.set(path, left);
        safe.set(path, left);
      }
    },
  };
}

function failed(code: string, path: string): never {
  // Without a stack, which would cost more than everything else here.
  throw Object.assign(Object.create(Error.prototype), { code, message: `${code}: "${path}"` });
}
