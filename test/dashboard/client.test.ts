import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient } from '../../dashboard/src/io/client.ts';

const real = globalThis.fetch;
const realSocket = globalThis.WebSocket;
afterEach(() => {
  globalThis.fetch = real;
  globalThis.WebSocket = realSocket;
  Reflect.deleteProperty(globalThis, 'location');
});

/** Answers in turn: `lost` is what browsers throw when the network fails. Returns the requests that were sent. */
function answering(...answers: readonly ('lost' | number)[]): string[] {
  const sent: string[] = [];
  globalThis.fetch = async (input, init) => {
    const answer = answers[sent.length];
    sent.push(`${init?.method} ${typeof input === 'string' ? input : ''}`);
    if (answer === 'lost' || answer === undefined) throw new TypeError('Failed to fetch');
    return await Promise.resolve(new Response('{"fine":true}', { status: answer }));
  };
  return sent;
}

test('a WebSocket carries the token as a subprotocol', () => {
  const opened: unknown[] = [];
  Reflect.set(globalThis, 'location', { origin: 'https://gpu.example.com' });
  Reflect.set(globalThis, 'WebSocket', function open(...given: unknown[]) {
    opened.push(given);
  });
  const client = createClient(() => undefined);
  client.openSocket('/v1/realtime?model=stt');
  client.setToken(' svc_1 ');
  client.openSocket('/v1/realtime');
  expect(opened).toEqual([
    ['wss://gpu.example.com/v1/realtime?model=stt', ['realtime']],
    ['wss://gpu.example.com/v1/realtime', ['realtime', 'openai-insecure-api-key.svc_1']],
  ]);
});

describe('a request that the network lost', () => {
  const client = createClient(() => undefined);
  const signal = AbortSignal.abort();

  test('is sent once more where it changes nothing', async () => {
    const read = answering('lost', 200);
    expect(await client.fetchJson('/api/models')).toEqual({ fine: true });
    expect(read).toEqual(['GET /api/models', 'GET /api/models']);
    const planned = answering('lost', 200);
    expect(await client.fetchJson('/api/plan', { method: 'POST', body: {} })).toEqual({ fine: true });
    expect(planned).toHaveLength(2);
    const asked = answering('lost', 200);
    expect((await client.fetch('/v1/chat/completions', { method: 'POST', mayRepeat: true })).status).toBe(200);
    expect(asked).toHaveLength(2);
  });

  test.each([
    ['changes something', 'lost', { method: 'PATCH', body: {} }, 'Failed to fetch', 1],
    ['was given up', 'lost', { signal }, 'Failed to fetch', 1],
    ['is lost again', 'lost', {}, 'Failed to fetch', 2],
    ['is refused', 500, {}, '500', 1],
  ] as const)('fails where it %s', async (_what, answer, options, message, times) => {
    const sent = answering(answer, answer, 200);
    await expect(client.fetchJson('/api/models', options)).rejects.toThrow(message);
    expect(sent).toHaveLength(times);
  });
});
