/** URLs of media in chats, found in the bytes wherever a model server would find them, and nowhere else. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { JsonBody } from '../../../src/gateway/body/json-body.ts';
import { createChatBody } from '../../../src/gateway/translate/chat-body.ts';
import type { FoundUrl } from '../../../src/gateway/translate/decide/check-media.ts';
import type { FetchImage } from '../../../src/gateway/translate/fetch-image.ts';

/** Finds every URL that is not a `data:` URL, whatever becomes of it. */
function chatBody(onUrl: (url: FoundUrl) => void): JsonBody {
  const settings = { SVC_FETCH_IMAGES: 'https', SVC_BODY_LIMIT: 1e9, SVC_AUDIO_LIMIT: 1e9 } as const;
  return createChatBody({
    settings,
    fetchImage: async () => ({ ok: false, why: 'nothing is fetched here' }),
    check: (url) => void onUrl(url),
  });
}

function scan(text: string, cuts: readonly number[] = []): Pick<JsonBody, 'status' | 'media'> & { urls: FoundUrl[] } {
  const bytes = Buffer.from(text);
  const urls: FoundUrl[] = [];
  const scanner = chatBody((url) => void urls.push(url));
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]) {
    scanner.feed(bytes.subarray(from, cut));
    from = cut;
  }
  return { status: scanner.status, media: scanner.media, urls };
}

const found = (text: string): string[] => scan(text).urls.map(({ param, url }) => `${param} ${url}`);

/** Where a URL may stand, written out once more, on the parsed body. */
function expectedUrls(body: unknown): string[] {
  const seen: string[] = [];
  const field = (value: unknown, key: string): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
  const items = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  const url = (value: unknown, param: string): void => {
    if (typeof value === 'string' && !value.toLowerCase().startsWith('data:')) seen.push(`${param} ${value}`);
  };
  const media = (part: unknown, param: string): void => {
    for (const key of ['image_url', 'video_url', 'audio_url', 'file_url']) {
      url(field(part, key), `${param}.${key}`);
      url(field(field(part, key), 'url'), `${param}.${key}.url`);
    }
    url(field(field(part, 'source'), 'url'), `${param}.source.url`);
  };
  const parts = (value: unknown, param: string): void =>
    items(value).forEach((part, index) => {
      media(part, `${param}[${index}]`);
      items(field(part, 'content')).forEach((inner, at) => media(inner, `${param}[${index}].content[${at}]`));
    });
  items(field(body, 'messages')).forEach((message, index) => parts(field(message, 'content'), `messages[${index}].content`));
  items(field(body, 'input')).forEach((item, index) => {
    media(item, `input[${index}]`);
    parts(field(item, 'content'), `input[${index}].content`);
    parts(field(item, 'output'), `input[${index}].output`);
  });
  return seen;
}

const leaf = fc.constantFrom<unknown>(
  'http://a/b',
  'https://é"\\.test',
  'data:image/png;base64,AA',
  'DATA:,',
  '',
  'dat',
  null,
  1,
  true,
  'file:///etc/passwd',
);
const name = fc.constantFrom('image_url', 'url', 'source', 'content', 'output', 'type', 'file_url', 'text', 'messages', '__proto__');
const { value: tree } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 7, withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3, noNullPrototype: true }),
    fc.dictionary(fc.constantFrom('image_url', 'source', 'content'), tie('value'), { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
  ),
}));
const body = fc.record(
  { model: fc.constant('m'), messages: fc.array(fc.record({ content: fc.array(tree) })), input: tree, tools: tree },
  { requiredKeys: [] },
);

/** Writes JSON with some characters as escapes. */
function write(value: unknown, escapes: readonly boolean[], spaces: string): string {
  let count = 0;
  const text = JSON.stringify(value, null, spaces);
  return text.replace(/"(?:[^"\\]|\\.)*"/g, (quoted) =>
    quoted.replace(/\\.|[a-z:/]/gu, (unit) => {
      count += 1;
      return unit.length === 1 && escapes[count % escapes.length] === true
        ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
        : unit;
    }),
  );
}

