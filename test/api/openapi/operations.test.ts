/** Calls every operation of the published OpenAPI document on a real server, and validates each answer against what the document says. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { request } from 'undici';
import type { Authorize } from '../../../src/auth/check-token.ts';
import type { InferencePath } from '../../../src/gateway/route/decide/inference-paths.ts';
import { errorCodesOf } from '../../../src/api/openapi/error-answers.ts';
import { isTable } from '../../../src/schema/words/key-case.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { VoiceStore } from '../../../src/schema/slot/voice-store.ts';
import { boardView, DISABLED, PARK, type SlotSketch } from '../../gateway/support/board-fixture.ts';
import { startUpstream, type FakeUpstream } from '../../gateway/support/fake-upstream.ts';
import { until } from '../../gateway/support/gateway-fixture.ts';
import { IMAGE_CALLS } from '../manage/in-memory-images.ts';
import { startWorld, type World } from '../manage/world.ts';
import { UNKNOWN_MODEL } from '../manage/world-models.ts';
import { openProfiles, type WorldProfiles } from '../manage/world-profiles.ts';
import { createAnswerChecker, type CheckAnswer, type SeenAnswer } from './answer-checker.ts';
import { publishPull, publishRefused, SETTINGS } from './boards.ts';
import { createCaptureCalls } from './capture-calls.ts';
import { CHANGE, CHANGE_CALLS, planCalls } from './change-calls.ts';
import { MODEL_CALLS, PULLS } from './model-calls.ts';
import { REALTIME_CALLS } from './realtime-calls.ts';
import { CALLED_PATHS, codesOf, dialectCalls } from './dialect-calls.ts';
import { PROFILE_CALLS, prepareProfiles } from './profile-calls.ts';
import { createSlotCalls, revisionCalls, SPEC, STALE, type Call } from './slot-calls.ts';
import { managedCalls, sourceCalls } from './source-calls.ts';
import { prepareVoices, READER, UNSUPPORTED_CALLS, VOICE_CALLS } from './voice-calls.ts';
import { prepareTokens, TOKEN_CALLS } from './token-calls.ts';
import { BODIES, formCalls } from './inference-bodies.ts';
import { documentedPath } from './documented-path.ts';
import { upstreamAnswer } from './upstream-answer.ts';

const PRIMARY = SlotName.parse('primary');
const TEXT = '[model]\ndefault = "a"\n';
const DENIALS = ['auth.required', 'auth.invalid', 'auth.expired', 'auth.busy'] as const;
const CHAT = { messages: [{ role: 'user', content: 'Hi' }] };
/** Codes of limits, of images and of remotes, which `http-server.test.ts`, `memory.test.ts`, `test/providers/image` and `test/e2e/remote-slots` produce; their answers are written by the same function. And the change to a WebSocket. */
const FROM_LIMITS = '101 image.failed image.size_unsupported request.loop request.timeout server.overloaded'.split(' ');

let world: World;
let check: CheckAnswer;
let upstream: FakeUpstream;
let voices: VoiceStore | undefined;
let profiles: WorldProfiles;
const captures = createCaptureCalls();
let decide: Authorize = () => ({ ok: true });
/** Operation → statuses and codes that were seen. */
const seen = new Map<string, Set<string>>();

beforeAll(async () => {
  upstream = await startUpstream({ answer: upstreamAnswer });
  const given = { env: SETTINGS, v1: true, captures: await captures.open() };
  world = await startWorld({ ...given, authorize: (access, req) => decide(access, req), heartbeatMs: 20 });
  ({ voices } = world);
  profiles = await openProfiles(world);
  const { text } = await send({ operation: 'GET /api/openapi.json', expect: 200 });
  check = createAnswerChecker(JSON.parse(text));
});
afterAll(async () => {
  await world.close();
  await Promise.all([profiles.remove(), upstream.kill(), captures.remove()]);
});

async function send({ operation, path, body, headers = {}, endless = false }: Call): Promise<SeenAnswer> {
  const [method = '', pattern = ''] = operation.split(' ');
  const content = body === undefined ? {} : { 'content-type': 'application/json' };
  const answer = await request(world.url + (path ?? pattern.replace('{name}', 'primary')), {
    method: method === 'PUT' ? 'PUT' : method === 'PATCH' ? 'PATCH' : method === 'DELETE' ? 'DELETE' : method === 'POST' ? 'POST' : 'GET',
    headers: { ...content, ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const sent = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, String(value)]));
  return { status: answer.statusCode, headers: sent, text: endless ? await beginning(answer.body) : await answer.body.text() };
}

async function beginning(body: AsyncIterable<unknown>): Promise<string> {
  for await (const piece of body) return String(piece);
  return '';
}

