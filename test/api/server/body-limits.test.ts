/** The limit of the body of each route, over HTTP, with the whole table of routes. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { DocumentedRoute } from '../../../src/api/server/define-route.ts';
import { OLLAMA } from '../../../src/gateway/route/decide/dialects.ts';
import { dialectOf } from '../../../src/gateway/route/decide/inference-paths.ts';
import { post, responseOf, begin, errorOf, type Reply } from '../../gateway/support/client.ts';
import { startGateway, until } from '../../gateway/support/gateway-fixture.ts';
import { startWorld, type World } from '../manage/world.ts';

const KIB = 1024;
/** The settings that limit inference requests. */
const SETTINGS = { SVC_BODY_LIMIT: 64 * KIB, SVC_AUDIO_LIMIT: 32 * KIB } as const;
/** Boundaries and fields around a recording. */
const AROUND_RECORDING = 64 * KIB;

let world: World;
let port: number;

beforeAll(async () => {
  const env = Object.fromEntries(Object.entries(SETTINGS).map(([name, bytes]) => [name, String(bytes)]));
  world = await startWorld({ v1: true, env: { ...env, SVC_PARK_TIMEOUT: '50ms' } });
  port = Number(new URL(world.url).port);
});
afterAll(() => world.close());

const nameOf = ({ method, path }: DocumentedRoute): string => `${method} ${path}`;
const pathOf = ({ path }: DocumentedRoute): string =>
  path.replace(':name', 'primary').replace(':id', '1a2b3c4d').replace(':file', 'a.png').replace('*', 'a');

/** Bytes of the largest body that the route takes. */
function largestOf({ bodyLimit, multipart }: DocumentedRoute): number {
  if (typeof bodyLimit === 'number') return bodyLimit;
  return SETTINGS[bodyLimit] + (bodyLimit === 'SVC_AUDIO_LIMIT' && multipart === true ? AROUND_RECORDING : 0);
}

/** JSON of any size, or a form without end. */
function bodyOf({ multipart }: DocumentedRoute, bytes: number): Buffer {
  return Buffer.from(
    multipart === true ? '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'.padEnd(bytes, 'a') : '{}'.padEnd(bytes),
  );
}

const typeOf = ({ multipart }: DocumentedRoute): string => (multipart === true ? 'multipart/form-data; boundary=x' : 'application/json');

async function send(route: DocumentedRoute, bytes: number): Promise<Pick<Reply, 'status' | 'text'>> {
  const headers = { 'content-type': typeOf(route) };
  return await post(port, pathOf(route), bodyOf(route, bytes), { method: route.method, headers });
}

async function sendInChunks(route: DocumentedRoute, bytes: number): Promise<Pick<Reply, 'status' | 'text'>> {
  const req = begin(port, pathOf(route), { 'content-type': typeOf(route), 'transfer-encoding': 'chunked' }, route.method);
  const answered = responseOf(req);
  req.end(bodyOf(route, bytes));
  const res = await answered;
  let text = '';
  for await (const piece of res) text += String(piece);
  return { status: res.statusCode ?? 0, text };
}

/** The error is that of the API that the path belongs to. */
function refusal(route: DocumentedRoute, { status, text }: Pick<Reply, 'status' | 'text'>): string {
  if (status !== 413) return `${nameOf(route)}: ${status}`;
  if (dialectOf(route.path) === OLLAMA) {
    expect(JSON.parse(text)).toEqual({ error: expect.stringMatching(/^The body has more than \d+ bytes/) });
    return `${nameOf(route)}: ${REFUSED}`;
  }
  const { code, message } = errorOf(text);
  const shown: object = JSON.parse(text);
  const shape = dialectOf(route.path).errorBody({ message, type: '', param: null, code, origin: 'gateway' }, status, 'id');
  expect(Object.keys(shown)).toEqual(Object.keys(shape));
  return `${nameOf(route)}: ${status} ${code}`;
}

const REFUSED = '413 request.too_large';

describe('each route', () => {
  test('declares the largest body that it takes', () => {
    expect(world.routes.length).toBeGreaterThan(50);
    for (const route of world.routes) expect([nameOf(route), largestOf(route) > 0]).toEqual([nameOf(route), true]);
  });

  test('takes at most 4 KiB if it is open and no webhook, and a mebibyte under "/api" unless it takes many slots', () => {
    // A webhook lists what was pushed, and its signature covers all of it.
    const webhook = 'POST /api/source/sync';
    for (const route of world.routes.filter(({ access }) => access === 'open')) {
      expect([nameOf(route), largestOf(route)]).toEqual([nameOf(route), (nameOf(route) === webhook ? 256 : 4) * KIB]);
    }
    const larger = world.routes.filter((route) => route.path.startsWith('/api/') && largestOf(route) > KIB * KIB);
    expect(larger.map(nameOf)).toEqual(['POST /api/plan', 'POST /api/apply', 'PUT /api/profiles/:name']);
  });

  test('refuses a body that is a byte larger, in the shape of its API', async () => {
    for (const route of world.routes) {
      expect(refusal(route, await send(route, largestOf(route) + 1))).toBe(`${nameOf(route)}: ${REFUSED}`);
    }
  }, 60_000);

  test('refuses it as well if its length is not announced', async () => {
    for (const route of world.routes.filter(({ method }) => method !== 'GET')) {
      expect(refusal(route, await sendInChunks(route, largestOf(route) + 1))).toBe(`${nameOf(route)}: ${REFUSED}`);
    }
  }, 60_000);

  test('reads a body that is not larger', async () => {
    for (const route of world.routes.filter(({ method }) => method !== 'GET')) {
      const { status } = await send(route, largestOf(route));
      expect([nameOf(route), status]).not.toEqual([nameOf(route), 413]);
    }
  }, 60_000);
});

test('all bodies count against "SVC_BUFFER_LIMIT" until their answers are sent', async () => {
  let answer: ((value: object) => void) | undefined;
  const gateway = await startGateway({
    settings: { SVC_BUFFER_LIMIT: '100Ki' },
    routes: [
      {
        method: 'POST',
        path: '/api/slow',
        access: 'all',
        summary: '',
        tag: '',
        handler: async () => await new Promise((resolve) => (answer = resolve)),
      },
    ],
  });
  const body = '{}'.padEnd(60 * KIB);
  const first = post(gateway.port, '/api/slow', body);
  await until(() => answer !== undefined);
  expect(gateway.gateway.budget.reservedBytes()).toBe(body.length);
  const second = await post(gateway.port, '/api/slow', body);
  expect([second.status, errorOf(second.text).code]).toEqual([503, 'server.overloaded']);
  expect(gateway.gateway.budget.reservedBytes()).toBe(body.length);
  answer?.({ done: true });
  expect((await first).text).toBe('{"done":true}');
  await until(() => gateway.gateway.budget.reservedBytes() === 0);
  await gateway.close();
});
