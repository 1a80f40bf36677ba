import { createHash, randomBytes } from 'node:crypto';
import { access, mkdir, mkdtemp, readFile, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { BLOCK_BYTES, journalHead, journalLine } from '../../../src/models/download/decide/part-journal.ts';
import { journalOf } from '../../../src/models/download/resume-part.ts';
import { pullFile, type PullFile } from '../../../src/models/download/pull-file.ts';

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

/** Serves the file, and cuts the connection after `cutAfter` bytes of each response. */
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

test('a download ends with the complete file in place and reports its progress', async () => {
  serve({ ranges: true });
  const reported: number[] = [];
  expect(await pull({ onProgress: (progress) => reported.push(progress.doneBytes) })).toEqual({ ok: true, value: undefined });
  expect(Buffer.compare(await readFile(target), content)).toBe(0);
  expect(await isThere(`${target}.part`)).toBe(false);
  expect(reported.at(-1)).toBe(content.length);
});

test('a download whose connection was cut is resumed', async () => {
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

test('a download of which several connections left begun blocks beside each other is resumed block by block', async () => {
  await mkdir(path.dirname(target), { recursive: true });
  const begun = [0, 1].map((block) => ({ block, bytes: 300_000 + block }));
  const part = Buffer.alloc(content.length);
  for (const { block, bytes } of begun) content.copy(part, block * BLOCK_BYTES, block * BLOCK_BYTES, block * BLOCK_BYTES + bytes);
  const lines = begun.map(({ block, bytes }) =>
    journalLine(block, { bytes, crc: crc32(content.subarray(block * BLOCK_BYTES, block * BLOCK_BYTES + bytes)) }),
  );
  await writeFile(`${target}.part`, part);
  await writeFile(journalOf(`${target}.part`), journalHead({ sizeBytes: content.length, sha256 }) + lines.join(''));
  answer = (request, response) => {
    const [, from = 0, last = content.length - 1] = /^bytes=([0-9]+)-([0-9]+)?$/.exec(request.headers.range ?? '')?.map(Number) ?? [];
    const end = Number.isNaN(last) ? content.length : last + 1;
    const headers = { 'content-length': end - from, 'content-range': `bytes ${from}-${end - 1}/${content.length}` };
    response.writeHead(206, headers).end(content.subarray(from, end));
  };
  expect(await pull()).toMatchObject({ ok: true });
  expect(Buffer.compare(await readFile(target), content)).toBe(0);
  expect(ranges).toEqual([`bytes=300000-${BLOCK_BYTES - 1}`, `bytes=${BLOCK_BYTES + 300_001}-`]);
});

test('a download from a server without range support starts from the beginning', async () => {
  serve({ ranges: false, cutAfter: 500_000 });
  await pull();
  serve({ ranges: false });
  expect(await pull()).toMatchObject({ ok: true });
  expect(Buffer.compare(await readFile(target), content)).toBe(0);
});

test('a file with the wrong hash is deleted and the pull is stalled', async () => {
  serve({ ranges: true });
  expect(await pull({ sha256: '0'.repeat(64) })).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'ModelHashMismatch' } });
  expect(await isThere(target)).toBe(false);
  expect(await isThere(`${target}.part`)).toBe(false);
});

test('a part of another file is noticed by the hash, and the file is downloaded again in one piece', async () => {
  serve({ ranges: true });
  await pull({ sha256: '0'.repeat(64) });
  await writeFile(`${target}.part`, Buffer.alloc(1000, 7));
  ranges = [];
  expect(await pull()).toMatchObject({ ok: true });
  expect(ranges).toEqual(['bytes=1000-', undefined]);
  expect(Buffer.compare(await readFile(target), content)).toBe(0);
});