/** Makes the slots of the management API what each call expects: one slot, which is ready. */
async function reset(): Promise<void> {
  decide = () => ({ ok: true });
  world.slots.broken = undefined;
  world.slots.managed = undefined;
  world.source = undefined;
  world.profiles = profiles.store;
  world.revisions = undefined;
  world.lastPassAgeMs = 0;
  world.slots.texts.clear();
  world.save(PRIMARY, TEXT);
  await world.idle();
}

const publish = (...sketches: readonly SlotSketch[]): void => world.board.publish(boardView(world.board.current().version + 1, sketches));

function serve(): void {
  publish(
    { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] },
    { name: 'embed', capabilities: ['embedding'], targets: [{ workload: 'e', port: upstream.port }] },
    { name: 'media', capabilities: ['transcription', 'translation', 'speech', 'image'], targets: [{ workload: 'm', port: upstream.port }] },
  );
}

async function storeVoice(stored: boolean): Promise<void> {
  publish({ ...READER, targets: [{ workload: 'r', port: upstream.port }] });
  world.voices = await prepareVoices(voices, stored);
}

const beforeFirstPass = () => world.board.publish({ ...world.board.current(), version: 0 });

const slot = createSlotCalls(beforeFirstPass);

const MANAGE_CALLS: readonly Call[] = [
  ...IMAGE_CALLS,
  { operation: 'GET /api/health/system', expect: 200 },
  { operation: 'GET /api/health/system', expect: 503, prepare: () => void (world.lastPassAgeMs = 1e9) },
  { operation: 'GET /api/health/ready', expect: 200 },
  { operation: 'GET /api/health/ready', expect: 503, prepare: beforeFirstPass },
  ...'status metrics features config/urls install/state auth/status openapi.json models pulls providers hardware requests cluster slots'
    .split(' ')
    .map((name): Call => ({ operation: `GET /api/${name}`, expect: 200 })),
  { operation: 'GET /api/audit', expect: 200, prepare: () => world.changes.add(CHANGE) },
  { operation: 'GET /api/pulls', expect: 200, prepare: () => publishPull(world.board) },
  { operation: 'GET /api/pulls', expect: 200, prepare: () => void (world.pulls = PULLS) },
  ...MODEL_CALLS,
  ...PROFILE_CALLS.map((call) => ({ ...call, prepare: async () => await prepareProfiles(world, profiles, call.given) })),
  ...planCalls(() => world.agents.plans),
  ...captures.calls,
  ...TOKEN_CALLS.map((call) => ({ ...call, prepare: async () => await prepareTokens(world.tokens, call) })),
  {
    operation: 'GET /api/auth/session',
    expect: 204,
    prepare: () => void (decide = () => ({ ok: true, caller: { key: 'caller', identity: 'chat session of ada', scope: 'v1-only' } })),
  },
  { operation: 'GET /api/slots', expect: 200, prepare: () => publishPull(world.board) },
  { operation: 'GET /api/slots', expect: 200, prepare: () => publishRefused(world.board) },
  { operation: 'GET /api/slots', expect: 304, headers: { 'if-none-match': '*' } },
  { operation: 'GET /api/status', expect: 200, prepare: () => publishRefused(world.board) },
  { operation: 'GET /api/usage', expect: 200, path: '/api/usage?by=hour,token,slot,model' },
  { operation: 'GET /api/config/urls', expect: 'request.invalid', headers: { host: 'user@evil' } },
  { operation: 'GET /api/status', expect: 'request.headers_too_large', headers: { 'x-long': 'x'.repeat(20_000) } },
  { operation: 'GET /api/status', expect: 'request.cross_site', headers: { origin: 'http://evil.test' } },
  { operation: 'POST /api/install/complete', expect: 200 },
  { operation: 'POST /api/auth/login', expect: 200, body: { user: 'a' } },
  ...slot('GET /api/slots/{name}', { expect: 200 }, { expect: 200, prepare: () => void world.slots.texts.set(PRIMARY, 'broken') }),
  ...slot('GET /api/slots/{name}/text', { expect: 200 }, { expect: 200, prepare: () => void world.slots.texts.set(PRIMARY, 'broken') }),
  ...slot('GET /api/slots/{name}/logs', { expect: 200 }, { expect: 200, prepare: () => void world.logs.set('primary', ['one']) }),
  ...slot('GET /api/slots/{name}/timeline', { expect: 200 }),
  ...slot('GET /api/slots/{name}/explain', { expect: 200 }),
  ...revisionCalls(() => world, slot),
  ...sourceCalls(
    () => world,
    (next) => void (decide = next),
  ),
  ...managedCalls(() => world),
  { operation: 'GET /api/slots/{name}/timeline', expect: 'request.invalid', path: '/api/slots/primary/timeline?limit=x' },
  { operation: 'GET /api/events', expect: 200, path: '/api/events?last_event_id=0', endless: true },
  { operation: 'GET /api/events', expect: 'request.invalid', headers: { 'last-event-id': 'x' } },
  {
    operation: 'PUT /api/slots/{name}',
    expect: 201,
    path: '/api/slots/extra',
    body: { spec: { provider: 'gguf', model: { default: 'a' } } },
  },
  ...slot(
    'PUT /api/slots/{name}',
    { expect: 200, body: SPEC },
    { expect: 'slot.conflict', body: SPEC, headers: STALE },
    { expect: 'slot.conflict', body: SPEC, headers: { 'if-none-match': '*' } },
    { expect: 'slot.invalid', body: { spec: { nothing: 1 } } },
    { expect: 'request.invalid', body: '{' },
    { expect: 'request.invalid', body: {} },
    { expect: 'request.too_large', body: 'x'.repeat(2 ** 20 + 1) },
    { expect: 'request.media_type', body: 'x', headers: { 'content-type': 'text/plain' } },
    { expect: 'server.internal', body: SPEC, prepare: () => void (world.slots.broken = 'The disk is full') },
    ...DENIALS.map((code) => ({ expect: code, body: SPEC, prepare: () => void (decide = () => ({ ok: false, code, message: 'No' })) })),
    { expect: 'auth.scope', body: SPEC, prepare: () => void (decide = () => ({ ok: false, code: 'auth.scope', message: 'Ask' })) },
  ),
  ...slot(
    'PATCH /api/slots/{name}',
    { expect: 200, body: SPEC },
    { expect: 'slot.conflict', body: SPEC, headers: STALE },
    { expect: 'slot.invalid', body: { spec: { priority: 'x' } } },
  ),
  ...slot('DELETE /api/slots/{name}', { expect: 'slot.conflict', headers: STALE }, { expect: 204 }),
  ...slot('POST /api/slots/{name}/load', { expect: 'model.not_found', body: { model: UNKNOWN_MODEL } }),
  ...['load', 'unload', 'restart'].flatMap((verb) =>
    slot(
      `POST /api/slots/{name}/${verb}`,
      { expect: 202 },
      { expect: 'slot.conflict', headers: STALE },
      { expect: 'slot.invalid', prepare: () => void world.slots.texts.set(PRIMARY, 'provider = "nothing"\n') },
      { expect: 'request.invalid', body: { other: 1 } },
    ),
  ),
  ...CHANGE_CALLS,
];

