/** Who may open a session of `/v1/realtime`, what becomes of bad input, and when sessions end. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createTokenCheck } from '../../../../src/auth/check-token.ts';
import { startUpstream, sendJson, type FakeUpstream } from '../../../gateway/support/fake-upstream.ts';
import { publish } from '../../../gateway/support/board-fixture.ts';
import { raw } from '../../../gateway/support/client.ts';
import { startGateway, until, type FixtureOptions, type GatewayFixture } from '../../../gateway/support/gateway-fixture.ts';
import { COMPLETED, connectRealtime, silenceOf, toneOf, type RealtimeClient } from '../../../support/realtime-client.ts';

const PATH = '/v1/realtime?intent=transcription';
const KEY = 'openai-insecure-api-key.';

let gateway: GatewayFixture;
let server: FakeUpstream;
const clients: RealtimeClient[] = [];
let gate: Promise<void> | undefined;

beforeEach(async () => {
  gate = undefined;
  server = await startUpstream({
    answer: (_request, res) => void (gate ?? Promise.resolve()).then(() => sendJson(res, 200, { text: 'heard' })),
  });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.ws.terminate();
  await gateway.close();
  await server.kill();
  expect(gateway.faults).toEqual([]);
  await until(() => gateway.gateway.load().bufferedBytes === 0);
  expect(gateway.gateway.load().requests).toBe(0);
});

async function start(options: FixtureOptions = {}): Promise<void> {
  gateway = await startGateway(options);
  publish(
    gateway.board,
    { name: 'stt', model: 'moonshine', capabilities: ['transcription'], targets: [{ workload: 'w', port: server.port }] },
    { name: 'primary', model: 'chatty', capabilities: ['chat'] },
  );
}

async function open(
  protocols: readonly string[] = [],
  headers: Readonly<Record<string, string>> = {},
  path = PATH,
): Promise<RealtimeClient> {
  const client = await connectRealtime(`${gateway.url}${path}`, protocols, { headers });
  clients.push(client);
  await client.waitFor('session.created');
  return client;
}

const refusal = async (...parts: Parameters<typeof open>): Promise<string> => open(...parts).then(() => 'opened', String);

describe('with authentication', () => {
  let valid: Set<string>;
  beforeEach(async () => {
    valid = new Set(['good']);
    const authorize = createTokenCheck(
      { SVC_AUTH_ENABLED: true, SVC_TRUSTED_PROXIES: [], SVC_PROXY_SECRET: undefined, SVC_IDENTITY_ROLES: {} },
      {
        store: { current: () => new Map() },
        verifier: { verify: (token) => (valid.has(token) ? { id: token, key: 'caller', identity: token, scope: 'v1-only' } : undefined) },
        onUse: () => undefined,
      },
    );
    await start({ authorize, settings: { SVC_REALTIME_IDLE: '1s' } });
  });

  test('takes a bearer token, or the key that browsers send as a subprotocol, and never answers with the key', async () => {
    await open([], { authorization: 'Bearer good' });
    const browser = await open(['realtime', `${KEY}good`]);
    expect(browser.ws.protocol).toBe('realtime');
  });

  test.each([
    ['no credential', [], {}, '401', 'auth.required'],
    ['an unknown token', [], { authorization: 'Bearer bad' }, '401', 'auth.invalid'],
    ['an unknown key in a subprotocol', ['realtime', `${KEY}bad`], {}, '401', 'auth.invalid'],
    ['two different ones', ['realtime', `${KEY}good`], { authorization: 'Bearer other' }, '401', 'auth.invalid'],
  ])('refuses %s before the protocol changes', async (_, protocols, headers, status, code) => {
    const message = await refusal(protocols, headers);
    expect(message).toContain(`Error: ${status} `);
    expect(message).toContain(`"code":"${code}"`);
  });

  test('ends a session whose token is revoked, and says so', async () => {
    const client = await open([], { authorization: 'Bearer good' });
    const timer = setInterval(() => client.append(silenceOf(0.1)), 100);
    valid.clear();
    expect(await client.closed()).toEqual([1008, expect.stringContaining('no longer accepted')]);
    clearInterval(timer);
    expect(client.ofType('error').at(-1)?.error?.code).toBe('auth.invalid');
  });

  test('closes a session in which nothing is sent for too long', async () => {
    const client = await open([], { authorization: 'Bearer good' });
    const [status] = await client.closed();
    expect(status).toBe(1000);
    expect(client.ofType('error').at(-1)?.error?.message).toContain('SVC_REALTIME_IDLE');
  });
});

describe('pages in a browser', () => {
  beforeEach(() => start({ settings: { SVC_CORS_ORIGINS: 'https://app.example' } }));

  test.each([
    ['of another site', { origin: 'https://evil.example' }],
    ['that hide their origin', { origin: 'null' }],
    ['under a name that is not known', { origin: 'http://evil.example', host: 'evil.example' }],
    ['of another port of the same machine', { origin: 'http://127.0.0.1:1' }],
  ])('%s are refused', async (_, headers) => {
    expect(await refusal([], headers)).toMatch(/Error: 403 .*"code":"request.cross_site"/);
  });

  test('of the service itself, and of the origins in SVC_CORS_ORIGINS, are served', async () => {
    await open([], { origin: gateway.url });
    await open([], { origin: 'https://app.example' });
  });
});

describe('the request', () => {
  beforeEach(() => start({ settings: { SVC_REALTIME_LIMIT: '2' } }));

  test.each([
    ['another intent', '/v1/realtime?intent=conversation', '400', 'request.invalid'],
    ['an unknown model', '/v1/realtime?model=gpt-realtime', '404', 'model.not_found'],
    ['a model that does not transcribe', '/v1/realtime?model=chatty', '400', 'model.unsupported'],
  ])('is refused with %s', async (_, path, status, code) => {
    expect(await refusal([], {}, path)).toMatch(new RegExp(`Error: ${status} .*"code":"${code}"`));
  });

  test('names a model by id, alias or slot', async () => {
    await open([], {}, '/v1/realtime?model=moonshine');
    await open([], {}, '/v1/realtime?model=stt');
  });

  test('is refused while as many sessions are open as permitted, and not any more when one has ended', async () => {
    const first = await open();
    await open();
    expect(await refusal()).toMatch(/Error: 503 .*SVC_REALTIME_LIMIT/);
    await first.close();
    await until(() => gateway.reported.some(({ route, status }) => route === '/v1/realtime' && status === 101));
    await open();
  });

  test('without a change of protocol is told how to connect', async () => {
    const answer = await fetch(`${gateway.url}${PATH}`);
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain('This route needs a WebSocket');
  });

  test('for another protocol, or on another path, is answered as if none had been asked for', async () => {
    const head = 'Host: 127.0.0.1\r\nConnection: Upgrade, close\r\n';
    expect(await raw(gateway.port, `GET /v1/models HTTP/1.1\r\n${head}Upgrade: websocket\r\n\r\n`)).toContain('HTTP/1.1 200 OK');
    expect(await raw(gateway.port, `GET ${PATH} HTTP/1.1\r\n${head}Upgrade: h2c\r\n\r\n`)).toContain('This route needs a WebSocket');
  });

  test('with a bad handshake gets an error in the documented shape', async () => {
    const head = 'Host: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
    expect(await raw(gateway.port, `GET ${PATH} HTTP/1.1\r\n${head}\r\n`)).toMatch(/^HTTP\/1.1 400 [^]*"code":"request.invalid"/);
  });
});

describe('bad events', () => {
  beforeEach(() => start({ settings: { SVC_AUDIO_LIMIT: '100Ki' } }));

  const update = (input: object) => ({ type: 'session.update', session: { type: 'transcription', audio: { input } } });
  const input = 'session.audio.input';

  test.each<readonly [string, object | string, string, string | null]>([
    ['no JSON', '{', 'request.invalid', 'type'],
    ['an array', [], 'request.invalid', 'type'],
    ['no type', {}, 'request.invalid', 'type'],
    ['an unknown type', { type: 'session.destroy' }, 'request.invalid', 'type'],
    ['a conversation', { type: 'response.create' }, 'request.invalid', 'type'],
    ['the session of a conversation', { type: 'session.update', session: { type: 'realtime' } }, 'request.invalid', 'session.type'],
    ['no session', { type: 'session.update' }, 'request.invalid', 'session'],
    ['another rate', update({ format: { type: 'audio/pcm', rate: 16_000 } }), 'request.invalid', `${input}.format`],
    ['semantic turn detection', update({ turn_detection: { type: 'semantic_vad' } }), 'request.invalid', `${input}.turn_detection.type`],
    [
      'a threshold over 1',
      update({ turn_detection: { type: 'server_vad', threshold: 2 } }),
      'request.invalid',
      `${input}.turn_detection.threshold`,
    ],
    ['an unknown model', update({ transcription: { model: 'whisper-9' } }), 'model.not_found', `${input}.transcription.model`],
    [
      'a model that does not transcribe',
      update({ transcription: { model: 'primary' } }),
      'model.unsupported',
      `${input}.transcription.model`,
    ],
    ['no sound', { type: 'input_audio_buffer.append' }, 'request.invalid', 'audio'],
    ['sound that is no Base64', { type: 'input_audio_buffer.append', audio: '!!!!' }, 'request.invalid', 'audio'],
    ['half a sample', { type: 'input_audio_buffer.append', audio: 'AAAA' }, 'request.invalid', 'audio'],
    ['a commit of nothing', { type: 'input_audio_buffer.commit' }, 'input_audio_buffer_commit_empty', null],
    [
      'more sound than permitted',
      { type: 'input_audio_buffer.append', audio: Buffer.alloc(102_400).toString('base64') },
      'request.too_large',
      'audio',
    ],
  ])('%s: an error that names what is wrong, and the session goes on', async (_, event, code, param) => {
    const client = await open();
    const marked = typeof event === 'string' || Array.isArray(event) ? event : { event_id: 'mine', ...event };
    const error = await client.errorOf(marked);
    expect(error).toMatchObject({ type: expect.stringMatching(/_error$/), code, param, event_id: marked === event ? null : 'mine' });
    expect(error.message.length).toBeGreaterThan(20);
    client.append(Buffer.concat([toneOf(0.5), silenceOf(0.6)]));
    expect((await client.waitFor(COMPLETED)).transcript).toBe('heard');
  });

  test('bytes instead of text are answered with an error, and a message that is too long ends the session', async () => {
    const client = await open();
    client.ws.send(Buffer.from('{}'), { binary: true });
    expect((await client.waitFor('error')).error?.message).toContain('send events as text');
    client.send('x'.repeat(5 * 1024 * 1024));
    expect((await client.closed())[0]).toBe(1009);
  });
});

test('any events in any order leave the service as it was', async () => {
  await start({ settings: { SVC_AUDIO_LIMIT: '200Ki' } });
  const input = fc.record(
    {
      format: fc.constantFrom({ type: 'audio/pcm', rate: 24_000 }, { type: 'audio/pcmu' }, { type: 'audio/pcma' }, null),
      turn_detection: fc.constantFrom(null, { type: 'server_vad' }, { type: 'server_vad', silence_duration_ms: 100, prefix_padding_ms: 0 }),
      transcription: fc.constantFrom(null, {}, { model: 'stt' }, { language: 'en', prompt: 'a' }, { model: 'none' }),
    },
    { requiredKeys: [] },
  );
  const sound = fc
    .tuple(fc.boolean(), fc.integer({ min: 0, max: 1000 }))
    .map(([loud, ms]) => (loud ? toneOf(ms / 1000) : silenceOf(ms / 1000)));
  const event = fc.oneof(
    { weight: 6, arbitrary: sound.map((pcm) => ({ type: 'input_audio_buffer.append', audio: pcm.toString('base64') })) },
    { weight: 2, arbitrary: fc.constantFrom({ type: 'input_audio_buffer.commit' }, { type: 'input_audio_buffer.clear' }) },
    { weight: 2, arbitrary: input.map((each) => ({ type: 'session.update', session: { type: 'transcription', audio: { input: each } } })) },
    { weight: 1, arbitrary: fc.json() },
  );
  const run = async (events: readonly (object | string)[]): Promise<void> => {
    const client = await open();
    for (const each of events) client.send(each);
    await client.errorOf('{}');
    await client.close();
    await until(() => gateway.gateway.load().bufferedBytes === 0 && gateway.gateway.load().requests === 0);
    expect(client.ofType('error').some(({ error }) => error?.code === 'server.internal')).toBe(false);
  };
  await fc.assert(fc.asyncProperty(fc.array(event, { maxLength: 25 }), run), { numRuns: 40 });
});

describe('the end of the service', () => {
  beforeEach(() => start());

  test('waits for the transcript of what was said so far, then closes the session', async () => {
    const client = await open();
    const held = Promise.withResolvers<void>();
    gate = held.promise;
    client.append(toneOf(0.9));
    await client.waitFor('input_audio_buffer.speech_started');
    const closing = gateway.api.close(10_000);
    await client.waitFor('input_audio_buffer.committed');
    // Longer than a connection without requests lives then.
    await new Promise((resolve) => setTimeout(resolve, 600));
    held.resolve();
    expect((await client.waitFor(COMPLETED)).transcript).toBe('heard');
    expect((await client.closed())[0]).toBe(1001);
    await closing;
  });
});
