import { createHash, randomBytes } from 'node:crypto';
import { access, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { pullFile, type PullFile } from '../../../src/models/pull/pull-file.ts';

const content = randomBytes(3_000_000);
const sha256 = createHash('sha256').update(content).digest('hex');
const never = new AbortController().signal;

let directory = '';
let target = '';
let server: Server;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let ranges: (string | undefined)[] = [];

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-pull-'));
  target = path.join(directory, 'deep', 'model.gguf');
  ranges = [];
  server = createServer((request, response) => {
    ranges.push(request.headers.range);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true, force: true });
});

const url = (): string => {
  const address = server.address();
  return typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}/model` : '';
};
const pull = (more: Partial<PullFile> = {}, signal = never) =>
  pullFile({ url: url(), target, sha256, sizeBytes: content.length, onProgress: () => {}, silenceMs: 2000, ...more }, signal);

/** Serves ranges; cuts the connection after `bytes` of an answer. */
function serve(options: { readonly ranges: boolean; readonly cutAfter?: number }): void {
  answer = (request, response) => {
    const from = options.ranges ? Number(/^bytes=([0-9]+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0) : 0;
    const body = content.subarray(from);
    response.writeHead(from > 0 ? 206 : 200, {
      'content-length': body.length,
      ...(from > 0 ? { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` } : {}),
    });
    if (options.cutAfter === undefined) response.end(body);
    else response.write(body.subarray(0, options.cutAfter), () => setTimeout(() => response.destroy(), 50));
  };
}

const isThere = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

test('a download ends in place, whole, with its progress told', async () => {
  serve({ ranges: true });
  const told: number[] = [];
  expect(await pull({ onProgress: (progress) => told.push(progress.doneBytes) })).toEqual({ ok: true, value: undefined });
  expect(Buffer.compare(await readFile(target), content)).toBe(0);
  expect(await isThere(`${target}.part`)).toBe(false);
  expect(told.at(-1)).toBe(content.length);
});

test('a cut connection is retried from where it was', async () => {
  serve({ ranges: true, cutAfter: 1_000_000 });
  expect(await pull()).toMatchObject({ ok: false, failure: { kind: 'retry' } });
  expect(await isThere(target)).toBe(false);
  const have = (await stat(`${target}.part`)).size;
  expect(have).toBeGreaterThan(0);
  serve({ ranges: true });
  expect(await pull()).toMatchObject({ ok: true });
  expect(ranges).toEqual([undefined, `bytes=${have}-`]);
  expect(Buffer.compare(await readFile(target), content)).toBe(0);
});

test('a server without ranges begins anew', async () => {
  serve({ ranges: false, cutAfter: 500_000 });
  await pull();
  serve({ ranges: false });
  expect(await pull()).toMatchObject({ ok: true });
  expect(Buffer.compare(await readFile(target), content)).toBe(0);
});

test('what does not have its hash is deleted and needs a person', async () => {
  serve({ ranges: true });
  expect(await pull({ sha256: '0'.repeat(64) })).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'ModelHashMismatch' } });
  expect(await isThere(target)).toBe(false);
  expect(await isThere(`${target}.part`)).toBe(false);
});

test('a part of another file is found out by the hash', async () => {
  serve({ ranges: true });
  await pull({ sha256: '0'.repeat(64) });
  await writeFile(`${target}.part`, Buffer.alloc(1000, 7));
  expect(await pull()).toMatchObject({ ok: false, failure: { reason: 'ModelHashMismatch' } });
  expect(await pull()).toMatchObject({ ok: true });
});

test('a part that is already whole is only checked', async () => {
  serve({ ranges: true });
  await pull({ sha256: '0'.repeat(64) });
  await writeFile(`${target}.part`, content);
  ranges = [];
  expect(await pull()).toMatchObject({ ok: true });
  expect(ranges).toEqual([]);
});

test.each([
  [404, 'stalled'],
  [403, 'stalled'],
  [429, 'retry'],
  [503, 'retry'],
] as const)('status %s is a failure of kind %s', async (status, kind) => {
  answer = (_, response) => response.writeHead(status).end('no');
  expect(await pull()).toMatchObject({ ok: false, failure: { kind, message: expect.stringContaining(String(status)) } });
});

test('a server that sends more than there may be, or falls silent, is left', async () => {
  answer = (_, response) => response.writeHead(200).end(Buffer.concat([content, content]));
  expect(await pull()).toMatchObject({ ok: false, failure: { message: expect.stringContaining('more than its') } });
  answer = (_, response) => response.writeHead(200, { 'content-length': content.length }).write('x');
  expect(await pull({ silenceMs: 300 })).toMatchObject({ ok: false, failure: { kind: 'retry' } });
});

test('a redirect is followed, with the range', async () => {
  serve({ ranges: true });
  const send = answer;
  answer = (request, response) =>
    request.url === '/model' ? response.writeHead(302, { location: '/elsewhere' }).end() : send(request, response);
  expect(await pull()).toMatchObject({ ok: true });
});

test('an aborted download leaves its part for the next time', async () => {
  serve({ ranges: true, cutAfter: 1_000_000 });
  const abort = new AbortController();
  const pulling = pull({ onProgress: () => abort.abort() }, abort.signal);
  expect(await pulling).toMatchObject({ ok: false, failure: { reason: 'Aborted' } });
  expect(await isThere(`${target}.part`)).toBe(true);
});

test('a disk that is too small is said before anything is loaded', async () => {
  serve({ ranges: true });
  expect(await pull({ sizeBytes: 2 ** 52 })).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'DiskFull' } });
  expect(ranges).toEqual([]);
});
