import { expect, test } from '@jest/globals';
import { ANTHROPIC } from '../../../../src/gateway/route/decide/dialects.ts';
import { translateStreamErrors } from '../../../../src/gateway/upstream/decide/judge-answer.ts';

const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
const LONG = '{"error":{"code":400,"message":"too long – 9","type":"exceed_context_size_error"}}';
const dataOf = (text: string): unknown => JSON.parse(/data: (.*)/.exec(text)?.[1] ?? '');

test.each([
  ['data', `data: ${LONG}\n\n`],
  ['an event "error"', `event: error\ndata: ${LONG}\n\n`],
  ['the field that older servers use', `error: ${LONG}\n\n`],
  ['lines that end with CR LF', `data: ${LONG}\r\n\r\n`],
])('an error of llama.cpp in %s gets the shape of the dialect', (_what, event) => {
  const text = translateStreamErrors(`${PING}${event}`, ANTHROPIC, 'req_1');
  expect(text.startsWith(`${PING}event: error\ndata: `)).toBe(true);
  expect(dataOf(text.slice(PING.length))).toEqual({
    type: 'error',
    error: { type: 'invalid_request_error', message: 'too long – 9', param: null, code: 'context_length_exceeded', origin: 'upstream' },
    request_id: 'req_1',
  });
});

test.each([
  PING,
  'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n',
  `data: {"type":"content_block_delta","delta":{"text":${JSON.stringify(`\ndata: ${LONG}\n\n`)}}}\n\n`,
  'data: {"error": not JSON}\n\n',
  'data: {"error":{"message":"cut',
])('%j stays as it is', (events) => {
  expect(translateStreamErrors(events, ANTHROPIC, 'req_1')).toBe(events);
});
