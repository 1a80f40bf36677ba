import { randomBytes } from 'node:crypto';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { BLOCK_BYTES } from '../../../src/models/download/decide/part-journal.ts';
import { createDiskRoom } from '../../../src/models/download/disk-room.ts';
import { pullFile, type PullFile } from '../../../src/models/download/pull-file.ts';
import { createThrottle, UNLIMITED } from '../../../src/platform/throttle.ts';
import { startFakeHub, type FakeHub, type Fault, type LoggedRequest } from '../../support/hub/fake-hub.ts';
import { bufferFile, virtualFile } from '../../support/hub/virtual-file.ts';

/** Large enough for several connections. */
const large = virtualFile(40 * 2 ** 20 + 12_345);
const small = bufferFile(randomBytes(3_000_000));
const other = bufferFile(randomBytes(3_000_000));
const COMMIT = 'c'.repeat(40);
const never = new AbortController().signal;

let directory = '';
let hub: FakeHub;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'svc-faulty-'));
  const files = new Map([
    ['small.gguf', small],
    ['large.gguf', large],
  ]);
  hub = await startFakeHub({ repos: [{ name: 'o/r', commit: COMMIT, files }] });
});
afterEach(async () => {
  await hub.close();
  await rm(directory, { recursive: true, force: true });
});

const limits = (connections: number, fastBytesPerSecond = Infinity) => ({
  connections,
  fastBytesPerSecond,
  throttle: UNLIMITED,
  room: createDiskRoom(),
});

function pull(which: 'small' | 'large', more: Partial<PullFile> = {}) {
  const { sha256, sizeBytes } = which === 'small' ? small : large;
  const file: PullFile = {
    url: `${hub.url}/o/r/resolve/${COMMIT}/${which}.gguf`,
    sha256,
    sizeBytes,
    target: path.join(directory, 'm.gguf'),
    hub: { page: `${hub.url}/o/r`, repo: 'o/r' },
    silenceMs: 1000,
    patience: { attempts: 4, pauseMs: 1 },
    limits: limits(4),
    onProgress: () => {},
    ...more,
  };
  return pullFile(file, never);
}

async function expectComplete(which: 'small' | 'large'): Promise<void> {
  const file = which === 'small' ? small : large;
  expect(Buffer.compare(await readFile(path.join(directory, 'm.gguf')), file.read(0, file.sizeBytes))).toBe(0);
  expect(await readdir(directory)).toEqual(['m.gguf']);
}

/** Breaks the responses of the server with the files: the first `times` ones, or all. */
function breakFiles(fault: Fault, times = Infinity): void {
  let broken = 0;
  hub.fault = ({ server }: LoggedRequest) => (server === 'storage' && (broken += 1) <= times ? fault : undefined);
}