const STREAMED: ReadonlySet<string> = new Set(['/v1/chat/completions', '/v1/completions', '/v1/responses', '/v1/messages']);
const RANKED = { query: 'q', documents: ['a'] };

const refuse = (code: 'slot.stalled' | 'slot.insufficient_memory') => ({ kind: 'refuse', code, message: 'Edit it' }) as const;

function inferenceCalls({ path, body: form }: InferencePath): readonly Call[] {
  if (form === 'multipart') return formCalls(path).map((call) => ({ prepare: serve, ...call }));
  const body = BODIES[path] ?? RANKED;
  const operation = `POST ${path}`;
  return [
    { operation, expect: 200, body, prepare: serve },
    ...(STREAMED.has(path) ? [{ operation, expect: 200, body: { ...body, stream: true }, prepare: serve }] : []),
    { operation, expect: 'model.not_found', body: { ...body, model: 'none' }, prepare: serve },
    { operation, expect: 'request.media_type', body: 'x', headers: { 'content-type': 'text/plain' } },
    {
      operation,
      expect: 'auth.required',
      body,
      prepare: () => void (decide = () => ({ ok: false, code: 'auth.required', message: 'Log in' })),
    },
  ];
}

const asPrimary = (sketch: Omit<SlotSketch, 'name'>) => (): void => publish({ name: 'primary', ...sketch });
const CANCEL = 'DELETE /api/requests/{id}';
const WAITS = { 'x-request-id': 'waits' };
const CHAT_OPERATION = 'POST /v1/chat/completions';
/** One request waits already, and the limit is one. */
async function fillQueue(): Promise<void> {
  publish({ name: 'primary', admission: PARK });
  void send({ operation: CHAT_OPERATION, expect: 'slot.loading', body: CHAT, headers: { 'x-request-id': 'fills' } }).catch(() => undefined);
  await until(() => world.parked() === 1);
}
async function cancelSoon(): Promise<void> {
  publish({ name: 'primary', admission: PARK });
  void until(() => world.parked() === 1).then(async () => await send({ operation: 'DELETE', expect: 204, path: '/api/requests/waits' }));
  await Promise.resolve();
}

const TEXT_ONLY = { contents: { vision: false, audio: false } };
const chatWith = (type: string, media: object) => ({ messages: [{ role: 'user', content: [{ type, [type]: media }] }] });

