/** Models that come in an archive: they are unpacked into a directory of the store, which appears complete or not at all. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { lstat, mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { TarEntry } from 'modern-tar';
import { Pin } from '../../../src/models/decide/pin.ts';
import { readHubAccess } from '../../../src/models/hub/hub-access.ts';
import { filesOf, removeModel, verifyModelFiles } from '../../../src/models/model-files.ts';
import { createModelSources } from '../../../src/models/model-sources.ts';
import { findLeftovers, removeLeftovers } from '../../../src/models/model-files.ts';
import { createDiskRoom, type DiskRoom } from '../../../src/models/download/disk-room.ts';
import { fetchModel } from '../../../src/models/download/fetch-model.ts';
import { UNLIMITED } from '../../../src/platform/throttle.ts';
import { pinOfEntry } from '../../../src/cluster/models/decide/model-record.ts';
import { fail, ok } from '../../../src/schema/words/failure.ts';
import { archiveOf, ENTRIES, fileEntry, UNPACKED, weights, words, type ArchiveServer } from '../../support/archives/archive-server.ts';
import { type ArchiveStore, formats, openArchiveStore, PARROT } from '../../support/archives/archive-store.ts';
import { encodeBzip2 } from '../../support/archives/encode-bzip2.ts';

const CHILD = fileURLToPath(new URL('../../support/archives/fetch-archive-child.ts', import.meta.url));
const signal = new AbortController().signal;

let store: ArchiveStore;

beforeEach(async () => {
  store = await openArchiveStore();
});
afterEach(() => store.close());

const UNPACKED_FILES = ['.svc-files.json', 'data', 'data/words.txt', 'toy.json', 'weights.bin'];

describe('an archive', () => {
  test('becomes a directory with its files, and leaves nothing else', async () => {
    const from = await store.serve(await archiveOf(ENTRIES));
    expect(await store.presenceOf(from)).toMatchObject({ kind: 'pullable' });
    expect(await store.fetch(from)).toMatchObject({
      ok: true,
      value: { file: path.join(store.root, UNPACKED), fetched: true, verified: 'content' },
    });
    expect(await store.contents(path.join(store.root, UNPACKED))).toEqual(UNPACKED_FILES);
    expect(await readdir(path.join(store.root, 'catalogue/parrot'))).toEqual([path.basename(UNPACKED)]);
    expect((await readFile(path.join(store.root, UNPACKED, 'weights.bin'))).equals(weights)).toBe(true);
    expect(await store.presenceOf(from)).toMatchObject({
      kind: 'present',
      facts: { hostPath: path.join(store.root, UNPACKED), provider: 'npu' },
    });
    expect((await store.storeOf(from).list(signal)).map(({ id }) => id)).toEqual(['parrot']);
    expect(await store.fetch(from)).toMatchObject({ ok: true, value: { fetched: false, verified: 'content' } });
    expect(from.requests()).toBe(1);
  });

  test('without a directory of its own is unpacked as it is, and links within it become the files that they lead to', async () => {
    const flat = ENTRIES.slice(1).map((entry) => ({
      ...entry,
      header: { ...entry.header, name: entry.header.name.replace('parrot-v1/', './') },
    }));
    const links: TarEntry[] = [
      { header: { name: 'first.txt', size: 0, type: 'symlink', linkname: 'second.txt' } },
      { header: { name: 'second.txt', size: 0, type: 'link', linkname: 'data/words.txt' } },
    ];
    const from = await store.serve(await archiveOf([...links, ...flat]));
    expect(await store.fetch(from)).toMatchObject({ ok: true });
    expect((await lstat(path.join(store.root, UNPACKED, 'first.txt'))).isSymbolicLink()).toBe(false);
    expect(await readFile(path.join(store.root, UNPACKED, 'first.txt'), 'utf8')).toBe(words);
  });

  test('reports how far it is with unpacking', async () => {
    const reported: string[] = [];
    await store.fetch(await store.serve(await archiveOf(ENTRIES)), { onProgress: ({ what }) => void reported.push(what) });
    expect(reported).toContain('parrot.tar.bz2 (unpacking)');
  });

  test('of several compressed parts, as parallel compressors write them, is unpacked as one', async () => {
    const { packTar } = await import('modern-tar');
    const tar = await packTar([...ENTRIES]);
    const parts = [tar.subarray(0, 20_000), tar.subarray(20_000)].map((part) => encodeBzip2(part));
    expect(await store.fetch(await store.serve(Buffer.concat(parts)))).toMatchObject({ ok: true });
    expect((await readFile(path.join(store.root, UNPACKED, 'weights.bin'))).equals(weights)).toBe(true);
  });

  test('is fetched and unpacked by the pods of a cluster, which have only its pin', async () => {
    const { entry } = await store.serve(await archiveOf(ENTRIES));
    const given = Pin.parse(JSON.parse(JSON.stringify(pinOfEntry(PARROT, entry))));
    const sources = createModelSources({ root: store.root, hub: readHubAccess({}), given });
    const done = await fetchModel({ root: store.root, formats, id: PARROT, writer: 'pod-1', onProgress: () => {}, sources }, signal);
    expect(done).toMatchObject({ ok: true, value: { file: path.join(store.root, UNPACKED) } });
  });

  test('is unpacked by several programs at once without harm', async () => {
    const from = await store.serve(await archiveOf(ENTRIES));
    const pace = { pollMs: 20, retryMs: 5 };
    const done = await Promise.all(['pod-a', 'pod-b', 'pod-c'].map((writer) => store.fetch(from, { writer, pace })));
    expect(done.map(({ ok: isDone }) => isDone)).toEqual([true, true, true]);
    expect(await store.contents(path.join(store.root, UNPACKED))).toEqual(UNPACKED_FILES);
    expect(await readdir(path.join(store.root, 'catalogue/parrot'))).toEqual([path.basename(UNPACKED)]);
  });
});

describe('an archive whose work is interrupted', () => {
  test('is unpacked by the next process without being fetched again, wherever the first one was killed, and never half visible', async () => {
    const more = Array.from({ length: 60 }, (_, index) => fileEntry(`parrot-v1/data/${index}.bin`, randomBytes(4000)));
    const from = await store.serve(await archiveOf([...ENTRIES, ...more]));
    const kills = [0, 10, 40, 120];
    for (const waitMs of kills) {
      const child = spawn(process.execPath, [CHILD, store.root, JSON.stringify(from.entry)], { stdio: ['ignore', 'pipe', 'inherit'] });
      const exited = once(child, 'exit');
      await Promise.race([once(child.stdout, 'data'), exited]);
      await sleep(waitMs);
      child.kill('SIGKILL');
      await exited;
      const presence = await store.presenceOf(from);
      expect(['pullable', 'present']).toContain(presence?.kind);
      if (presence?.kind === 'present') expect(await readdir(path.join(store.root, UNPACKED, 'data'))).toHaveLength(61);
      expect((await store.storeOf(from).list(signal)).map(({ id }) => id)).toEqual(['parrot']);
      await rm(path.join(store.root, UNPACKED), { recursive: true, force: true });
    }
    const requests = from.requests();
    expect(await store.fetch(from, { writer: 'child' })).toMatchObject({ ok: true });
    expect(from.requests() - requests).toBeLessThanOrEqual(1);
    expect(await readdir(path.join(store.root, UNPACKED, 'data'))).toHaveLength(61);
    expect(await readdir(path.join(store.root, 'catalogue/parrot'))).toEqual([path.basename(UNPACKED)]);
  }, 60_000);

  test('stops at once when nobody wants it any more', async () => {
    const from = await store.serve(await archiveOf(ENTRIES));
    const abort = new AbortController();
    const onProgress = ({ what }: { readonly what: string }): void => void (what.includes('unpacking') && abort.abort());
    expect(await store.fetch(from, { onProgress }, abort.signal)).toMatchObject({ ok: false, failure: { reason: 'Aborted' } });
    expect(await store.contents()).toEqual(['catalogue', 'catalogue/parrot', `${UNPACKED}.tar.bz2`]);
    expect(await store.fetch(from)).toMatchObject({ ok: true });
    expect(from.requests()).toBe(1);
  });

  test('asks for room for the archive and its files before it fetches, and for each file before it writes', async () => {
    const archive = await archiveOf(ENTRIES);
    const from = await store.serve(archive, { archive: { unpackedBytes: 100_000 } });
    const asked: number[] = [];
    const open = createDiskRoom();
    const room: DiskRoom = {
      async reserve(directory, missing) {
        asked.push(missing());
        if (missing() === weights.length) return fail('stalled', 'DiskFull', 'Free disk space');
        return open.reserve(directory, missing);
      },
    };
    const limits = { connections: 1, throttle: UNLIMITED, room };
    expect(await store.fetch(from, { limits })).toMatchObject({ ok: false, failure: { reason: 'DiskFull' } });
    expect(asked[0]).toBe(archive.length + 100_000);
    expect(asked).toContain(weights.length);
    // The archive is worth to be kept for the time when there is room.
    expect(await store.contents()).toEqual(['catalogue', 'catalogue/parrot', `${UNPACKED}.tar.bz2`]);
    const without = { ...limits, room: { reserve: async () => ok({ [Symbol.dispose]: () => undefined }) } };
    expect(await store.fetch(from, { limits: without })).toMatchObject({ ok: true });
    expect(from.requests()).toBe(1);
  });
});

describe('a model from an archive', () => {
  const knownOf = ({ catalogue }: ArchiveServer) => ({
    root: store.root,
    formats,
    sources: createModelSources({ root: store.root, hub: readHubAccess({}), catalogue }),
  });
  const verify = async (from: ArchiveServer) => {
    const results = (await filesOf(knownOf(from), PARROT)).map(async (file) => verifyModelFiles(store.root, file, signal));
    return (await Promise.all(results)).flat().map(({ path: name, result }) => `${name} ${result}`);
  };

  test('is verified file by file although the archive is gone, and fetched again if one is damaged', async () => {
    const from = await store.serve(await archiveOf(ENTRIES));
    expect(await verify(from)).toEqual([`${UNPACKED} missing`]);
    await store.fetch(from);
    expect(await verify(from)).toEqual([`${UNPACKED} matches`]);
    const damaged = Buffer.from(weights);
    damaged.writeUInt8((damaged[100] ?? 0) ^ 1, 100);
    await writeFile(path.join(store.root, UNPACKED, 'weights.bin'), damaged);
    await rm(path.join(store.root, UNPACKED, 'data/words.txt'));
    expect(await verify(from)).toEqual([`${UNPACKED}/data/words.txt missing`, `${UNPACKED}/weights.bin differs`]);
    expect(await store.fetch(from)).toMatchObject({ ok: true, value: { fetched: true } });
    expect(await verify(from)).toEqual([`${UNPACKED} matches`]);
    expect(await readdir(path.join(store.root, 'catalogue/parrot'))).toEqual([path.basename(UNPACKED)]);
  });

  test('is removed with everything that belongs to it', async () => {
    const from = await store.serve(await archiveOf(ENTRIES));
    await store.fetch(from);
    await mkdir(path.join(store.root, `catalogue/parrot/.${path.basename(UNPACKED)}.other.unpack.part`));
    await writeFile(path.join(store.root, `${UNPACKED}.tar.bz2`), 'x');
    expect(await removeModel(knownOf(from), PARROT)).toBeGreaterThan(weights.length);
    expect(await store.contents()).toEqual([]);
    expect(await store.presenceOf(from)).toMatchObject({ kind: 'pullable' });
  });

  test('what a killed process was unpacking is pruned after a day, and not before', async () => {
    const from = await store.serve(await archiveOf(ENTRIES));
    await store.fetch(from);
    const hidden = path.join(store.root, `catalogue/parrot/.${path.basename(UNPACKED)}.gone.unpack.part`);
    await mkdir(path.join(hidden, 'parrot-v1'), { recursive: true });
    await writeFile(path.join(hidden, 'parrot-v1/weights.bin'), weights);
    expect(await findLeftovers(store.root, Date.now())).toEqual([]);
    const day = Date.now() + 25 * 3_600_000;
    const found = await findLeftovers(store.root, day);
    expect(found).toEqual([{ path: path.relative(store.root, hidden), sizeBytes: weights.length }]);
    await utimes(hidden, 0, 0);
    expect(await findLeftovers(store.root, Date.now())).toEqual([]);
    await removeLeftovers(store.root, found);
    expect(await store.contents(path.join(store.root, UNPACKED))).toEqual(UNPACKED_FILES);
    expect(await readdir(path.join(store.root, 'catalogue/parrot'))).toEqual([path.basename(UNPACKED)]);
  });
});