describe('a download that breaks ends complete', () => {
  test.each<[string, 'small' | 'large', Fault, number]>([
    ['every connection is cut after a while', 'small', { cutAfter: 700_000 }, Infinity],
    ['every connection of several is cut after a while', 'large', { cutAfter: 3_000_000 }, Infinity],
    ['the server ignores ranges', 'large', { range: 'ignored' }, Infinity],
    ['the server sends another range than it was asked for, once', 'large', { range: 'wrong-header' }, 1],
    ['the server sends the wrong bytes for a range, a few times', 'large', { range: 'wrong-content' }, 3],
    ['the server is overloaded for a moment', 'large', { status: 503 }, 2],
    ['the server limits requests and says how long', 'small', { status: 429, headers: { 'retry-after': '0' } }, 1],
    ['the server limits requests in the words of the Hub', 'small', { status: 429, headers: { ratelimit: '"resolve";r=0;t=0' } }, 1],
    ['the server says another size, once', 'small', { sizeBytes: 2_000_000 }, 1],
    ['the server compresses the file, once', 'small', { encoding: 'gzip' }, 1],
    ['the server falls silent, once', 'small', { silent: true }, 1],
    ['the server cuts the connection before the first byte, a few times', 'large', { cutAfter: 0 }, 3],
  ])('%s', async (_, which, fault, times) => {
    breakFiles(fault, times);
    expect(await pull(which)).toEqual({ ok: true, value: undefined });
    await expectComplete(which);
  });

  test('although the file has another ETag in between, which ends what was there', async () => {
    let requests = 0;
    hub.fault = ({ server }) => {
      if (server !== 'storage') return undefined;
      requests += 1;
      return requests === 1 ? { cutAfter: 1_000_000, file: other, etag: 'v1' } : { etag: 'v2' };
    };
    expect(await pull('small', { url: `${hub.storageUrl}/o/r/small.gguf` })).toEqual({ ok: true, value: undefined });
    await expectComplete('small');
  });

  test('and several connections fetch each byte once', async () => {
    expect(await pull('large')).toEqual({ ok: true, value: undefined });
    await expectComplete('large');
    expect(hub.sentBytes()).toBe(large.sizeBytes);
    expect(hub.fileRequests().length).toBeGreaterThan(3);
  });

  /** Where each request began, and what had been sent before it. With one connection, these are the same. */
  async function pullLarge(fastBytesPerSecond: number): Promise<Readonly<Record<'begins' | 'sentBefore', readonly number[]>>> {
    const sentBefore: number[] = [];
    hub.fault = ({ server }) => {
      if (server === 'storage') sentBefore.push(hub.sentBytes());
      return undefined;
    };
    expect(await pull('large', { limits: limits(4, fastBytesPerSecond) })).toEqual({ ok: true, value: undefined });
    await expectComplete('large');
    const begins = hub.fileRequests().map(({ range }) => Number(/^bytes=(\d+)-/.exec(range ?? '')?.[1]));
    expect(begins.length).toBeGreaterThan(1);
    return { begins, sentBefore };
  }

  test('and one that is fast enough with one connection opens no others', async () => {
    const { begins, sentBefore } = await pullLarge(0);
    expect(begins).toEqual(sentBefore);
  });

  test('and one that is too slow with one connection opens others', async () => {
    hub.bytesPerSecond = 20_000_000;
    const { begins, sentBefore } = await pullLarge(2 ** 40);
    expect(begins).not.toEqual(sentBefore);
  });
});

describe('a download that cannot succeed says why', () => {
  test.each<[string, Fault, 'retry' | 'stalled', string]>([
    ['wrong bytes', { file: other }, 'stalled', 'because its SHA-256 is'],
    ['wrong size', { sizeBytes: 5 }, 'retry', 'has 5 bytes at'],
    ['compressed bytes', { encoding: 'br' }, 'retry', 'as "br" instead of unchanged'],
    ['no such file', { status: 404 }, 'stalled', 'HTTP status 404'],
    ['no access at the storage server', { status: 403 }, 'stalled', 'HTTP status 403'],
    ['an overloaded server', { status: 503 }, 'retry', 'HTTP status 503'],
    ['a limit', { status: 429, headers: { 'retry-after': '0' } }, 'retry', 'limits the request rate'],
    ['a silent server', { silent: true }, 'retry', 'the next attempt resumes it'],
    ['a connection that is always cut', { cutAfter: 0 }, 'retry', 'the next attempt resumes it'],
    ['a redirect without end', { status: 302, headers: { location: '/o/r/small.gguf' } }, 'stalled', 'redirected too often'],
    ['a redirect to a file', { status: 302, headers: { location: 'file:///etc/passwd' } }, 'stalled', 'redirects to "file:"'],
  ])('%s', async (_, fault, kind, message) => {
    breakFiles(fault);
    const patience = { attempts: 2, pauseMs: 1 };
    const result = await pull('small', { patience, silenceMs: 300 });
    expect(result).toMatchObject({ ok: false, failure: { kind, message: expect.stringContaining(message) } });
    expect((await readdir(directory)).filter((name) => name === 'm.gguf')).toEqual([]);
  });

  test.each<[string, Fault, 'ModelGated' | 'ModelMissing' | 'ModelHashMismatch', string]>([
    ['a gated repository', { status: 403, headers: { 'x-error-code': 'GatedRepo' } }, 'ModelGated', 'accept its terms, and set "HF_TOKEN"'],
    [
      'no repository',
      { status: 401, headers: { 'x-error-code': 'RepoNotFound' } },
      'ModelGated',
      '"o/r" does not exist, or requires a token',
    ],
    ['no file', { status: 404, headers: { 'x-error-code': 'EntryNotFound' } }, 'ModelMissing', 'does not have this file'],
    ['another file', { etag: 'f'.repeat(64) }, 'ModelHashMismatch', 'The server has another file'],
  ])('the Hub knows of %s', async (_, fault, reason, message) => {
    hub.fault = ({ server }) => (server === 'hub' ? fault : undefined);
    const result = await pull('small');
    expect(result).toMatchObject({ ok: false, failure: { kind: 'stalled', reason, message: expect.stringContaining(message) } });
  });
});

