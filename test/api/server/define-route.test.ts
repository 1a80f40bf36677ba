import { get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { empty, json } from '../../../src/api/server/answer.ts';
import { defineRoute } from '../../../src/api/server/define-route.ts';
import { startGateway, type GatewayFixture } from '../../gateway/support/gateway-fixture.ts';

const facts = { tag: '', summary: '' } as const;
const Named = z.object({ name: z.string() });

const greet = defineRoute('POST', '/test/greet/:id', 'open', {
  ...facts,
  input: z.object({
    params: z.object({ id: z.coerce.number() }),
    query: z.strictObject({ loud: z.enum(['0', '1']).default('0') }),
    headers: z.object({ 'x-greeting': z.string().optional() }),
    body: z.strictObject({ name: z.string().optional() }),
  }),
  answers: { 200: json('A greeting', Named, { ETag: '' }), 204: empty('Nobody') },
  handler: ({ params, query, headers, body }) =>
    body.name === undefined
      ? { status: 204, body: undefined }
      : { status: 200, body: { name: `${headers['x-greeting'] ?? ''} ${body.name} ${params.id} ${query.loud}` }, headers: { etag: '"1"' } },
});

const Items = z.object({ items: z.array(z.string()), next: z.null() });
const count = defineRoute('GET', '/test/count/:to', 'open', {
  ...facts,
  cors: true,
  input: z.object({ params: z.object({ to: z.coerce.number() }) }),
  answers: { 200: json('Numbers', Items) },
  handler: ({ params }) => ({ status: 200, body: { items: Array.from({ length: params.to }, (_, index) => `item ${index}`), next: null } }),
});

// The compiler refuses each of these handlers: "npm run check" fails if it does not.
defineRoute('POST', '/', 'open', {
  ...facts,
  input: z.object({}),
  answers: { 200: json('', Named) },
  // @ts-expect-error: the body has another type
  handler: () => ({ status: 200, body: { name: 1 } }),
});
defineRoute('POST', '/', 'open', {
  ...facts,
  input: z.object({}),
  answers: { 200: json('', Named) },
  // @ts-expect-error: the status is not declared
  handler: () => ({ status: 201, body: { name: 'a' } }),
});
defineRoute('POST', '/', 'open', {
  ...facts,
  input: z.object({ body: Named }),
  answers: { 204: empty('') },
  // @ts-expect-error: the input has no such field
  handler: ({ body }) => ({ status: 204, body: body.other }),
});

let gateway: GatewayFixture;
beforeAll(async () => {
  gateway = await startGateway({ routes: [greet, count] });
});
afterAll(() => gateway.close());

async function post(path: string, body?: string): Promise<{ status: number; etag: string | null; body: unknown }> {
  const headers = { 'x-greeting': 'Hello', ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
  const response = await fetch(`${gateway.url}/test/greet/${path}`, { method: 'POST', headers, ...(body === undefined ? {} : { body }) });
  const text = await response.text();
  return { status: response.status, etag: response.headers.get('etag'), body: text === '' ? undefined : JSON.parse(text) };
}

describe('defineRoute()', () => {
  test('gives the handler all parts of the request parsed, and sends what it returns', async () => {
    expect(await post('7?loud=1', '{"name":"Ada"}')).toEqual({ status: 200, etag: '"1"', body: { name: 'Hello Ada 7 1' } });
    expect(await post('7')).toEqual({ status: 204, etag: null, body: undefined });
  });

  test.each([
    ['a path', 'seven', '{}', 'id'],
    ['a query', '7?loud=2', '{}', 'loud'],
    ['an unknown query', '7?quiet=1', '{}', 'quiet'],
    ['a field', '7', '{"name":1}', 'name'],
    ['an unknown field', '7', '{"nom":"Ada"}', 'nom'],
    ['a body that is not a table', '7', '[]', 'body'],
  ])('names %s that does not match', async (_what, path, body, param) => {
    expect(await post(path, body)).toMatchObject({ status: 400, body: { error: { code: 'request.invalid', param } } });
  });
});

describe('A long list', () => {
  const read = async (to: number, encoding: string) => {
    // Without fetch(), which would decode it.
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      get(`${gateway.url}/test/count/${to}`, { headers: encoding === '' ? {} : { 'accept-encoding': encoding } }, resolve).on(
        'error',
        reject,
      );
    });
    const { headers } = answer;
    return { headers, bytes: await buffer(answer) };
  };

  test.each(['gzip', 'br, gzip;q=0.5'])('is compressed for a client that accepts "%s"', async (encoding) => {
    const { headers, bytes } = await read(5000, encoding);
    expect(headers).toMatchObject({ 'content-encoding': 'gzip', vary: expect.stringContaining('Accept-Encoding') });
    const { items } = Items.parse(JSON.parse(gunzipSync(bytes).toString()));
    expect([items.length, items.at(-1)]).toEqual([5000, 'item 4999']);
    expect(bytes.length).toBeLessThan((await read(5000, '')).bytes.length / 3);
  });

  test.each(['', 'br', 'gzip;q=0', 'identity'])('is not for one that accepts "%s"', async (encoding) => {
    const { headers, bytes } = await read(5000, encoding);
    expect(headers).not.toHaveProperty('content-encoding');
    expect(Items.parse(JSON.parse(bytes.toString())).items).toHaveLength(5000);
  });

  test('a short one is sent as it is', async () => {
    expect((await read(3, 'gzip')).headers).not.toHaveProperty('content-encoding');
  });
});