describe('createChatBody()', () => {
  test('finds what JSON.parse finds, in the same order, wherever the body is cut and however it is escaped', () => {
    const written = fc.tuple(body, fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }), fc.constantFrom('', ' '));
    fc.assert(
      fc.property(written, fc.array(fc.nat({ max: 3000 }), { maxLength: 8 }), ([value, escapes, spaces], cuts) => {
        const text = write(value, escapes, spaces);
        const { status, urls } = scan(text, cuts);
        expect(status).toBe('done');
        const bytes = Buffer.from(text);
        expect(urls.map(({ from, to }) => JSON.parse(bytes.toString('utf8', from, to)))).toEqual(urls.map(({ url }) => url));
        expect(urls.map(({ param, url }) => `${param} ${url}`).toSorted()).toEqual(expectedUrls(JSON.parse(text)).toSorted());
      }),
      { numRuns: 3000 },
    );
  });

  test.each([
    [
      'Chat Completions',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'Hi' },
              { type: 'image_url', image_url: { url: 'http://a' } },
            ],
          },
        ],
      },
      'messages[0].content[1].image_url.url',
    ],
    [
      'the Responses API',
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'http://a' }] }] },
      'input[0].content[0].image_url',
    ],
    [
      'a result of a tool in the Responses API',
      { input: [{ type: 'function_call_output', output: [{ type: 'input_image', image_url: 'http://a' }] }] },
      'input[0].output[0].image_url',
    ],
    [
      'the Messages API',
      { messages: [{ content: [{ type: 'image', source: { type: 'url', url: 'http://a' } }] }] },
      'messages[0].content[0].source.url',
    ],
    [
      'a result of a tool in the Messages API',
      { messages: [{ content: [{ type: 'tool_result', content: [{ type: 'image', source: { url: 'http://a' } }] }] }] },
      'messages[0].content[0].content[0].source.url',
    ],
  ])('knows the form of %s', (_what, value, param) => {
    expect(found(JSON.stringify(value))).toEqual([`${param} http://a`]);
  });

  test.each([
    ['in a text', { messages: [{ content: 'See {"image_url":{"url":"http://a"}}' }] }],
    [
      'in the arguments of a tool',
      { messages: [{ content: [{ type: 'tool_use', input: { image_url: 'http://a', source: { url: 'http://a' } } }] }] },
    ],
    [
      'in a schema of a tool',
      { tools: [{ function: { parameters: { properties: { image_url: { default: 'http://a', url: 'http://a' } } } } }] },
    ],
    ['in a citation', { messages: [{ content: 'a', annotations: [{ url_citation: { url: 'http://a' } }] }] }],
    ['in metadata', { metadata: { image_url: 'http://a' } }],
  ])('passes over a URL %s, which no server fetches', (_where, value) => {
    expect(found(JSON.stringify(value))).toEqual([]);
  });

  const part = (value: object) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, value] }] });
  const DATA = 'data:image/png;base64,AAAA';
  test.each<[string, object, Record<string, string>]>([
    ['an image', part({ type: 'image_url', image_url: { url: DATA } }), { vision: 'messages[0].content[1].image_url' }],
    ['an image of the Responses API', { input: [{ content: [{ image_url: DATA }] }] }, { vision: 'input[0].content[0].image_url' }],
    [
      'an image of the Messages API',
      part({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }),
      { vision: 'messages[0].content[1].source.media_type' },
    ],
    [
      'a recording',
      part({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
      { audio: 'messages[0].content[1].input_audio' },
    ],
    ['a recording by URL', part({ type: 'audio_url', audio_url: { url: 'data:,' } }), { audio: 'messages[0].content[1].audio_url' }],
    ['a document of the Messages API', part({ source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } }), {}],
    ['text about images', part({ type: 'text', text: '"image_url":{"url":"data:,"}' }), {}],
    ['an image elsewhere', { metadata: { image_url: DATA, input_audio: {} }, tools: [{ input_audio: {} }] }, {}],
  ])('tells that a chat contains %s', (_, value, media) => {
    const text = JSON.stringify(value);
    for (const cut of [0, Math.floor(text.length / 2), text.length - 8])
      expect(Object.fromEntries(scan(text, [cut]).media ?? [])).toEqual(media);
  });

  test('finds each of several keys of the same name', () => {
    expect(
      found('{"messages":[{"content":[{"image_url":"data:,","image_url":{"url":"data:,","url":"http://a"}}]}],"messages":[]}'),
    ).toEqual(['messages[0].content[0].image_url.url http://a']);
  });

  test('does not keep URLs of more than 8 KiB, nor data', () => {
    const long = `http://a/${'x'.repeat(100_000)}`;
    expect(scan(JSON.stringify({ input: [{ image_url: long }] })).urls).toMatchObject([{ url: undefined }]);
    expect(scan(JSON.stringify({ input: [{ image_url: `data:image/png;base64,${'A'.repeat(1e6)}` }] })).urls).toEqual([]);
  });

  test('does not take many times as long for a chat as without looking for media', () => {
    const message = {
      role: 'user',
      content: [
        { type: 'text', text: 'Lorem ipsum dolor sit amet. '.repeat(8) },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(500)}` } },
      ],
    };
    const chat = Buffer.from(JSON.stringify({ model: 'm', messages: Array.from({ length: 100 }, () => message) }));
    const time = (make: () => JsonBody): number => {
      let best = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 60; round += 1) {
        const began = performance.now();
        make().feed(chat);
        best = Math.min(best, performance.now() - began);
      }
      return best;
    };
    const plain = time(() => new JsonBody());
    const looking = time(() => chatBody(() => undefined));
    expect(looking / plain).toBeLessThan(12);
  });
});

/** Resolves to the body as it is sent on, or to the problem with it. */
async function fetchAll(text: string, fetchImage: FetchImage, reserve: (bytes: number) => boolean): Promise<string> {
  const scanner = createChatBody({ settings: { SVC_FETCH_IMAGES: 'https', SVC_BODY_LIMIT: 1e9, SVC_AUDIO_LIMIT: 1e9 }, fetchImage });
  const bytes = Buffer.from(text);
  scanner.feed(bytes);
  let sent = text;
  const replace = (pieces: readonly Buffer[]): void => {
    sent = Buffer.concat(pieces).toString();
  };
  return await new Promise((resolve) => {
    const events = { onRoutable: () => resolve(sent), onProgress: () => undefined, fail: (_code: string, why: string) => resolve(why) };
    scanner.delaysRouting(
      { chunks: [bytes], received: bytes.length, isReleased: false, onRelease: undefined, reserve, replace, edit: () => true },
      events,
    );
  });
}

const chatOf = (...urls: readonly string[]): string =>
  `{ "model": "mé", "messages": [{"content":[${urls.map((url) => `{"type":"image_url", "image_url":{"url":"${url}"}}`).join(' ,')}]}] }`;

test('images take the place of their URLs, and all other bytes stay', async () => {
  const asked: string[] = [];
  const fetchImage: FetchImage = async (url) => {
    asked.push(url);
    return { ok: true, type: 'image/png', bytes: Buffer.from(url.slice(-1)) };
  };
  const [first, second] = ['https://a.test/1', 'https://a.test/2'];
  const sent = await fetchAll(chatOf(first, 'data:,x', second, first), fetchImage, () => true);
  expect(sent).toBe(chatOf('data:image/png;base64,MQ==', 'data:,x', 'data:image/png;base64,Mg==', 'data:image/png;base64,MQ=='));
  expect(asked).toEqual([first, second]);
});

test('memory is reserved for an image and for its text in Base64 before it is read', async () => {
  const reserved: number[] = [];
  const fetchImage: FetchImage = async (_url, { onBytes }) => ({ ok: false, why: onBytes(100) ? 'there was memory' : 'there was none' });
  const message = await fetchAll(chatOf('https://a.test/x'), fetchImage, (bytes) => reserved.push(bytes) === 0);
  expect(message).toContain('there was none');
  expect(reserved[0]).toBeGreaterThanOrEqual(100 + 4 * Math.ceil(100 / 3));
});
