/** The cache of images: bounded by size and age, whole images only, and nothing outside of its directory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createImageCache, type ImageCache } from '../../src/files/image-cache.ts';
import { eventually } from '../support/eventually.ts';
import { pngOf } from '../support/comfyui/png.ts';

const PNG = pngOf(64, 64, 7);
const DAY_MS = 86_400_000;
let dir = '';
let now = 0;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-images-'));
  now = Date.now();
});
afterEach(async () => rm(dir, { recursive: true }));

const directory = (): string => path.join(dir, 'images');
const open = (limitBytes = 2 ** 20, maxAgeMs = 30 * DAY_MS): ImageCache =>
  createImageCache({ directory: directory(), limitBytes, maxAgeMs, wallNow: () => now });
const files = async (): Promise<readonly string[]> => readdir(directory()).catch(() => []);

function piecesOf(...pieces: readonly (Uint8Array | Error)[]): () => Promise<Uint8Array | undefined> {
  const left = [...pieces];
  return async () => {
    const piece = left.shift();
    if (piece instanceof Error) throw piece;
    return piece;
  };
}

async function keep(cache: ImageCache, bytes: Uint8Array = PNG): Promise<string> {
  const kept = await cache.keep(piecesOf(bytes));
  if (!kept.ok) throw new Error(kept.problem);
  return kept.id;
}

async function read(cache: ImageCache, id: string): Promise<Buffer | undefined> {
  const image = await cache.open(id);
  if (image === undefined) return undefined;
  const pieces: Buffer[] = [];
  for await (const piece of image.read(0, image.sizeBytes - 1)) pieces.push(piece);
  return Buffer.concat(pieces);
}

test('an image that comes in any pieces is there as a whole, for its owner only', async () => {
  const cache = open();
  const kept = await cache.keep(piecesOf(...[...PNG].map((byte) => Uint8Array.of(byte))));
  if (!kept.ok) throw new Error(kept.problem);
  expect(await read(cache, kept.id)).toEqual(PNG);
  expect((await stat(directory())).mode & 0o777).toBe(0o700);
  expect((await stat(path.join(directory(), `${kept.id}.png`))).mode & 0o777).toBe(0o600);
});

describe('what is no image', () => {
  test.each<[string, readonly Uint8Array[]]>([
    ['nothing', []],
    ['a page', [Buffer.from('<!doctype html>')]],
    ['half of an image', [PNG.subarray(0, PNG.length / 2)]],
    ['its end alone', [PNG.subarray(-12)]],
    ['a JPEG', [Buffer.from('ffd8ffe0ffd9', 'hex')]],
  ])('%s is refused, and leaves nothing', async (_what, pieces) => {
    const kept = await open().keep(piecesOf(...pieces));
    expect(kept).toEqual({ ok: false, problem: expect.stringMatching(/did not send a complete PNG image; read the log of the slot$/) });
    expect(await files()).toEqual([]);
  });

  test('an image without an end is given up at its limit', async () => {
    let pieces = 0;
    const endless = async () => {
      pieces += 1;
      return pieces === 1 ? PNG.subarray(0, 20) : new Uint8Array(2 ** 20);
    };
    expect(await open(2 ** 40).keep(endless)).toMatchObject({ ok: false });
    expect(pieces).toBeLessThan(70);
    expect(await files()).toEqual([]);
  });

  test('a source that fails, as when a client leaves, leaves nothing', async () => {
    await expect(open().keep(piecesOf(PNG.subarray(0, 20), new Error('gone')))).rejects.toThrow('gone');
    expect(await files()).toEqual([]);
  });
});

describe('limits', () => {
  test('the oldest images make room for new ones', async () => {
    const cache = open(PNG.length * 3);
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      ids.push(await keep(cache));
      now += 1000;
    }
    expect((await files()).toSorted()).toEqual(
      ids
        .slice(2)
        .map((id) => `${id}.png`)
        .toSorted(),
    );
    expect(await cache.open(ids[0] ?? '')).toBeUndefined();
  });

  test('an image that is larger than the cache is refused, and the others stay', async () => {
    const cache = open(PNG.length * 2);
    const id = await keep(cache);
    const large = await cache.keep(piecesOf(PNG, new Uint8Array(PNG.length * 2), PNG));
    expect(large).toEqual({
      ok: false,
      problem: expect.stringMatching(/^The image does not fit into the cache; raise "SVC_IMAGE_CACHE_LIMIT"/),
    });
    expect(await read(cache, id)).toEqual(PNG);
  });

  test('an image is gone when it is too old, asked for or not', async () => {
    const cache = open(2 ** 20, 2 * DAY_MS);
    const [first, second] = [await keep(cache), await keep(cache)];
    now += 2 * DAY_MS + 1000;
    expect(await cache.open(first)).toBeUndefined();
    expect(await files()).toEqual([`${second}.png`]);
    await cache.tidy();
    expect(await files()).toEqual([]);
  });

  test('many at the same time stay within them', async () => {
    const cache = open(PNG.length * 5);
    await Promise.all(Array.from({ length: 40 }, async () => keep(cache)));
    expect((await files()).length).toBeLessThanOrEqual(5);
  });

  test('an image that is removed while it is read is read to its end', async () => {
    const cache = open(PNG.length);
    const image = await cache.open(await keep(cache));
    await keep(cache);
    const pieces: Buffer[] = [];
    for await (const piece of image?.read(0, PNG.length - 1) ?? []) pieces.push(piece);
    expect(Buffer.concat(pieces)).toEqual(PNG);
  });
});

describe('after a restart', () => {
  test('images are there, with their age and size', async () => {
    const id = await keep(open());
    expect(await read(open(), id)).toEqual(PNG);
    await utimes(path.join(directory(), `${id}.png`), new Date(now - DAY_MS), new Date(now - DAY_MS));
    expect(await open(2 ** 20, DAY_MS / 2).open(id)).toBeUndefined();
    const old = await keep(open());
    const cache = open(PNG.length);
    await keep(cache);
    expect(await cache.open(old)).toBeUndefined();
  });

  test('parts of an earlier process are removed, and what is not of the cache stays', async () => {
    await mkdir(directory());
    const part = path.join(directory(), '11111111-2222-4333-8444-555555555555.part');
    await writeFile(part, 'half');
    for (const name of ['README.png', 'x.part', '.hidden']) await writeFile(path.join(directory(), name), 'mine');
    await open().tidy();
    expect((await files()).toSorted()).toEqual(['.hidden', 'README.png', 'x.part']);
  });
});

test('nothing outside of the directory is read, by any name or link', async () => {
  await writeFile(path.join(dir, 'secret.png'), PNG);
  await mkdir(directory());
  const id = '11111111-2222-4333-8444-555555555555';
  await symlink(path.join(dir, 'secret.png'), path.join(directory(), `${id}.png`));
  const cache = open();
  for (const name of [id, '../secret', '..', '', '/etc/passwd', `${id}/../../secret`]) expect(await cache.open(name)).toBeUndefined();
});

test('an image that somebody removed, or replaced by a link or a directory, is no longer there', async () => {
  const cache = open();
  const [removed, linked, made] = [await keep(cache), await keep(cache), await keep(cache)];
  await writeFile(path.join(dir, 'secret.png'), PNG);
  for (const id of [removed, linked, made]) await rm(path.join(directory(), `${id}.png`));
  await symlink(path.join(dir, 'secret.png'), path.join(directory(), `${linked}.png`));
  await mkdir(path.join(directory(), `${made}.png`));
  for (const id of [removed, linked, made]) expect(await cache.open(id)).toBeUndefined();
});

test('an image that the disk does not give is an error, and not a missing image', async () => {
  const cache = open();
  const id = await keep(cache);
  await rm(directory(), { recursive: true });
  await writeFile(directory(), 'a file where the directory should be');
  await expect(cache.open(id)).rejects.toMatchObject({ code: 'ENOTDIR' });
});

test('a disk that fails is a problem with an advice, and not an error', async () => {
  await writeFile(directory(), 'a file where the directory should be');
  expect(await open().keep(piecesOf(PNG))).toEqual({
    ok: false,
    problem: expect.stringMatching(
      /^The image could not be stored on the disk of the service \(E[A-Z]+\); free disk space, or request "b64_json"$/,
    ),
  });
});

test('a process that is killed while it keeps images leaves whole images and parts, and the parts go with the next one', async () => {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, '../support/comfyui/keep-images.mjs'), directory()], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await eventually('images are written', async () => (await files()).filter((name) => name.endsWith('.png')).length > 5, 30_000);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const cache = open();
  await cache.tidy();
  const left = await files();
  expect(left.length).toBeGreaterThan(5);
  for (const name of left) {
    expect(name).toMatch(/\.png$/);
    expect(await readFile(path.join(directory(), name))).toEqual(PNG);
  }
});
