/** Files under rolling tags, which their publishers replace: what the catalogue accepts, and what users accept. */
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { acceptNewFiles, openAcceptedFiles, withAccepted, type AcceptedFiles } from '../../src/models/catalogue/accepted-files.ts';
import type { CatalogueEntry, FileVersion } from '../../src/models/catalogue/catalogue.ts';
import { entryOf, parseCatalogue } from '../../src/models/catalogue/decide/parse-catalogue.ts';
import { fetchModel } from '../../src/models/download/fetch-model.ts';
import { filesOf, verifyModelFiles } from '../../src/models/model-files.ts';
import { createModelSources, type ModelSources } from '../../src/models/model-sources.ts';
import { createModelStore } from '../../src/models/store.ts';
import { archiveOf, ENTRIES, fileEntry } from '../support/archives/archive-server.ts';
import { formats, PARROT } from '../support/archives/archive-store.ts';

const signal = new AbortController().signal;
const older = await archiveOf(ENTRIES);
const newer = await archiveOf([...ENTRIES, fileEntry('parrot-v1/em_santa.txt', 'ho ho ho'.repeat(500))]);
const versionOf = (bytes: Uint8Array): FileVersion => ({
  sha256: createHash('sha256').update(bytes).digest('hex'),
  sizeBytes: bytes.length,
});

let outside = '';
let root = '';
let server: Server;
let base = '';
/** What upstream has at present. */
let published: Uint8Array = older;
let type = 'application/octet-stream';
let bodies = 0;
let accepted: AcceptedFiles;

