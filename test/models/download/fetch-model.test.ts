import { createHash, randomBytes } from 'node:crypto';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Catalogue, Download } from '../../../src/models/catalogue/catalogue.ts';
import { encodeDemoModel } from '../../../toolboxes/demo/demo-models.ts';
import { fetchModel, type FetchModel } from '../../../src/models/download/fetch-model.ts';
import { eventually } from '../../support/eventually.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { MODEL_FORMATS } from '../../../src/providers/registry.ts';

const fox = encodeDemoModel('demo-fox');
const weights = randomBytes(2_000_000);
const PACE = { pollMs: 20, stillMs: 300, retryMs: 5 };
let root = '';
let server: Server;
let requests = 0;
/** Where each response began. */
let begins: number[] = [];
/** Bytes after which the connection of each response is cut; the last entry applies to all further responses. */
let cuts: number[] = [];

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'svc-fetch-'));
  requests = 0;
  begins = [];
  cuts = [];
  server = createServer((request, response) => {
    const from = Number(/^bytes=([0-9]+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const cut = cuts[Math.min(requests, cuts.length - 1)] ?? weights.length;
    requests += 1;
    begins.push(from);
    const body = weights.subarray(from);
    const range = `bytes ${from}-${weights.length - 1}/${weights.length}`;
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': body.length, ...(from > 0 ? { 'content-range': range } : {}) });
    if (cut >= body.length) response.end(body);
    else response.write(body.subarray(0, cut), () => setTimeout(() => response.destroy(), 20));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(root, { recursive: true, force: true });
});

function catalogueOf(more: Partial<Download> = {}): Catalogue {
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/weights`;
  const sha256 = createHash('sha256').update(weights).digest('hex');
  const from: Download = { kind: 'url', url, sha256, sizeBytes: weights.length, ...more };
  const facts = { provider: 'gguf', family: 'f', license: '', licenseUrl: '', minVramBytes: 0, selectable: true } as const;
  return new Map([['far', { id: 'far', files: [{ path: 'far/w.bin', from }], ...facts }]]);
}

const fetch = (id: string, more: Partial<FetchModel> = {}, signal = new AbortController().signal) =>
  fetchModel({ root, formats: MODEL_FORMATS, id: ModelId.parse(id), writer: 'me', onProgress: () => {}, pace: PACE, ...more }, signal);
const leftovers = async (directory = path.join(root, 'far')): Promise<readonly string[]> =>
  (await readdir(directory)).filter((name) => name.endsWith('.part'));

describe('fetchModel() of a model that is not in the catalogue', () => {
  test('accepts a complete GGUF file, and names a file that is missing or incomplete', async () => {
    expect(await fetch('own/m.gguf')).toMatchObject({
      ok: false,
      failure: { kind: 'stalled', message: expect.stringContaining(`The file "${root}/own/m.gguf" does not exist`) },
    });
    await mkdir(path.join(root, 'own'));
    await writeFile(path.join(root, 'own/m.gguf'), fox.subarray(0, 100_000));
    expect(await fetch('own/m.gguf')).toMatchObject({ ok: false, failure: { message: expect.stringContaining('incomplete') } });
    await appendFile(path.join(root, 'own/m.gguf'), fox.subarray(100_000));
    expect(await fetch('own/m.gguf')).toEqual({
      ok: true,
      value: { file: path.join(root, 'own/m.gguf'), sizeBytes: fox.length, fetched: false, verified: 'header' },
    });
  });
});

describe('fetchModel() of a model in the catalogue', () => {
  test('writes a demo model once, keeps a correct file and replaces a damaged one', async () => {
    const file = path.join(root, 'demo/demo-fox.gguf');
    expect(await fetch('demo-fox')).toMatchObject({ ok: true, value: { file, fetched: true, verified: 'content' } });
    expect(await fetch('demo-fox')).toMatchObject({ ok: true, value: { fetched: false, verified: 'content' } });
    await writeFile(file, Buffer.concat([fox.subarray(0, fox.length - 1), Buffer.from([1])]));
    expect(await fetch('demo-fox')).toMatchObject({ ok: true, value: { fetched: true } });
    expect(Buffer.compare(await readFile(file), fox)).toBe(0);
  });

  test('resumes broken downloads as long as it receives data, and leaves no other files behind', async () => {
    cuts = [300_000];
    const done = await fetch('far', { catalogue: catalogueOf() });
    expect(done).toMatchObject({ ok: true, value: { sizeBytes: weights.length, fetched: true, verified: 'content' } });
    expect(Buffer.compare(await readFile(path.join(root, 'far/w.bin')), weights)).toBe(0);
    expect(await leftovers()).toEqual([]);
    expect(requests).toBe(7);
  });

  test('gives up when it receives nothing more, and resumes the download when it is started again', async () => {
    cuts = [500_000, 0];
    expect(await fetch('far', { catalogue: catalogueOf() })).toMatchObject({ ok: false, failure: { kind: 'retry' } });
    expect(await leftovers()).toEqual(['w.bin.me.part']);
    cuts = [weights.length];
    requests = 0;
    expect(await fetch('far', { catalogue: catalogueOf() })).toMatchObject({ ok: true });
    expect({ requests, left: await leftovers() }).toEqual({ requests: 1, left: [] });
  });

  test.each([
    ['another size', { sizeBytes: 1_000_000 }, 'ModelPullFailed'],
    ['another hash', { sha256: 'a'.repeat(64) }, 'ModelHashMismatch'],
  ])('never moves a file with %s into place', async (_, more, reason) => {
    expect(await fetch('far', { catalogue: catalogueOf(more) })).toMatchObject({ ok: false, failure: { reason } });
    expect((await readdir(path.join(root, 'far'))).filter((name) => name === 'w.bin')).toEqual([]);
  });

  test('downloads a file again if its content is wrong', async () => {
    await mkdir(path.join(root, 'far'));
    await writeFile(path.join(root, 'far/w.bin'), randomBytes(weights.length));
    expect(await fetch('far', { catalogue: catalogueOf() })).toMatchObject({ ok: true, value: { fetched: true } });
    expect(Buffer.compare(await readFile(path.join(root, 'far/w.bin')), weights)).toBe(0);
  });

  test('stops immediately when it is interrupted', async () => {
    const abort = new AbortController();
    const others = path.join(root, 'far', 'w.bin.before-me.part');
    await mkdir(path.dirname(others));
    await writeFile(others, 'x');
    const ended = fetch(
      'far',
      { catalogue: catalogueOf(), pace: { ...PACE, stillMs: 60_000 }, onProgress: () => abort.abort() },
      abort.signal,
    );
    expect(await ended).toMatchObject({ ok: false, failure: { reason: 'Aborted' } });
  });
});

describe('several pods that fetch one model to a shared volume', () => {
  test('all end up with the complete file and leave nothing else behind', async () => {
    cuts = [400_000];
    const writers = ['pod-a', 'pod-b', 'pod-c', 'pod-d'];
    const done = await Promise.all(writers.map((writer) => fetch('far', { catalogue: catalogueOf(), writer })));
    for (const result of done) expect(result).toMatchObject({ ok: true, value: { sizeBytes: weights.length } });
    expect(Buffer.compare(await readFile(path.join(root, 'far/w.bin')), weights)).toBe(0);
    expect(await leftovers()).toEqual([]);
  });

  test('wait for the pod that is further ahead, report it, and continue when the file has appeared', async () => {
    const theirs = path.join(root, 'far/w.bin.pod-z.part');
    await mkdir(path.dirname(theirs));
    await writeFile(theirs, weights.subarray(0, 1000));
    const reported: string[] = [];
    const mine = fetch('far', {
      catalogue: catalogueOf(),
      onProgress: ({ what }) => {
        reported.push(what);
        if (reported.length !== 5) return;
        void writeFile(path.join(root, 'far/w.new'), weights).then(() =>
          rename(path.join(root, 'far/w.new'), path.join(root, 'far/w.bin')),
        );
      },
    });
    const growing = setInterval(() => void appendFile(theirs, 'x').catch(() => {}), 50);
    const done = await mine.finally(() => clearInterval(growing));
    expect(done).toMatchObject({ ok: true });
    expect(new Set(reported)).toEqual(new Set(['w.bin (downloaded by another program)']));
    expect(requests).toBe(0);
  });

  test('do not wait for a pod that no longer exists', async () => {
    await mkdir(path.join(root, 'far'));
    await writeFile(path.join(root, 'far/w.bin.pod-gone.part'), weights.subarray(0, 1_000_000));
    expect(await fetch('far', { catalogue: catalogueOf() })).toMatchObject({ ok: true, value: { fetched: true } });
    expect(Buffer.compare(await readFile(path.join(root, 'far/w.bin')), weights)).toBe(0);
  });

  test('continue at once what a pod that failed has left, although they have other names', async () => {
    cuts = [500_000, 0];
    expect(await fetch('far', { catalogue: catalogueOf(), writer: 'pod-a' })).toMatchObject({ ok: false, failure: { kind: 'retry' } });
    expect(await leftovers()).toEqual(['w.bin.pod-a.part']);
    [cuts, begins] = [[], []];
    const patient = { ...PACE, stillMs: 60_000 };
    expect(await fetch('far', { catalogue: catalogueOf(), writer: 'pod-b', pace: patient })).toMatchObject({ ok: true });
    expect({ begins, left: await readdir(path.join(root, 'far')) }).toEqual({ begins: [500_000], left: ['w.bin'] });
    expect(Buffer.compare(await readFile(path.join(root, 'far/w.bin')), weights)).toBe(0);
  });

  test('continue what a pod that was killed has left, once its part does not grow any more', async () => {
    cuts = [500_000, 0];
    await fetch('far', { catalogue: catalogueOf(), writer: 'pod-a' });
    // It looks as if it had been written a moment ago, as that of a killed writer does.
    await utimes(path.join(root, 'far/w.bin.pod-a.part'), new Date(), new Date());
    [cuts, begins] = [[], []];
    // On a busy machine, a writer that works may be still for longer than the others' pace allows.
    const pace = { ...PACE, stillMs: 3000 };
    const done = await Promise.all(['pod-b', 'pod-c'].map((writer) => fetch('far', { catalogue: catalogueOf(), writer, pace })));
    expect(done).toMatchObject([{ ok: true }, { ok: true }]);
    expect({ begins, left: await readdir(path.join(root, 'far')) }).toEqual({ begins: [500_000], left: ['w.bin'] });
  });

  test('are not held up by a pod that failed before it had received anything', async () => {
    cuts = [0];
    expect(await fetch('far', { catalogue: catalogueOf(), writer: 'pod-a' })).toMatchObject({ ok: false });
    expect(await readdir(path.join(root, 'far'))).toEqual([]);
  });

  test('leave the file alone that another one has completed from their part', async () => {
    // The first pod has received a part, and its server then makes it wait for longer than others wait for it.
    cuts = [500_000, 0, weights.length];
    const slow = fetch('far', { catalogue: catalogueOf(), writer: 'pod-a', pace: { ...PACE, retryMs: 1000 } });
    await eventually('the first part', async () => requests === 2);
    expect(await fetch('far', { catalogue: catalogueOf(), writer: 'pod-b' })).toMatchObject({ ok: true });
    const { ino, mtimeMs } = await stat(path.join(root, 'far/w.bin'));
    expect(await slow).toMatchObject({ ok: false, failure: { kind: 'retry', message: expect.stringContaining('continued by another') } });
    expect(await stat(path.join(root, 'far/w.bin'))).toMatchObject({ ino, mtimeMs });
    expect(await fetch('far', { catalogue: catalogueOf(), writer: 'pod-a' })).toMatchObject({ ok: true, value: { fetched: false } });
  });

  test('can write a demo model at the same time', async () => {
    const done = await Promise.all(Array.from({ length: 8 }, (_, index) => fetch('demo-owl', { writer: `pod-${index}` })));
    for (const result of done) expect(result).toMatchObject({ ok: true });
    expect(await readdir(path.join(root, 'demo'))).toEqual(['demo-owl.gguf']);
  });
});