test('a part that is already complete is only verified', async () => {
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

test('a server that sends too much or falls silent is disconnected', async () => {
  answer = (_, response) => response.writeHead(200).end(Buffer.concat([content, content]));
  expect(await pull()).toMatchObject({ ok: false, failure: { message: expect.stringContaining('sent more than 3000000 bytes') } });
  answer = (_, response) => response.writeHead(200, { 'content-length': content.length }).write('x');
  expect(await pull({ silenceMs: 300 })).toMatchObject({ ok: false, failure: { kind: 'retry' } });
});

/** Nobody waits that long. */
const LONG = { attempts: 6, pauseMs: 600_000 };

test('a server that cannot be reached ends the download at once, without the patience for a broken one', async () => {
  serve({ ranges: true });
  const gone = url();
  server.close();
  for (const address of [gone, 'http://models.invalid/model'])
    expect(await pull({ url: address, patience: LONG })).toMatchObject({
      ok: false,
      failure: {
        kind: 'retry',
        reason: 'ModelPullFailed',
        message: expect.stringMatching(/^"http:.*" cannot be reached: .*; check the network$/),
      },
    });
});

test('a server that goes away during the download is waited for', async () => {
  serve({ ranges: true, cutAfter: 1_000_000 });
  const port = Number(new URL(url()).port);
  server.once('request', () => server.close());
  const done = pull({ patience: { attempts: 10, pauseMs: 100 } });
  await new Promise((resolve) => server.once('close', resolve));
  serve({ ranges: true });
  server = createServer((request, response) => answer(request, response)).listen(port, '127.0.0.1');
  expect(await done).toEqual({ ok: true, value: undefined });
});

test.each([301, 302, 303, 307, 308])('redirects with status %i are followed', async (status) => {
  serve({ ranges: true });
  const send = answer;
  answer = (request, response) =>
    request.url === '/model' ? response.writeHead(status, { location: '/elsewhere' }).end() : send(request, response);
  expect(await pull()).toMatchObject({ ok: true });
});

test('an aborted download keeps its part', async () => {
  serve({ ranges: true, cutAfter: 1_000_000 });
  const abort = new AbortController();
  const pulling = pull({ onProgress: () => abort.abort() }, abort.signal);
  expect(await pulling).toMatchObject({ ok: false, failure: { reason: 'Aborted' } });
  expect(await isThere(`${target}.part`)).toBe(true);
});

test('too little disk space is reported before anything is downloaded', async () => {
  serve({ ranges: true });
  expect(await pull({ sizeBytes: 2 ** 52 })).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'DiskFull' } });
  expect(ranges).toEqual([]);
});

test('some disk space is left for everything else', async () => {
  serve({ ranges: true });
  const { bavail, bsize } = await statfs(tmpdir());
  expect(await pull({ sizeBytes: bavail * bsize - 2 ** 26 })).toMatchObject({
    ok: false,
    failure: { kind: 'stalled', reason: 'DiskFull' },
  });
  expect(ranges).toEqual([]);
});

test('goes through the proxy of the environment, but not to this machine', async () => {
  serve({ ranges: true });
  const asked: string[] = [];
  const proxy = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end(content);
  });
  // Accepts a tunnel to any host, and leads it to the server of the test.
  proxy.on('connect', (request, socket) => {
    asked.push(request.url ?? '');
    const upstream = connect(Number(new URL(url()).port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
    });
    upstream.on('error', () => socket.destroy());
    socket.on('error', () => upstream.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const address = proxy.address();
  process.env['http_proxy'] = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  try {
    expect(await pull({ url: 'http://models.invalid/model' })).toEqual({ ok: true, value: undefined });
    expect(asked).toEqual([expect.stringContaining('models.invalid')]);
    expect(await pull({ target: `${target}.local` })).toEqual({ ok: true, value: undefined });
    expect(asked).toHaveLength(1);
  } finally {
    delete process.env['http_proxy'];
    proxy.closeAllConnections();
    proxy.close();
  }
});

test('fails where a file stands in the place of its directory', async () => {
  serve({ ranges: true });
  await writeFile(path.join(directory, 'deep'), '');
  expect(await pull()).toMatchObject({ ok: false, failure: { message: expect.stringContaining(directory) } });
});
