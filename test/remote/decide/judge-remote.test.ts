/** Answers of servers on other machines, as they come and as they should not. */
import { describe, expect, test } from '@jest/globals';
import { addHop, judgeList, judgeRefusal, judgeSlot, MOST_LIST_BYTES, type RemoteAnswer } from '../../../src/remote/decide/judge-remote.ts';

const ASKED = { url: 'https://box/v1/models', name: 'primary' };
const answered = (body: unknown, more: { readonly status?: number; readonly location?: string; readonly isCut?: boolean } = {}) => ({
  status: 200,
  isCut: false,
  body: typeof body === 'string' ? body : JSON.stringify(body),
  ...more,
});
const own = (state: string, more: object = {}) =>
  answered({ data: [{ id: 'demo-fox', owned_by: 'svc', slots: [{ name: 'primary', state }], capabilities: ['chat', 'tools'], ...more }] });

describe('A list of models', () => {
  test.each<[string, RemoteAnswer, string, RegExp]>([
    ['none: no connection', { problem: '"x" cannot be read: ECONNREFUSED', isUntrusted: false }, 'RemoteUnreachable', /ECONNREFUSED/],
    ['none: not trusted', { problem: 'The certificate', isUntrusted: true }, 'RemoteUntrusted', /certificate/],
    [
      'a redirect',
      answered('', { status: 302, location: 'https://evil/\u0007x' }),
      'RemoteUnusable',
      /redirects to "https:\/\/evil\/ x", which is not/,
    ],
    ['a redirect to nowhere', answered('', { status: 307 }), 'RemoteUnusable', /redirects to nowhere/],
    ['401', answered('{}', { status: 401 }), 'RemoteRefuses', /status 401: correct the token/],
    ['403', answered('{}', { status: 403 }), 'RemoteRefuses', /status 403/],
    ['404', answered('{}', { status: 404 }), 'RemoteUnusable', /no list of models at "https:\/\/box\/v1\/models"/],
    ['429', answered('{}', { status: 429 }), 'RemoteUnreachable', /status 429/],
    ['503', answered('{}', { status: 503 }), 'RemoteUnreachable', /status 503/],
    ['more than fits', answered('{"data":[', { isCut: true }), 'RemoteUnusable', new RegExp(`more than ${MOST_LIST_BYTES} bytes`)],
    ['a web page', answered(' <!doctype html><p>Hi'), 'RemoteUnusable', /a web page that is no list/],
    ['no JSON', answered('hello'), 'RemoteUnusable', /something that is no list/],
    ['another object', answered({ error: 'x' }), 'RemoteUnusable', /no list of models/],
    ['an array', answered([1]), 'RemoteUnusable', /no list of models/],
    ['an empty list', answered({ data: [] }), 'RemoteLacksModel', /does not list the model "primary"; it lists none/],
    ['odd entries', answered({ data: [null, 3, 'primary', { id: 4 }] }), 'RemoteLacksModel', /it lists none/],
    ['others, as after it was renamed', answered({ data: [{ id: 'a' }, { id: 'b' }] }), 'RemoteLacksModel', /it has "a", "b"$/],
    [
      'names with control characters and of great length',
      answered({ data: [{ id: '\u001b[31mred' }, { id: 'x'.repeat(10_000) }] }),
      'RemoteLacksModel',
      /it has "x{60}…"$/,
    ],
    [
      'many names',
      answered({ data: Array.from({ length: 100 }, (_, index) => ({ id: `m${index}` })) }),
      'RemoteLacksModel',
      /"m7" and 92 more$/,
    ],
    ['a slot that is loading', own('warming'), 'RemoteLoading', /The slot "primary" of the remote is in state "warming"/],
    ['a slot that is fetched', own('pulling'), 'RemoteLoading', /in state "pulling"/],
  ])('%s: makes the slot wait, and says why', (_what, answer, reason, message) => {
    const verdict = judgeList(answer, ASKED);
    expect(verdict).toEqual({ kind: 'waiting', because: { kind: 'other', reason, message: expect.stringMatching(message) } });
    expect(JSON.stringify(verdict)).toMatch(/^[\x20-\x7e…]+$/);
    expect(JSON.stringify(verdict).length).toBeLessThan(1000);
  });

  test.each<[string, RemoteAnswer, object]>([
    ['with the name alone', answered({ data: [{ id: 'primary' }] }), {}],
    ['under another key', answered({ models: [{ id: 'primary' }] }), {}],
    ['of a service of this kind, by the name of a slot', own('ready'), { serves: ['chat'] }],
    [
      'of a service of this kind, by the name of a model',
      own('serving', { id: 'primary', slots: [{ name: 'x', state: 'idle' }] }),
      { serves: ['chat'] },
    ],
    ['with a slot that rests: requests wake it', own('offline'), { serves: ['chat'], slot: 'primary' }],
    ['that only looks like one of this kind', own('ready', { id: 'primary', slots: 'none' }), {}],
  ])('%s: is enough', (_what, answer, more) => {
    expect(judgeList(answer, ASKED)).toEqual({ kind: 'there', ...more });
  });
});

test('the slot there says in its own words why it is stalled, and nothing where it rests or may not be read', () => {
  const slot = (status: string, message: string) => answered({ status: { conditions: [{ type: 'Stalled', status, message }] } });
  expect(judgeSlot(slot('True', 'No \u0007memory'), 'a')).toEqual({
    kind: 'other',
    reason: 'RemoteStalled',
    message: 'The slot "a" of the remote is stalled: No  memory',
  });
  for (const answer of [slot('False', 'x'), answered('{}', { status: 403 }), answered('<'), answered({ status: 3 })])
    expect(judgeSlot(answer, 'a')).toBeUndefined();
  expect(judgeSlot({ problem: 'x', isUntrusted: false }, 'a')).toBeUndefined();
});

describe('The header of hops', () => {
  test.each([
    ['', 'x-svc-hop: me\r\n'],
    ['accept: a\r\nX-Svc-Hop: one, two\r\nb: c\r\n', 'accept: a\r\nb: c\r\nx-svc-hop: one, two, me\r\n'],
    ['x-svc-hop: one\r\nx-svc-hop: two\r\n', 'x-svc-hop: one, two, me\r\n'],
  ])('gets this service: %j', (lines, expected) => {
    expect(addHop(lines, 'me')).toEqual({ ok: true, lines: expected });
  });

  test.each([
    ['x-svc-hop: one, me\r\n', /has been here before/],
    ['X-SVC-HOP:me\r\n', /has been here before/],
    ['x-svc-hop: 1, 2, 3, 4\r\n', /passed on by 4 services/],
    ['x-svc-hop: 1, 2\r\nx-svc-hop: 3, 4, 5\r\n', /passed on by 5 services/],
  ])('refuses a circle, and a long way: %j', (lines, problem) => {
    expect(addHop(lines, 'me')).toEqual({ ok: false, problem: expect.stringMatching(problem) });
  });
});

test('answers about the token of this service, and redirects, are no answers for clients', () => {
  for (const status of [401, 403, 407]) expect(judgeRefusal({ status, headers: [] })?.message).toContain(`with status ${status}`);
  expect(judgeRefusal({ status: 301, headers: ['a', 'location', 'Location', 'http://x/'] })?.message).toContain('to "http://x/", which');
  expect(judgeRefusal({ status: 302, headers: [] })?.message).toContain('redirects to nowhere');
  for (const status of [200, 400, 404, 429, 500]) expect(judgeRefusal({ status, headers: [] })).toBeUndefined();
});
