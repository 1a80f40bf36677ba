/** Chats that name images by URL: no model server ever gets such a URL. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { PARK, publish, slotName } from './support/board-fixture.ts';
import { begin, CHAT, errorOf, post, responseOf } from './support/client.ts';
import { sendJson, startUpstream, type FakeUpstream } from './support/fake-upstream.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const MIB = 1024 * 1024;
const PIXEL = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=';
let gateway: GatewayFixture;
let upstream: FakeUpstream;

beforeEach(async () => {
  gateway = await startGateway();
  upstream = await startUpstream({ answer: (_request, res) => sendJson(res, 200, { choices: [] }) });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
});
afterEach(async () => {
  await gateway.close();
  await upstream.kill();
  expect(gateway.gateway.load()).toMatchObject({ requests: 0, bufferedBytes: 0 });
});

const chatOf = (url: string, more: object = {}): string =>
  JSON.stringify({ model: 'primary', ...more, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] });

describe('a chat with an image', () => {
  test('as data is passed on byte for byte', async () => {
    const body = chatOf(PIXEL);
    expect((await post(gateway.port, CHAT, body)).status).toBe(200);
    expect(upstream.seen[0]?.body.toString()).toBe(body);
  });

  test.each([
    [
      '/v1/chat/completions',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://169.254.169.254/' } }] }] },
      'messages[0].content[0].image_url.url',
    ],
    [
      '/v1/responses',
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'http://169.254.169.254/' }] }] },
      'input[0].content[0].image_url',
    ],
    [
      '/v1/messages',
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'http://169.254.169.254/' } }] }] },
      'messages[0].content[0].source.url',
    ],
    [
      '/v1/messages/count_tokens',
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'http://169.254.169.254/' } }] }] },
      'messages[0].content[0].source.url',
    ],
  ])('by URL on %s is refused before a server sees it', async (path, body, param) => {
    const reply = await post(gateway.port, path, JSON.stringify({ model: 'primary', ...body }));
    expect([reply.status, errorOf(reply.text)]).toMatchObject([
      400,
      {
        code: 'request.invalid',
        param,
        message: 'The service does not fetch "http://169.254.169.254/" ("SVC_FETCH_IMAGES"): send images as "data:" URLs',
      },
    ]);
    expect(upstream.seen.length).toBe(0);
  });

  test.each([
    ['https', 'https://example.com/a.png'],
    ['a scheme in capitals', 'HTTP://example.com/a.png'],
    ['a path', 'file:///etc/passwd'],
    ['another scheme', 'ftp://example.com'],
    ['white space', ' http://example.com'],
    ['no scheme', '//example.com/a.png'],
  ])('by URL with %s is refused', async (_what, url) => {
    expect((await post(gateway.port, CHAT, chatOf(url))).status).toBe(400);
  });

  test.each([
    [
      'of the keys',
      (text: string) =>
        text.replace('messages', '\\u006d\\u0065\\u0073\\u0073\\u0061\\u0067\\u0065\\u0073').replace('image_url":{', '\\u0069mage_url":{'),
    ],
    ['of the scheme', (text: string) => text.replace('http:', '\\u0068\\u0074tp:')],
    ['of slashes', (text: string) => text.replaceAll('/', '\\/')],
  ])('by URL with escapes %s is refused', async (_what, escape) => {
    const body = escape(chatOf('http://a/b'));
    expect(JSON.parse(body)).toEqual(JSON.parse(chatOf('http://a/b')));
    expect((await post(gateway.port, CHAT, body)).status).toBe(400);
    expect(upstream.seen.length).toBe(0);
  });

  test.each([
    ['while it flows', false],
    ['in chunks, while it flows', true],
  ])('by URL at the end of a large body is refused %s', async (_how, chunked) => {
    const body = chatOf('http://a/b', { pad: 'x'.repeat(4 * MIB) });
    const req = begin(gateway.port, CHAT, chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': body.length });
    const answered = responseOf(req);
    req.end(body);
    expect((await answered).statusCode).toBe(400);
    expect(upstream.seen.length).toBe(0);
  });

  test('by URL is refused also if its slot is still loading', async () => {
    publish(gateway.board, { name: 'primary', admission: PARK });
    const body = chatOf('http://a/b', { pad: 'x'.repeat(4 * MIB) });
    expect((await post(gateway.port, CHAT, body)).status).toBe(400);
    await until(() => gateway.traffic.ofSlot(slotName('primary')).parked === 0);
  });

  test('by URL gives the official SDK a typed error', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const content = [{ type: 'image_url', image_url: { url: 'https://example.com/cat.png' } }] as const;
    const failed = client.chat.completions.create({ model: 'primary', messages: [{ role: 'user', content: [...content] }] });
    await expect(failed).rejects.toMatchObject({ status: 400, code: 'request.invalid', param: 'messages[0].content[0].image_url.url' });
  });

  test('by URL is no matter of other paths', async () => {
    const body = JSON.stringify({ model: 'primary', input: [{ image_url: 'http://a/b' }] });
    expect((await post(gateway.port, '/v1/embeddings', body)).status).toBe(200);
  });
});
