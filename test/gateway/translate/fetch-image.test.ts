/** Images that chats name by URL: fetched from public addresses within limits, and from nowhere else. 127.0.0.2 stands for the public internet, 127.0.0.1 for a private network. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createAddressCheck } from '../../../src/remote/public-address.ts';
import { createImageFetcher, type FetchedImage } from '../../../src/gateway/translate/fetch-image.ts';
import { publish } from '../support/board-fixture.ts';
import { begin, CHAT, errorOf, post, responseOf } from '../support/client.ts';
import { sendJson, startUpstream, type FakeUpstream } from '../support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from '../support/gateway-fixture.ts';

const MIB = 1024 * 1024;
const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

let server: Server;
let port = 0;
let asked: string[] = [];
let resolved: string[] = [];

const PAGES: Readonly<Record<string, (req: IncomingMessage, res: ServerResponse) => void>> = {
  '/pixel.png': (_req, res) => void res.end(PIXEL),
  '/page': (_req, res) => void res.writeHead(200, { 'content-type': 'image/png' }).end('<html></html>'),
  '/huge': (_req, res) => {
    res.write(PIXEL);
    const piece = Buffer.alloc(64 * 1024);
    const pump = (): void => {
      while (!res.destroyed && res.write(piece));
      res.once('drain', pump);
    };
    pump();
  },
  '/cut': (_req, res) => {
    res.writeHead(200, { 'content-length': 1000 });
    res.write(PIXEL);
    setTimeout(() => res.destroy(), 20);
  },
  '/silent': () => undefined,
  '/redirect': (req, res) => void res.writeHead(302, { location: new URL(req.url ?? '', 'http://a').searchParams.get('to') ?? '' }).end(),
};

beforeEach(async () => {
  asked = [];
  resolved = [];
  server = createServer((req, res) => {
    asked.push(`${req.socket.localAddress} ${req.headers.host} ${req.url}`);
    const page = PAGES[(req.url ?? '').split('?')[0] ?? ''];
    if (page === undefined) res.writeHead(404).end();
    else page(req, res);
  });
  await new Promise<void>((done) => server.listen(0, '0.0.0.0', () => done()));
  const address = server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise<void>((done) => server.close(() => done()));
});

const NAMES: Readonly<Record<string, readonly string[]>> = {
  'images.test': ['127.0.0.2'],
  'private.test': ['127.0.0.1'],
  'both.test': ['127.0.0.2', '127.0.0.1'],
};

const fetcherOf = (policy: 'https' | 'http', limit = MIB) =>
  createImageFetcher({
    settings: { SVC_FETCH_IMAGES: policy, SVC_FETCH_IMAGE_LIMIT: limit },
    isPublic: (address) => address === '127.0.0.2',
    resolve: (name) => {
      resolved.push(name);
      const addresses = NAMES[name];
      return addresses === undefined ? Promise.reject(new Error('ENOTFOUND')) : Promise.resolve(addresses);
    },
  });

function fetchOne(url: string, policy: 'https' | 'http' = 'http'): Promise<FetchedImage> {
  return fetcherOf(policy)(url.replace('PORT', String(port)), { signal: new AbortController().signal, onBytes: () => true });
}

const via = (target: string): string => `http://images.test:PORT/redirect?to=${encodeURIComponent(target)}`;
const here = (path: string): string => `http://images.test:${port}${path}`;

describe('an image by URL', () => {
  test('is fetched from the address that was checked, which is asked for once', async () => {
    expect(await fetchOne('http://images.test:PORT/pixel.png')).toEqual({ ok: true, type: 'image/png', bytes: PIXEL });
    expect([asked, resolved]).toEqual([[`127.0.0.2 images.test:${port} /pixel.png`], ['images.test']]);
  });

  test('is fetched through a few redirects, each of which is checked', async () => {
    expect(await fetchOne(via(here('/pixel.png')))).toMatchObject({ ok: true });
    expect(await fetchOne(via('/pixel.png'))).toMatchObject({ ok: true });
    expect(resolved.length).toBe(4);
  });

  test.each([
    ['is fetched behind three redirects', 3, { ok: true }],
    ['is not fetched behind four redirects', 4, { ok: false, why: 'the server redirects more than 3 times' }],
  ])('%s', async (_, redirects, expected) => {
    let url = here('/pixel.png');
    for (let count = 0; count < redirects; count += 1) url = here(`/redirect?to=${encodeURIComponent(url)}`);
    expect(await fetchOne(url)).toMatchObject(expected);
    expect(asked.length).toBe(4);
  });

  test.each([
    ['at a private name', 'http://private.test:PORT/pixel.png', 'its host has no public address'],
    ['at a name with a private address among others', 'http://both.test:PORT/pixel.png', 'its host has no public address'],
    ['at a name that does not exist', 'http://none.test:PORT/pixel.png', 'its host has no public address'],
    ['at a private address', 'http://127.0.0.1:PORT/pixel.png', 'its host has no public address'],
    ['at a private address in another notation', 'http://2130706433:PORT/pixel.png', 'its host has no public address'],
    ['at a private address in IPv6', 'http://[::ffff:127.0.0.1]:PORT/pixel.png', 'its host has no public address'],
    ['behind a redirect to a private address', via('http://127.0.0.1:1/'), 'its host has no public address'],
    ['behind a redirect to a private name', via('http://private.test/'), 'its host has no public address'],
    ['behind a redirect to a file', via('file:///etc/passwd'), '"file:" is not permitted'],
    ['behind redirects without end', via('/redirect?to=%2Fredirect%3Fto%3D%252Fredirect%253Fto%253D%25252Fredirect'), 'more than 3 times'],
    ['that is missing', 'http://images.test:PORT/none', 'the server answered 404'],
    ['that is a page', 'http://images.test:PORT/page', 'it is no PNG, JPEG, GIF, WebP or BMP image'],
    ['that has no end', 'http://images.test:PORT/huge', 'it has more than 1048576 bytes ("SVC_FETCH_IMAGE_LIMIT")'],
    ['that is cut', 'http://images.test:PORT/cut', ''],
  ])('%s is not fetched', async (_where, url, why) => {
    const image = await fetchOne(url);
    expect(image).toEqual({ ok: false, why: expect.stringContaining(why) });
    expect(asked.filter((line) => !line.startsWith('127.0.0.2 '))).toEqual([]);
  });

  test('without TLS is not fetched unless the setting permits it', async () => {
    expect(await fetchOne('http://images.test:PORT/pixel.png', 'https')).toEqual({ ok: false, why: '"http:" is not permitted' });
    expect(asked).toEqual([]);
  });

  test('of a client that leaves is not fetched any longer', async () => {
    const leaving = new AbortController();
    const image = fetcherOf('http')(`http://images.test:${port}/silent`, { signal: leaving.signal, onBytes: () => true });
    await until(() => asked.length === 1);
    leaving.abort();
    expect(await image).toMatchObject({ ok: false });
  });
});

describe('the check of addresses', () => {
  const isPublic = createAddressCheck(() => ['203.1.2.3', '2a00::5']);
  test.each(['1.1.1.1', '8.8.8.8', '93.184.216.34', '172.32.0.1', '2606:4700::1111', '2a00:1450:4001::8a'])('accepts %s', (address) => {
    expect(isPublic(address)).toBe(true);
  });
  test.each(
    `0.0.0.0 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.1.2.3 168.63.129.16 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.168.1.1 198.18.0.1
    224.0.0.1 255.255.255.255 :: ::1 ::ffff:8.8.8.8 ::ffff:127.0.0.1 64:ff9b::a00:1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 2001::1 2001:db8::1 2002:7f00:1::
    203.1.2.3 2a00::5 localhost 1.1.1`.split(/\s+/),
  )('refuses %s', (address) => {
    expect(isPublic(address)).toBe(false);
  });
});

describe('a chat whose images are fetched', () => {
  let gateway: GatewayFixture;
  let upstream: FakeUpstream;

  beforeEach(async () => {
    const settings = { SVC_FETCH_IMAGES: 'http', SVC_BODY_LIMIT: '3Mi', SVC_BUFFER_LIMIT: '16Mi' };
    gateway = await startGateway({ settings, fetchImage: fetcherOf('http', 4 * MIB) });
    upstream = await startUpstream({ answer: (_request, res) => sendJson(res, 200, { choices: [] }) });
    publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
  });
  afterEach(async () => {
    await gateway.close();
    await upstream.kill();
    expect(gateway.gateway.load()).toMatchObject({ requests: 0, bufferedBytes: 0 });
  });

  const chatOf = (urls: readonly string[], pad = ''): string =>
    `{ "seed": 18446744073709551615, "messages": [{"role":"user","content":[${urls.map((url) => `{"type":"image_url", "image_url":{"url":"${url}"}}`).join(',')}]}], "pad":"${pad}","model":"primary"}`;
  const DATA = `data:image/png;base64,${PIXEL.toString('base64')}`;

  test('gets them as data, and is otherwise passed on byte for byte', async () => {
    const url = here('/pixel.png');
    const reply = await post(gateway.port, CHAT, chatOf([url, DATA, url]));
    expect(reply.status).toBe(200);
    expect(upstream.seen[0]?.body.toString()).toBe(chatOf([DATA, DATA, DATA]));
    expect(asked.length).toBe(1);
  });

  test('of 2 MB gets them too, in chunks and with its model last', async () => {
    const req = begin(gateway.port, CHAT, { 'transfer-encoding': 'chunked' });
    const answered = responseOf(req);
    req.end(chatOf([here('/pixel.png')], 'x'.repeat(2 * MIB)));
    expect((await answered).statusCode).toBe(200);
    expect(upstream.seen[0]?.body.toString() === chatOf([DATA], 'x'.repeat(2 * MIB))).toBe(true);
  });

  test.each([
    [
      'one of them is private',
      [DATA, 'http://127.0.0.1/a.png'],
      'messages[0].content[1].image_url.url',
      'cannot be fetched (its host has no public address)',
    ],
    [
      'there are more than eight',
      Array.from({ length: 9 }, (_, index) => `http://images.test/${index}`),
      'messages[0].content[8].image_url.url',
      'More than 8 images',
    ],
    ['a URL has a password', ['http://a:b@images.test/'], 'messages[0].content[0].image_url.url', 'contains a user or a password'],
    ['a URL is none', ['http://'], 'messages[0].content[0].image_url.url', 'Cannot fetch "http://"'],
  ])('is refused if %s', async (_what, urls, param, message) => {
    const reply = await post(gateway.port, CHAT, chatOf(urls));
    expect([reply.status, errorOf(reply.text)]).toMatchObject([
      400,
      { code: 'request.invalid', param, message: expect.stringContaining(message) },
    ]);
    expect(upstream.seen.length).toBe(0);
  });

  test('is refused if the images are too large together', async () => {
    const big = Buffer.concat([PIXEL, Buffer.alloc(2.5 * MIB)]);
    server.removeAllListeners('request');
    server.on('request', (_req, res) => void res.end(big));
    const reply = await post(gateway.port, CHAT, chatOf([here('/a')]));
    expect([reply.status, errorOf(reply.text).code]).toEqual([413, 'request.too_large']);
  });

  test('of a client that leaves ends at once', async () => {
    const req = begin(gateway.port, CHAT, {});
    req.end(chatOf([here('/silent')]));
    await until(() => asked.length === 1);
    req.destroy();
    await until(() => gateway.gateway.load().requests === 0);
  });
});