const NO_MEMORY = 'slot.insufficient_memory';
const GATEWAY_CALLS: readonly Call[] = [
  { operation: CHAT_OPERATION, expect: 'slot.loading', body: CHAT, prepare: asPrimary({ admission: PARK }) },
  { operation: CHAT_OPERATION, expect: 'slot.queue_full', body: CHAT, prepare: fillQueue },
  { operation: CANCEL, expect: 204, path: '/api/requests/fills' },
  { operation: CHAT_OPERATION, expect: 'request.cancelled', body: CHAT, headers: WAITS, prepare: cancelSoon },
  { operation: CANCEL, expect: 'request.not_found', path: '/api/requests/nobody' },
  { operation: CHAT_OPERATION, expect: 'slot.disabled', body: CHAT, prepare: asPrimary({ admission: DISABLED }) },
  { operation: CHAT_OPERATION, expect: 'slot.stalled', body: CHAT, prepare: asPrimary({ admission: refuse('slot.stalled') }) },
  { operation: CHAT_OPERATION, expect: NO_MEMORY, body: CHAT, prepare: asPrimary({ admission: refuse(NO_MEMORY) }) },
  { operation: CHAT_OPERATION, expect: 'model.unsupported', body: { ...CHAT, model: 'embed' }, prepare: serve },
  { operation: CHAT_OPERATION, expect: 'model.no_vision', body: chatWith('image_url', { url: 'data:,' }), prepare: asPrimary(TEXT_ONLY) },
  { operation: CHAT_OPERATION, expect: 'model.no_audio', body: chatWith('input_audio', {}), prepare: asPrimary(TEXT_ONLY) },
  { operation: CHAT_OPERATION, expect: 'upstream.failed', body: { ...CHAT, temperature: 'break' }, prepare: serve },
  { operation: CHAT_OPERATION, expect: 'upstream.timeout', body: { ...CHAT, temperature: 'silence' }, prepare: serve },
  { operation: CHAT_OPERATION, expect: 'context_length_exceeded', body: { ...CHAT, temperature: 400 }, prepare: serve },
  { operation: CHAT_OPERATION, expect: 501, body: { ...CHAT, temperature: 501 }, prepare: serve },
  { operation: CHAT_OPERATION, expect: 'request.too_large', body: JSON.stringify({ ...CHAT, user: 'x'.repeat(2 ** 20) }), prepare: serve },
  { operation: 'GET /v1/models', expect: 200, prepare: serve },
  ...REALTIME_CALLS.map((call) => ({ ...call, prepare: serve })),
  ...VOICE_CALLS.map((call) => ({ ...call, prepare: async () => storeVoice(call.stored) })),
  ...UNSUPPORTED_CALLS.map((call) => ({ ...call, prepare: () => void (world.voices = undefined) })),
  { operation: 'GET /v1/models/{rest}', expect: 200, path: '/v1/models/primary', prepare: serve },
  { operation: 'GET /v1/models/{rest}', expect: 'model.not_found', path: '/v1/models/none', prepare: serve },
];

describe('the operations of the published OpenAPI document', () => {
  const calls = [...MANAGE_CALLS, ...CALLED_PATHS.flatMap(inferenceCalls), ...GATEWAY_CALLS, ...dialectCalls(serve)];

  test.each(calls.map((call) => [call.operation, String(call.expect), call] as const))(
    '%s answers what is published: %s',
    async (operation, expected, call) => {
      await reset();
      await call.prepare?.();
      const [answer, [method = '', path = '']] = [await send(call), operation.split(' ')];
      expect(check(method, path, answer)).toEqual([]);
      const error: unknown = answer.status >= 400 ? JSON.parse(answer.text).error : undefined;
      const code = isTable(error) ? String(error['code']) : '';
      expect([String(answer.status), code]).toContain(expected);
      seen.set(operation, (seen.get(operation) ?? new Set()).add(String(answer.status)).add(code));
    },
  );

  // Runs after the calls, which it checks for completeness.
  test('were all called, and all their statuses and errors were seen', () => {
    const missing = world.routes.flatMap((route) => {
      const operation = `${route.method} ${documentedPath(route)}`;
      const declared = [...Object.keys(route.answers), ...codesOf(route)].filter((item) => !FROM_LIMITS.includes(item));
      return declared.filter((item) => seen.get(operation)?.has(item) !== true).map((item) => `${operation}: ${item}`);
    });
    expect(missing).toEqual([]);
    const everywhere = new Set([...seen.values()].flatMap((items) => [...items]));
    const possible = new Set(world.routes.flatMap((route) => errorCodesOf(route)));
    expect([...possible].filter((code) => !everywhere.has(code) && !FROM_LIMITS.includes(code))).toEqual([]);
  });
});
