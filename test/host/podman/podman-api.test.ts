/** What comes of requests to podman when its socket answers late, wrongly or not at all. */
import { createServer, type Server, type Socket } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createPodmanApi, podmanAnswers } from '../../../src/host/podman/podman-api.ts';

let dir: string;
let server: Server;
let answer: (socket: Socket, request: string) => void;
const sockets = new Set<Socket>();

const path = (): string => join(dir, 'podman.sock');
const json = (status: string, text: string): string => `HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'svc-podman-api-'));
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => answer(socket, bytes.toString()));
  });
  await new Promise<void>((resolve) => server.listen(path(), resolve));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
  await rm(dir, { recursive: true });
});

const never = new AbortController().signal;

describe('a call', () => {
  test.each([
    ['is answered', json('200 OK', '{"Id":"1"}'), { ok: true, value: { status: 200, body: { Id: '1' }, error: '' } }],
    ['is refused', json('404 Not Found', '{"message":"no such pod","cause":"x"}'), { value: { status: 404, error: 'no such pod' } }],
    ['is refused by something else', json('502 Bad Gateway', 'oops'), { value: { status: 502, error: 'status 502: oops' } }],
    ['gets no JSON', json('200 OK', 'OK'), { value: { status: 200, body: undefined } }],
    ['gets no HTTP', 'SSH-2.0\r\n\r\n', { failure: { reason: 'RuntimeUnreachable', message: expect.stringContaining('Parse Error') } }],
    ['gets no answer', '', { failure: { kind: 'retry', message: expect.stringMatching(/podman\.sock" did not respond within 0\.3 s$/) } }],
    ['gets half an answer', json('200 OK', '{"Id":"1"}').slice(0, -4), { failure: { message: expect.stringContaining('within 0.3 s') } }],
  ])('that %s', async (_what, text, result) => {
    answer = (socket) => void socket.write(text);
    expect(await createPodmanApi(path()).call('GET', '/info', { signal: never, timeoutMs: 300 })).toMatchObject(result);
  });

  test.each([
    ['before an answer', ''],
    ['in the middle of one', json('200 OK', '{"Id":"1"}').slice(0, -4)],
  ])('whose connection breaks %s fails at once', async (_when, text) => {
    answer = (socket) => void socket.end(text);
    const failed = { failure: { reason: 'RuntimeUnreachable', message: expect.stringContaining(`"${path()}" failed: `) } };
    expect(await createPodmanApi(path()).call('GET', '/info', { signal: never })).toMatchObject(failed);
  });

  test('that is cancelled ends at once, and closes its connection', async () => {
    const cancel = new AbortController();
    answer = () => cancel.abort();
    expect(await createPodmanApi(path()).call('GET', '/info', { signal: cancel.signal })).toMatchObject({ failure: { reason: 'Aborted' } });
    expect(await createPodmanApi(path()).call('GET', '/info', { signal: cancel.signal })).toMatchObject({ failure: { reason: 'Aborted' } });
    await closed();
  });

  test('sends its document with a length, and nothing without one', async () => {
    const requests: string[] = [];
    answer = (socket, request) => {
      requests.push(request);
      socket.write(json('201 Created', '{}'));
    };
    const api = createPodmanApi(path());
    await api.call('POST', '/create', { signal: never, body: { name: 'ä' } });
    await api.call('POST', '/start', { signal: never });
    expect(requests).toEqual([
      expect.stringMatching(/^POST \/create HTTP\/1\.1\r\n[^]*content-length: 13[^]*\r\n\r\n\{"name":"ä"\}$/),
      expect.stringMatching(/^POST \/start HTTP\/1\.1\r\n[^]*content-length: 0[^]*\r\n\r\n$/i),
    ]);
    await closed();
  });

  test.each([
    ['ENOENT', 'other.sock', /does not respond at .*; start it with "systemctl enable --now podman.socket"$/],
    ['ENOTDIR', 'podman.sock/x', /failed: connect ENOTDIR/],
  ])('without a socket (%s) says what to do', async (_code, name, message) => {
    const failed = { failure: { reason: 'RuntimeUnreachable', message: expect.stringMatching(message) } };
    expect(await createPodmanApi(join(dir, name)).call('GET', '/info', { signal: never })).toMatchObject(failed);
  });
});

describe('a stream', () => {
  test('has no time limit, and ends with its connection when nobody reads it any more', async () => {
    answer = (socket) => void socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n');
    const opened = await createPodmanApi(path()).open('GET', '/events', never);
    if (!opened.ok) throw new Error(opened.failure.message);
    for await (const chunk of opened.value) {
      expect(chunk.toString()).toBe('one');
      break;
    }
    await closed();
  });

  test('that breaks throws to its reader', async () => {
    answer = (socket) => void socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n');
    const opened = await createPodmanApi(path()).open('GET', '/events', never);
    if (!opened.ok) throw new Error(opened.failure.message);
    const read = async (): Promise<void> => {
      for await (const chunk of opened.value) expect(chunk.toString()).toBe('one');
    };
    await expect(read()).rejects.toThrow('aborted');
  });

  test('that is cancelled ends', async () => {
    const cancel = new AbortController();
    answer = (socket) => void socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n');
    const opened = await createPodmanApi(path()).open('GET', '/events', cancel.signal);
    if (!opened.ok) throw new Error(opened.failure.message);
    const read = async (): Promise<void> => {
      for await (const chunk of opened.value) if (chunk.length > 0) cancel.abort();
    };
    await expect(read()).rejects.toThrow('aborted');
    await closed();
  });
});

test.each([
  ['podman', 'HTTP/1.1 200 OK\r\nLibpod-API-Version: 4.3.1\r\ncontent-length: 2\r\n\r\nOK', true],
  ['another engine', 'HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\ncontent-length: 2\r\n\r\nOK', false],
  ['an error', 'HTTP/1.1 500 Oops\r\nLibpod-API-Version: 4.3.1\r\ncontent-length: 0\r\n\r\n', false],
])('a ping finds %s', async (_who, text, answers) => {
  answer = (socket) => void socket.write(text);
  expect(await podmanAnswers(path())).toBe(answers);
  await closed();
});

/** All connections of clients are closed. */
async function closed(): Promise<void> {
  while (sockets.size > 0) await new Promise((resolve) => setTimeout(resolve, 10));
}
