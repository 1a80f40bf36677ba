/** Slots on other machines as the loop sees them, with servers that answer badly, slowly, or not at all. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createClock } from '../../src/platform/clock.ts';
import type { ObservedWorkload, Runtime } from '../../src/reconciler/ports.ts';
import { createLinks } from '../../src/remote/remote-link.ts';
import { withRemotes } from '../../src/remote/remote-runtime.ts';
import { parseSlot } from '../../src/schema/slot/slot-spec.ts';
import { SlotName, Revision } from '../../src/schema/words/names.ts';
import { eventually } from '../support/eventually.ts';
import { makeCertificate, openDoor, type Certificate } from '../support/https-door.ts';
import { createInMemoryRuntime } from '../support/in-memory/in-memory-runtime.ts';

const SIGNAL = new AbortController().signal;
const ended = new AbortController();
const closing: (() => unknown)[] = [];
let dir = '';
let certificates: readonly Certificate[] = [];

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-remote-'));
  certificates = await Promise.all([
    makeCertificate(dir, 'sound'),
    makeCertificate(dir, 'expired', { from: '20200101000000Z', until: '20200201000000Z' }),
    makeCertificate(dir, 'early', { from: '20900101000000Z', until: '20910101000000Z' }),
  ]);
}, 60_000);
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});
afterAll(async () => {
  ended.abort();
  await rm(dir, { recursive: true, force: true });
});

/** Answers each connection with these bytes, and leaves it open. */
async function serve(write: (socket: Socket, request: string) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', (bytes) => write(socket, bytes.toString()));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return portOf(server.address());
}

