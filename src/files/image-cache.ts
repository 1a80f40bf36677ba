/**
 * The cache of images that clients fetch by URL: files named by random UUIDs in one directory, limited by size and age.
 * An image is written as a part and renamed when complete; parts of a killed process are removed by the next one. Other
 * files are left alone.
 */
import { randomUUID } from 'node:crypto';
import { lstat, open, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { codeOf } from '../platform/error-text.ts';
import { createKeyedLock } from '../platform/semaphore.ts';
import { openRegularFile, UnsuitableFile } from './regular-file.ts';
import { makeSubdirectory } from './write-file.ts';

type CachedImage = { readonly ok: true; readonly id: string } | { readonly ok: false; readonly problem: string };

export type ImageCache = ReturnType<typeof createImageCache>;

export interface ImageCacheOptions {
  /** Absolute. Created on demand; its parent must exist. */
  readonly directory: string;
  /** All images together. */
  readonly limitBytes: number;
  readonly maxAgeMs: number;
  /** Unix milliseconds, because the age of a file outlives the process. */
  readonly wallNow: () => number;
}

interface Entry {
  readonly sizeBytes: number;
  readonly at: number;
}

/** A PNG of 4096 × 4096 pixels without compression. */
const MOST_IMAGE_BYTES = 64 * 1024 * 1024;
/** Prompts and images are private. */
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;
const NAME = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(png|part)$/;
const SIGNATURE = Buffer.from('\u0089PNG\r\n\u001a\n', 'latin1');
const TRAILER = Buffer.from('IEND', 'latin1');
const NOT_PNG = 'The image server did not send a complete PNG image; read the log of the slot';

export function createImageCache({ directory, limitBytes, maxAgeMs, wallNow }: ImageCacheOptions) {
  /** Oldest first. */
  const entries = new Map<string, Entry>();
  const writing = new Set<string>();
  const lock = createKeyedLock();
  let totalBytes = 0;
  let scanned: Promise<void> | undefined;
  const fileOf = (id: string, ending = 'png'): string => path.join(directory, `${id}.${ending}`);

  function add(id: string, entry: Entry): void {
    entries.set(id, entry);
    totalBytes += entry.sizeBytes;
  }

  async function remove(id: string): Promise<void> {
    totalBytes -= entries.get(id)?.sizeBytes ?? 0;
    entries.delete(id);
    await rm(fileOf(id), { force: true });
  }

  async function scan(): Promise<void> {
    const found: [string, Entry][] = [];
    for (const name of await readdir(directory).catch(() => [])) {
      const [, id, ending] = NAME.exec(name) ?? [];
      if (id === undefined || writing.has(id) || entries.has(id)) continue;
      const facts = await lstat(path.join(directory, name)).catch(() => undefined);
      if (facts?.isFile() !== true) continue;
      if (ending === 'part') await rm(path.join(directory, name), { force: true });
      else found.push([id, { sizeBytes: facts.size, at: facts.mtimeMs }]);
    }
    for (const [id, entry] of found.toSorted(([, a], [, b]) => a.at - b.at)) if (!entries.has(id)) add(id, entry);
  }

  /** `roomBytes`: space for a new image. */
  async function makeRoom(roomBytes: number): Promise<void> {
    const tooOld = wallNow() - maxAgeMs;
    for (const [id, { at }] of [...entries].toSorted(([, a], [, b]) => a.at - b.at)) {
      if (at >= tooOld && totalBytes + roomBytes <= limitBytes) return;
      await remove(id);
    }
  }

  async function ready(): Promise<void> {
    scanned ??= scan();
    await scanned;
  }

  /** One at a time, so that two images do not take the same space. */
  async function finish(id: string, sizeBytes: number): Promise<CachedImage> {
    if (sizeBytes > limitBytes)
      return refused('The image does not fit into the cache; raise "SVC_IMAGE_CACHE_LIMIT", or request "b64_json"');
    return await lock('room', async () => {
      await makeRoom(sizeBytes);
      await rename(fileOf(id, 'part'), fileOf(id));
      add(id, { sizeBytes, at: wallNow() });
      return { ok: true, id } as const;
    });
  }

  return {
    /** Stores a PNG image; `next` returns undefined after the last piece. Rejects if `next` does. */
    async keep(next: () => Promise<Uint8Array | undefined>): Promise<CachedImage> {
      const id = randomUUID();
      const part = fileOf(id, 'part');
      let sourceFailed = false;
      const piece = async () =>
        await next().catch((error: unknown) => {
          sourceFailed = true;
          throw error;
        });
      writing.add(id);
      try {
        await ready();
        await makeSubdirectory(directory, DIRECTORY_MODE);
        const sizeBytes = await writePng(part, piece);
        return sizeBytes === undefined ? refused(NOT_PNG) : await finish(id, sizeBytes);
      } catch (error) {
        if (sourceFailed) throw error;
        return refused(
          `The image could not be stored on the disk of the service (${codeOf(error) ?? 'unknown error'}); free disk space, or request "b64_json"`,
        );
      } finally {
        writing.delete(id);
        await rm(part, { force: true }).catch(() => undefined);
      }
    },
    /** Undefined if there is no such image. */
    async open(id: string) {
      await ready();
      const entry = entries.get(id);
      if (entry === undefined) return undefined;
      if (entry.at < wallNow() - maxAgeMs) {
        await remove(id).catch(() => undefined);
        return undefined;
      }
      return await openImage(fileOf(id));
    },
    /** Removes expired images and, the first time, parts of an earlier process. Never rejects. */
    async tidy(): Promise<void> {
      await ready()
        .then(async () => makeRoom(0))
        .catch(() => undefined);
    },
  };
}

function refused(problem: string): CachedImage {
  return { ok: false, problem };
}

/** Returns the size; undefined if this is not a complete PNG image. */
async function writePng(file: string, next: () => Promise<Uint8Array | undefined>): Promise<number | undefined> {
  await using handle = await open(file, 'wx', FILE_MODE);
  let sizeBytes = 0;
  let first = Buffer.alloc(0);
  let last = Buffer.alloc(0);
  for (let piece = await next(); piece !== undefined; piece = await next()) {
    sizeBytes += piece.length;
    if (sizeBytes > MOST_IMAGE_BYTES) return undefined;
    if (first.length < SIGNATURE.length) first = Buffer.concat([first, piece]).subarray(0, SIGNATURE.length);
    last = Buffer.concat([last, piece.subarray(-8)]).subarray(-8);
    await handle.writeFile(piece);
  }
  if (!first.equals(SIGNATURE) || !last.subarray(0, 4).equals(TRAILER)) return undefined;
  await handle.datasync();
  return sizeBytes;
}

/** Undefined if it was removed. Does not follow links. */
async function openImage(file: string) {
  const handle = await openRegularFile(file, { mostBytes: MOST_IMAGE_BYTES, follow: false }).catch((error: unknown) => {
    if (error instanceof UnsuitableFile || codeOf(error) === 'ENOENT' || codeOf(error) === 'ELOOP') return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  const { size } = await handle.stat();
  return {
    sizeBytes: size,
    /** Both bounds are inclusive. Closes the file at the end. */
    read: (from: number, to: number) => handle.createReadStream({ start: from, end: to }),
    close: async () => handle.close(),
  };
}
