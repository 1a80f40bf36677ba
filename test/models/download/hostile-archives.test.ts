/** Archives that somebody made to do harm, or that are damaged: each is refused with a reason, and nothing of it is visible or anywhere else. */
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { packTar, type TarEntry } from 'modern-tar';
import { archiveOf, ENTRIES, fileEntry } from '../../support/archives/archive-server.ts';
import { type ArchiveStore, openArchiveStore } from '../../support/archives/archive-store.ts';
import { encodeBzip2 } from '../../support/archives/encode-bzip2.ts';

let store: ArchiveStore;

beforeEach(async () => {
  store = await openArchiveStore();
});
afterEach(() => store.close());

const link = (type: 'symlink' | 'link', linkname: string): TarEntry => ({ header: { name: 'parrot-v1/link', size: 0, type, linkname } });

describe('a hostile archive is refused, and nothing of it is visible', () => {
  test.each<readonly [string, readonly TarEntry[], RegExp]>([
    ['a file above its directory', [...ENTRIES, fileEntry('../../../escaped.txt', 'x')], /leads out of its directory/],
    ['a file with an absolute path', [...ENTRIES, fileEntry('/tmp/svc-escaped.txt', 'x')], /leads out of its directory/],
    [
      'a symbolic link out of it, and a file behind it',
      [link('symlink', '../../..'), fileEntry('parrot-v1/link/escaped.txt', 'x')],
      /leads out/,
    ],
    ['a symbolic link to a file of the host', [...ENTRIES, link('symlink', '/etc/passwd')], /leads out/],
    ['a hard link out of it', [...ENTRIES, link('link', '../../../escaped.txt')], /leads out/],
    ['a link to none of its files', [...ENTRIES, link('symlink', 'nothing')], /none of its files/],
    ['links that lead to each other', [...ENTRIES, link('symlink', 'link')], /none of its files/],
    ['a device', [...ENTRIES, { header: { name: 'parrot-v1/null', size: 0, type: 'character-device' } }], /neither a file nor a directory/],
    ['a pipe', [...ENTRIES, { header: { name: 'parrot-v1/pipe', size: 0, type: 'fifo' } }], /neither a file nor a directory/],
    ['the same file twice', [...ENTRIES, fileEntry('parrot-v1/toy.json', '{}')], /twice/],
    ['a file where a directory is', [...ENTRIES, fileEntry('parrot-v1/data', 'x')], /twice/],
    ['a list of its own', [...ENTRIES, fileEntry('parrot-v1/.svc-files.json', '{}')], /kept for the list/],
    ['nothing in it', [], /no files/],
  ])('with %s', async (_, entries, message) => {
    const from = await store.serve(await archiveOf(entries));
    const done = await store.fetch(from);
    expect(done).toMatchObject({
      ok: false,
      failure: { kind: 'stalled', reason: 'ModelUnusable', message: expect.stringMatching(message) },
    });
    expect(await store.contents()).toEqual(['catalogue', 'catalogue/parrot']);
    expect(await readdir(store.outside)).toEqual(['models']);
    expect(await store.presenceOf(from)).toMatchObject({ kind: 'pullable' });
  });

  test('that unpacks to more than its source states, or to far more than its own size', async () => {
    const stated = await store.serve(await archiveOf(ENTRIES), { archive: { unpackedBytes: 50_000 } });
    expect(await store.fetch(stated)).toMatchObject({ ok: false, failure: { message: expect.stringContaining('more than 50000 bytes') } });
    // 300 MB of zeros take a few hundred bytes.
    const header = { name: 'zeros', size: 300_000_000, type: 'file' as const };
    const tar = await packTar([{ header: { ...header, size: 0 } }]);
    const lying = Buffer.from(tar);
    lying.write((300_000_000).toString(8).padStart(11, '0'), 124, 'latin1');
    lying.write('        ', 148, 'latin1');
    const sum = lying.subarray(0, 512).reduce((total, byte) => total + byte, 0);
    lying.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    const bomb = await store.serve(encodeBzip2(lying));
    expect(await store.fetch(bomb)).toMatchObject({
      ok: false,
      failure: { message: expect.stringMatching(/more than \d+ bytes of files/) },
    });
    expect(await store.contents()).toEqual(['catalogue', 'catalogue/parrot']);
  });

  test.each<readonly [string, (archive: Uint8Array) => Uint8Array]>([
    ['cut off', (archive) => archive.subarray(0, archive.length / 2)],
    ['altered', (archive) => archive.map((byte, index) => (index === 30_000 ? byte ^ 1 : byte))],
    ['no archive', () => randomBytes(1000)],
    ['compressed, but no archive', () => encodeBzip2(randomBytes(5000))],
    ['empty', () => encodeBzip2(new Uint8Array())],
  ])('that is %s', async (_, alter) => {
    const from = await store.serve(alter(await archiveOf(ENTRIES)));
    expect(await store.fetch(from)).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'ModelUnusable' } });
    expect(await store.contents()).toEqual(['catalogue', 'catalogue/parrot']);
  });

  test('with another hash than stated, before any byte of it is unpacked', async () => {
    const from = await store.serve(await archiveOf(ENTRIES), { from: { sha256: 'a'.repeat(64) } });
    const reported: string[] = [];
    const done = await store.fetch(from, { onProgress: ({ what }) => void reported.push(what) });
    expect(done).toMatchObject({ ok: false, failure: { reason: 'ModelHashMismatch' } });
    expect(reported.join()).not.toContain('unpacking');
    expect((await store.contents()).filter((name) => !name.endsWith('.part'))).toEqual(['catalogue', 'catalogue/parrot']);
  });
});