function portOf(address: ReturnType<ReturnType<typeof createServer>['address']>): number {
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

const OTHERS: Runtime = createInMemoryRuntime({ clock: createClock() });

async function apply(remote: Readonly<Record<string, unknown>>, options: Parameters<typeof withRemotes>[1] = {}) {
  const parsed = parseSlot(SlotName.parse('big'), { provider: 'remote', model: { default: 'm' }, remote });
  if (!parsed.ok || parsed.spec.remote === undefined) throw new Error(JSON.stringify(parsed));
  const runtime = withRemotes(OTHERS, options);
  let wakes = 0;
  runtime.changes(() => (wakes += 1), ended.signal);
  const id = await runtime.apply(
    {
      name: 'svc-slot-big',
      slot: SlotName.parse('big'),
      revision: Revision.parse('0123456789ab'),
      generation: 1,
      remote: parsed.spec.remote,
      image: undefined,
      argv: ['remote'],
      env: {},
      mounts: [],
      devices: [],
      port: { host: 1, container: 1 },
      memoryLimitBytes: undefined,
    },
    SIGNAL,
  );
  if (!id.ok) throw new Error('not applied');
  const stop = async () => await runtime.stop(id.value, { graceMs: 0 }, SIGNAL);
  closing.push(stop);
  const look = async (): Promise<ObservedWorkload | undefined> => {
    const facts = await runtime.observe([], SIGNAL);
    return facts.ok ? facts.value.workloads.find((each) => each.id === id.value) : undefined;
  };
  const until = async (reason: string): Promise<ObservedWorkload> => {
    let seen: ObservedWorkload | undefined;
    await eventually(
      `the reason is ${reason}`,
      async () => ((seen = await look()), (seen?.waitingReason?.reason ?? 'none') === reason),
      15_000,
    );
    if (seen === undefined) throw new Error('gone');
    return seen;
  };
  return { runtime, look, until, stop, wakes: () => wakes };
}

const head = (status: string, more = ''): string => `HTTP/1.1 ${status}\r\n${more}\r\n`;
const LIST = '{"data":[{"id":"m"}]}';
const list = (body: string): string => `${head('200 OK', `content-length: ${Buffer.byteLength(body)}\r\n`)}${body}`;

test('a server that lists the model is running, and the loop is woken for it', async () => {
  let request = '';
  const port = await serve((socket, asked) => {
    request = asked;
    socket.end(list(LIST));
  });
  const remote = await apply({ url: `http://127.0.0.1:${port}/prefix/v1/`, private: true });
  expect((await remote.look())?.phase).toBe('created');
  const seen = await remote.until('none');
  expect(seen).toMatchObject({ phase: 'running', endpoints: [{ host: '127.0.0.1', port, link: { private: true } }], slot: 'big' });
  expect(remote.wakes()).toBe(1);
  expect(request).toMatch(new RegExp(`^GET /prefix/v1/models HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n`, 'i'));
  await remote.stop();
  expect(await remote.look()).toBeUndefined();
  expect(await remote.stop()).toEqual({ ok: true, value: undefined });
});

describe('A server that answers badly makes the slot wait:', () => {
  test.each<[string, (socket: Socket) => void, string, RegExp]>([
    ['a web page', (socket) => socket.end(list('<html>')), 'RemoteUnusable', /web page/],
    ['401', (socket) => socket.end(head('401 Unauthorized', 'content-length: 0\r\n')), 'RemoteRefuses', /status 401/],
    [
      'a redirect',
      (socket) => socket.end(head('302 Found', 'location: http://other.example/x\r\ncontent-length: 0\r\n')),
      'RemoteUnusable',
      /other\.example/,
    ],
    ['a list without an end', (socket) => void flood(socket, '{"id":"another"},'), 'RemoteUnusable', /more than 1048576 bytes/],
    ['a name of 10 MB', (socket) => void flood(socket, 'x'.repeat(1000)), 'RemoteUnusable', /more than 1048576 bytes/],
    ['nothing', () => undefined, 'RemoteUnreachable', /no complete answer within 5 s/],
    ['headers, slowly', (socket) => void trickle(socket), 'RemoteUnreachable', /no complete answer within 5 s/],
    [
      'half of a list',
      (socket) => socket.end(`${head('200 OK', 'content-length: 99\r\n')}{"data":[`),
      'RemoteUnreachable',
      /cannot be read/,
    ],
    ['no HTTP', (socket) => socket.end('220 mail.example ESMTP\r\n\r\n'), 'RemoteUnreachable', /cannot be read/],
  ])(
    '%s',
    async (_what, write, reason, message) => {
      const port = await serve(write);
      const remote = await apply({ url: `http://127.0.0.1:${port}`, private: true });
      const seen = await remote.until(reason);
      expect(seen).toMatchObject({ phase: 'created', endpoints: [], waitingReason: { message: expect.stringMatching(message) } });
    },
    20_000,
  );
});

function flood(socket: Socket, piece: string): void {
  socket.write(`${head('200 OK', 'transfer-encoding: chunked\r\n')}8000000\r\n{"data":["`);
  const more = (): void => {
    while (!socket.destroyed && socket.write(piece.repeat(100)));
  };
  socket.on('drain', more);
  more();
}

function trickle(socket: Socket): void {
  const text = head('200 OK', 'x-slow: yes\r\n'.repeat(100));
  let at = 0;
  const timer = setInterval(() => (socket.destroyed ? clearInterval(timer) : socket.write(text[at++] ?? 'x')), 100);
}

test('a model that is renamed there takes the endpoint away, and it comes back with its name', async () => {
  let name = 'm';
  const port = await serve((socket) => socket.end(list(`{"data":[{"id":"${name}"}]}`)));
  const remote = await apply({ url: `http://127.0.0.1:${port}/v1`, private: true });
  await remote.until('none');
  name = 'renamed';
  expect((await remote.until('RemoteLacksModel')).waitingReason?.message).toContain('it has "renamed"');
  name = 'm';
  await remote.until('none');
  expect(remote.wakes()).toBe(3);
}, 30_000);

describe('An address that is not public needs "private":', () => {
  test.each([
    ['an address', '127.0.0.1', /"127\.0\.0\.1" is not public: set "remote\.private"/],
    ['the same in another form', '[::1]', /"::1" is not public/],
    ['link-local, as the metadata of clouds', '169.254.169.254', /not public/],
    ['a name of this machine', 'localhost', /an address of "localhost", is not public/],
  ])('%s', async (_what, host, message) => {
    let connections = 0;
    const port = await serve(() => (connections += 1));
    const remote = await apply({ url: `http://${host}:${port}/v1` });
    expect((await remote.until('RemoteUntrusted')).waitingReason?.message).toMatch(message);
    expect(connections).toBe(0);
  });

  test('a public one does not', async () => {
    const port = await serve((socket) => socket.end(list(LIST)));
    const remote = await apply({ url: `http://127.0.0.1:${port}/v1` }, { links: createLinks(() => true) });
    await remote.until('none');
  });
});

describe('TLS:', () => {
  const behind = async (
    certificate: Certificate | undefined,
    { host = 'localhost', ...rest }: Readonly<Record<string, string | undefined>>,
  ) => {
    if (certificate === undefined) throw new Error('not made');
    const server = createHttpServer((_request, response) => response.end(LIST)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const door = await openDoor(`http://127.0.0.1:${portOf(server.address())}`, certificate, 'secret');
    closing.push(async () => {
      await door.close();
      server.closeAllConnections();
      server.close();
    });
    const file = path.join(dir, 'token');
    await writeFile(file, 'secret\n');
    const url = `https://${host}:${door.port}/v1`;
    return { door, remote: await apply({ url, private: true, credentialFile: file, ...rest }) };
  };

  test('the file of a certificate authority, or a fingerprint, makes a server trusted', async () => {
    const [sound] = certificates;
    for (const more of [
      { caFile: sound?.certFile },
      { fingerprint: sound?.fingerprint },
      { fingerprint: sound?.fingerprint, host: '127.0.0.1' },
    ]) {
      const { remote } = await behind(sound, more);
      await remote.until('none');
    }
  });

  test.each<[string, number, object, RegExp]>([
    ['nobody signed it', 0, {}, /DEPTH_ZERO_SELF_SIGNED_CERT; .* "remote\.fingerprint" to "sha256:[0-9a-f]{64}"/],
    ['it is for another name', 0, { host: '127.0.0.1', caFile: 'sound' }, /it is one of DNS:localhost/],
    ['it has expired', 1, { caFile: 'expired' }, /valid until .*2020.*, if the clock here is right/],
    ['it is not valid yet, or a clock is wrong', 2, { caFile: 'early' }, /valid from .*2090.*, if the clock here is right/],
    [
      'its fingerprint is another one',
      0,
      { fingerprint: `sha256:${'00'.repeat(32)}` },
      /has the fingerprint "sha256:[0-9a-f]{64}", and not/,
    ],
  ])('a certificate is refused before anything is sent: %s', async (_what, which, more, message) => {
    const files = Object.fromEntries(
      Object.entries(more).map(([key, value]) => [key, key === 'caFile' ? path.join(dir, `${value}.pem`) : value]),
    );
    const { door, remote } = await behind(certificates[which], files);
    expect((await remote.until('RemoteUntrusted')).waitingReason?.message).toMatch(message);
    expect(door.requests()).toBe(0);
  });

  test.each<[string, object, RegExp]>([
    ['no file with certificates', { caFile: '/nowhere/ca.pem' }, /"remote\.ca_file" cannot be read \(ENOENT\)/],
    ['no file with a token', { credentialFile: '/nowhere/token' }, /"remote\.credential_file" cannot be read \(ENOENT\)/],
    ['a file that is no token', { credentialFile: import.meta.filename }, /has no token/],
  ])('%s is a problem that names the key', async (_what, more, message) => {
    const { door, remote } = await behind(certificates[0], {
      fingerprint: certificates[0]?.fingerprint,
      ...more,
      ...('caFile' in more ? { fingerprint: undefined } : {}),
    });
    expect((await remote.until('RemoteUntrusted')).waitingReason?.message).toMatch(message);
    expect(door.requests()).toBe(0);
  });
});

test('a machine that does not answer is woken, and no longer once it does', async () => {
  const listener = createSocket('udp4');
  const packets: Buffer[] = [];
  listener.on('message', (packet) => packets.push(packet));
  listener.bind(0, '127.0.0.1');
  await once(listener, 'listening');
  closing.push(() => void listener.close());
  let isUp = false;
  const port = await serve((socket) => socket.end(isUp ? list(LIST) : head('503 Unavailable', 'content-length: 0\r\n')));
  const wakeTo = { host: '127.0.0.1', port: listener.address().port };
  const remote = await apply({ url: `http://127.0.0.1:${port}`, private: true, wake: 'aa:BB:cc:dd:ee:0f' }, { wakeTo });
  await eventually('a packet came', () => packets.length > 0, 5000);
  expect(packets[0]?.toString('hex')).toBe('ff'.repeat(6) + 'aabbccddee0f'.repeat(16));
  isUp = true;
  await remote.until('none');
  const before = packets.length;
  isUp = false;
  await remote.until('RemoteUnreachable');
  expect(packets.length).toBe(before);
}, 30_000);