beforeEach(async () => {
  outside = await mkdtemp(path.join(tmpdir(), 'svc-rolling-'));
  root = path.join(outside, 'models');
  accepted = await openAcceptedFiles(path.join(outside, 'accepted-files.json'), () => undefined);
  [published, type, bodies] = [older, 'application/octet-stream', 0];
  server = createServer(({ headers: { range } }, response) => {
    const facts = { 'content-type': type, 'last-modified': 'Tue, 08 Sep 2026 06:00:00 GMT' };
    if (range === 'bytes=0-0') {
      response.writeHead(206, { ...facts, 'content-length': 1, 'content-range': `bytes 0-0/${published.length}` });
      return void response.end(published.subarray(0, 1));
    }
    bodies += 1;
    response.writeHead(200, { ...facts, 'content-length': published.length });
    return void response.end(published);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  base = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(outside, { recursive: true, force: true });
});

const PLACE = 'catalogue/parrot/0123456789ab';

function entry(listed: readonly FileVersion[]): CatalogueEntry {
  const [first = versionOf(older), ...others] = listed;
  const from = { kind: 'url' as const, url: `${base}/parrot.tar.bz2`, ...first, others };
  const facts = {
    kind: 'chat',
    provider: 'npu',
    family: 'toy',
    license: 'mit',
    licenseUrl: '',
    minVramBytes: 0,
    selectable: true,
  } as const;
  return { ...facts, id: PARROT, directory: PLACE, files: [{ path: PLACE, from, archive: { format: 'tar.bz2' } }] };
}

function open(listed: readonly FileVersion[], where: 'a host' | 'a pod' = 'a host') {
  const acceptedFiles = where === 'a host' ? accepted : undefined;
  const whole = (): CatalogueEntry => (acceptedFiles === undefined ? entry(listed) : withAccepted(entry(listed), acceptedFiles));
  const catalogue = {
    get: (id: string) => (id === PARROT ? whole() : undefined),
    has: (id: string) => id === PARROT,
    keys: () => [PARROT],
    values: () => [whole()],
  };
  const hub = { endpoint: base, token: async () => undefined };
  const sources: ModelSources = createModelSources({ root, hub, catalogue, acceptedFiles });
  const pace = { pollMs: 10, retryMs: 1 };
  return {
    sources,
    fetch: async () => fetchModel({ root, formats, id: PARROT, catalogue, sources, writer: 'me', pace, onProgress: () => {} }, signal),
    presence: async () => (await createModelStore({ root, formats, catalogue, sources }).observe([PARROT], signal)).get(PARROT)?.kind,
    verify: async () => {
      const [file] = await filesOf({ root, sources, formats }, PARROT);
      return file === undefined ? [] : (await verifyModelFiles(root, file, signal)).map(({ result }) => result);
    },
  };
}

describe('the catalogue lists several versions of a file', () => {
  const both = [versionOf(newer), versionOf(older)];

  test.each([
    ['the newest', newer],
    ['an earlier one, as a mirror may have it,', older],
  ])('and %s is downloaded', async (_name, has) => {
    published = has;
    const store = open(both);
    expect(await store.fetch()).toMatchObject({ ok: true, value: { fetched: true, verified: 'content' } });
    expect(await store.presence()).toBe('present');
    expect(await store.verify()).toEqual(['matches']);
    expect((await readdir(path.join(root, PLACE))).includes('em_santa.txt')).toBe(has === newer);
  });

  test('and what is in the store stays there when its publisher replaces it', async () => {
    await open([versionOf(older)]).fetch();
    published = newer;
    bodies = 0;
    const store = open(both);
    expect(await store.presence()).toBe('present');
    expect(await store.fetch()).toMatchObject({ ok: true, value: { fetched: false } });
    expect(bodies).toBe(0);
  });
});

describe('a file that nobody knows', () => {
  test('is refused at once with what is known of it and how to accept it', async () => {
    published = newer;
    const failed = await open([versionOf(older)]).fetch();
    expect(failed).toEqual({
      ok: false,
      failure: {
        kind: 'stalled',
        reason: 'ModelHashMismatch',
        message:
          `Upstream has published another file at "${base}/parrot.tar.bz2": ${newer.length} bytes instead of ${older.length}, ` +
          'published on 2026-09-08; update the catalogue ("svcctl catalogue update"), or, if you trust it, accept the file with ' +
          '"svcctl model pull parrot --accept-new"',
      },
    });
    expect(bodies).toBe(1);
  });

  test('with the size of the listed one is refused after its download, with its hash', async () => {
    published = Buffer.from(older).fill(7, 1000, 1100);
    const failed = await open([versionOf(older)]).fetch();
    expect(failed).toMatchObject({ failure: { kind: 'stalled', message: expect.stringContaining(versionOf(published).sha256) } });
  });

  test('is a page of the network in front of the server: the download is tried again later', async () => {
    published = Buffer.from('<html>Log in</html>');
    type = 'text/html; charset=utf-8';
    expect(await open([versionOf(older)]).fetch()).toMatchObject({ failure: { kind: 'retry', reason: 'ModelPullFailed' } });
  });

  test('is not accepted by a pod, which records nothing', async () => {
    published = newer;
    const failed = await open([versionOf(older)], 'a pod').fetch();
    expect(failed).toMatchObject({ failure: { message: expect.stringContaining('add the file to "models.toml" with "override = true"') } });
  });
});

describe('a file that a user accepts', () => {
  test('is downloaded without a known hash, and recorded with it', async () => {
    published = newer;
    const store = open([versionOf(older)]);
    const asked = await acceptNewFiles(store.sources, entry([versionOf(older)]), signal);
    expect(asked).toEqual({ ok: true, value: [{ url: `${base}/parrot.tar.bz2`, sizeBytes: newer.length, sha256: '' }] });
    expect(bodies).toBe(0);
    expect(await store.fetch()).toMatchObject({ ok: true, value: { fetched: true } });
    expect(await store.presence()).toBe('present');
    expect(await store.verify()).toEqual(['matches']);
    const records: unknown = JSON.parse(await readFile(path.join(outside, 'accepted-files.json'), 'utf8'));
    expect(records).toEqual([{ url: `${base}/parrot.tar.bz2`, ...versionOf(newer), at: expect.stringMatching(/^20/) }]);
  });

  test('is the same one later: after a restart, a third file is refused', async () => {
    published = newer;
    const store = open([versionOf(older)]);
    await acceptNewFiles(store.sources, entry([versionOf(older)]), signal);
    await store.fetch();
    await rm(root, { recursive: true });
    accepted = await openAcceptedFiles(path.join(outside, 'accepted-files.json'), () => undefined);
    expect(await open([versionOf(older)]).fetch()).toMatchObject({ ok: true });
    await rm(root, { recursive: true });
    published = Buffer.from(newer).fill(7, 1000, 1100);
    expect(await open([versionOf(older)]).fetch()).toMatchObject({ failure: { reason: 'ModelHashMismatch' } });
  });

  test('may have the size of the listed one', async () => {
    published = Buffer.from(newer).fill(7, newer.length - 4);
    const store = open([versionOf(published), versionOf(older)]);
    published = newer;
    expect(await store.fetch()).toMatchObject({ failure: { reason: 'ModelHashMismatch' } });
    expect(await acceptNewFiles(store.sources, entry([versionOf(older)]), signal)).toMatchObject({ ok: true, value: [{}] });
    expect(await store.fetch()).toMatchObject({ ok: true, value: { fetched: true } });
  });

  test('does not exist for a model whose files are pinned', async () => {
    const whole = entry([versionOf(older)]);
    const from = { kind: 'url' as const, url: `${base}/parrot.tar.bz2`, ...versionOf(older) };
    const pinned: CatalogueEntry = { ...whole, files: [{ ...whole.files[0], from }] };
    expect(await acceptNewFiles(open([]).sources, pinned, signal)).toMatchObject({ ok: false });
  });

  test('is forgotten with a damaged record', async () => {
    await writeFile(path.join(outside, 'accepted-files.json'), '[{"url": 1}]');
    expect((await openAcceptedFiles(path.join(outside, 'accepted-files.json'), () => undefined)).of('x')).toEqual([]);
  });
});

describe('the Kokoro archives, which were replaced on 2026-09-08', () => {
  test.each([
    ['kokoro-multi-lang-v1.0', 349_906_910, 'c5f7e2d2caf082bc1d20fb70334a61d99d20b484500aad32e7cf84c128ea3298', 349_418_188, 'c133d263'],
    [
      'kokoro-multi-lang-v1.0-int8',
      132_303_094,
      '4c3052abaa60943a341f193888cf6abd68787dae6ab8ae5c925a706caa247e4e',
      131_839_838,
      '75654a84',
    ],
  ])('%s accepts both, and stays where it was installed', async (id, sizeBytes, sha256, oldBytes, oldSha256) => {
    const { records } = parseCatalogue(await readFile('src/models/catalogue/catalogue.toml', 'utf8'), 'catalogue.toml');
    const record = records.get(id);
    if (record === undefined) throw new Error(`No ${id}`);
    const { files, directory } = entryOf(record, { hubUrl: () => '', providers: new Set(['tts']), isOwn: false });
    const others = [{ sha256: expect.stringMatching(new RegExp(`^${oldSha256}`)), sizeBytes: oldBytes }];
    expect(files[0].from).toMatchObject({ sha256, sizeBytes, others });
    const [old] = record.files[0]?.earlier ?? [];
    expect(record.files[0]).toMatchObject({ published: '2026-09-08', earlier: [{ replaced: '2026-09-08' }] });
    expect(directory).toBe(
      `catalogue/${id}/${createHash('sha256')
        .update(old?.sha256 ?? '')
        .digest('hex')
        .slice(0, 12)}`,
    );
  });
});

test('a file with a commit has one version', () => {
  const text = `[[models]]\nid = "own"\nkind = "chat"\n[[models.files]]\nrepo = "o/r"\nfile = "m.gguf"\ncommit = "${'c'.repeat(40)}"\nsize = 1\nsha256 = "${'a'.repeat(64)}"\nearlier = [{ size = 2, sha256 = "${'b'.repeat(64)}" }]\n`;
  expect(parseCatalogue(text, 'models.toml').problems.map(({ message }) => message)).toEqual([
    'A commit has one version of the file; remove "earlier" or "commit"',
  ]);
});