test.each([1, 4])('a block that was damaged on the disk is fetched again, and nothing else, with %i connections', async (connections) => {
  breakFiles({ cutAfter: 10_000_000 });
  const once = { patience: { attempts: 1, pauseMs: 1 }, limits: limits(1) };
  expect(await pull('large', once)).toMatchObject({ ok: false, failure: { kind: 'retry' } });
  hub.fault = () => undefined;
  const part = await open(path.join(directory, 'm.gguf.part'), 'r+');
  await part.write(Buffer.from('damaged'), 0, 7, BLOCK_BYTES + 5);
  await part.close();
  expect(await pull('large', { limits: limits(connections) })).toEqual({ ok: true, value: undefined });
  await expectComplete('large');
  expect(hub.sentBytes()).toBe(large.sizeBytes + BLOCK_BYTES);
});

test('a token reaches the server it belongs to and no other', async () => {
  hub.repos.set('o/r', { ...(hub.repos.get('o/r') ?? { name: 'o/r', commit: COMMIT, files: new Map() }), token: 'hf_secret' });
  const bearer = { origin: new URL(hub.url).origin, token: 'hf_secret' };
  expect(await pull('large', { bearer })).toEqual({ ok: true, value: undefined });
  const seen = (server: string) => new Set(hub.log.filter((entry) => entry.server === server).map(({ authorization }) => authorization));
  expect(seen('hub')).toEqual(new Set(['Bearer hf_secret']));
  expect(seen('storage')).toEqual(new Set([undefined]));
});

test('a limit of bandwidth holds for all downloads together', async () => {
  const bytesPerSecond = 6_000_000;
  const shared = { connections: 1, throttle: createThrottle(bytesPerSecond), room: createDiskRoom() };
  const began = performance.now();
  const both = await Promise.all(['a', 'b'].map((name) => pull('small', { limits: shared, target: path.join(directory, name) })));
  expect(both.map(({ ok }) => ok)).toEqual([true, true]);
  // Less time would be above the limit; more may be the machine's doing.
  expect(performance.now() - began).toBeGreaterThan((1000 * 2 * small.sizeBytes) / bytesPerSecond - 200);
});

test('room on the disk is reserved for every download under way', async () => {
  const room = createDiskRoom();
  const huge = await room.reserve(directory, () => 2 ** 60);
  expect(huge).toMatchObject({ ok: false, failure: { reason: 'DiskFull', kind: 'stalled' } });
  const first = await room.reserve(directory, () => 1);
  expect(first.ok).toBe(true);
  const held = await pull('small', { limits: { connections: 1, throttle: UNLIMITED, room: { reserve: async () => huge } } });
  expect(held).toMatchObject({ ok: false, failure: { reason: 'DiskFull' } });
});
