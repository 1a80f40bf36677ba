/** What identifies a conversation in bodies of chats, as clients of the three dialects send them. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { JsonBody } from '../../../src/gateway/body/json-body.ts';
import { createChatBody } from '../../../src/gateway/translate/chat-body.ts';
import { parseSettings } from '../../../src/schema/settings/settings.ts';

const parsed = parseSettings({});
if (!parsed.ok) throw new Error(parsed.problems.join('; '));
const { settings } = parsed;

const newScan = (): JsonBody => createChatBody({ settings, fetchImage: async () => ({ ok: false, why: 'it is not asked for' }) });

function keyOf(body: unknown, cuts: readonly number[] = [], scan = newScan()): string | undefined {
  const bytes = Buffer.from(JSON.stringify(body));
  const offsets = cuts.map((cut) => cut % bytes.length).toSorted((one, other) => one - other);
  [0, ...offsets].forEach((from, index) => scan.feed(bytes.subarray(from, offsets[index] ?? bytes.length)));
  expect(scan.status).toBe('done');
  return scan.conversation;
}

const system = (content: unknown) => ({ role: 'system', content });
const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown) => ({ role: 'assistant', content });
const text = (of: string, type = 'text') => ({ type, text: of });
const chat = (...messages: readonly object[]) => ({ model: 'm', messages });

describe('What identifies a conversation', () => {
  const SAME: readonly (readonly [string, unknown, unknown])[] = [
    ['further turns', chat(user('Hi')), chat(user('Hi'), assistant('Hello'), user('And now?'))],
    ['further turns after a system prompt', chat(system('Be brief'), user('Hi')), chat(system('Be brief'), user('Hi'), assistant('Yes'))],
    ['a role after its content', chat({ content: 'Hi', role: 'user' }), chat({ content: 'Hi', role: 'user' }, user('More'))],
    ['parts instead of a text', chat(user('Hi')), chat(user([text('Hi')]), assistant([text('Hello')]), user([text('More')]))],
    [
      'marks that move with each turn, as of caches of prompts',
      chat(user([{ ...text('Hi'), cache_control: { type: 'ephemeral' } }])),
      chat(user([text('Hi')]), assistant('Hello'), user([{ ...text('More'), cache_control: { type: 'ephemeral' } }])),
    ],
    [
      'the Responses API, whose first turn is a text',
      { input: 'Hi', instructions: 'Be brief' },
      { input: [user([text('Hi', 'input_text')]), assistant([text('Hello', 'output_text')]), user('More')], instructions: 'Be brief' },
    ],
    [
      'the Messages API, with its system prompt at the end',
      { messages: [user('Hi')], system: [text('Be brief')] },
      { messages: [user('Hi'), assistant('Hello'), user('More')], system: [text('Be brief')] },
    ],
    ['other parameters', chat(user('Hi')), { temperature: 1, stream: true, ...chat(user('Hi')), max_tokens: 5 }],
    ['a key for the cache', { prompt_cache_key: 'k', ...chat(user('A')) }, { ...chat(user('B')), user: 'x', prompt_cache_key: 'k' }],
    ['a user', { user: 'u', ...chat(user('A')) }, { ...chat(user('B')), user: 'u' }],
    ['a user of the Messages API', { metadata: { user_id: 'u' }, ...chat(user('A')) }, { ...chat(user('B')), metadata: { user_id: 'u' } }],
  ];
  test.each(SAME)('stays the same with %s', (_title, one, other) => {
    expect(keyOf(one)).toBeDefined();
    expect(keyOf(other)).toBe(keyOf(one));
  });

  const long = 'x'.repeat(5000);
  const OTHER: readonly (readonly [string, unknown, unknown])[] = [
    ['another first message', chat(user('Hi')), chat(user('Ho'))],
    ['another system prompt', chat(system('A'), user('Hi')), chat(system('B'), user('Hi'))],
    ['another part of the first message', chat(user([text('A'), text('B')])), chat(user([text('A'), text('C')]))],
    ['a longer text with the same beginning', chat(user(long)), chat(user(`${long}y`))],
    ['texts that are divided differently', chat(system('AB'), user('C')), chat(system('A'), user('BC'))],
    ['another key for the cache', { prompt_cache_key: 'k', ...chat(user('A')) }, { prompt_cache_key: 'l', ...chat(user('A')) }],
  ];
  test.each(OTHER)('differs with %s', (_title, one, other) => {
    expect(keyOf(one)).not.toBe(keyOf(other));
  });

  test.each([
    ['no messages', {}],
    ['empty messages', chat()],
    ['messages that are no objects', { messages: [null, 1, 'x'] }],
    ['keys that are no strings', { prompt_cache_key: 1, user: null, metadata: 'x' }],
    ['images alone', chat(user([{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }]))],
  ])('is nothing with %s', (_title, body) => {
    expect(keyOf(body)).toBeUndefined();
  });

  test('is the beginning of a prompt that is continued', () => {
    const ask = (prompt: string) => keyOf({ model: 'm', prompt }, [], new JsonBody());
    expect(ask(`${long} and on`)).toBe(ask(long));
    expect(ask('A')).not.toBe(ask('B'));
  });

  test('does not depend on the pieces in which a body arrives, and takes little memory of it', () => {
    const content = fc.string({ maxLength: 600 }).map((piece) => piece.repeat(40));
    const message = fc.record({ role: fc.constantFrom('system', 'user', 'assistant', 'developer'), content });
    const body = fc.record({ system: content, messages: fc.array(message, { maxLength: 30 }) });
    fc.assert(
      fc.property(body, fc.array(fc.nat(), { maxLength: 6 }), (sent, cuts) => {
        const key = keyOf(sent);
        expect(keyOf(sent, cuts)).toBe(key);
        expect(key?.length ?? 0).toBeLessThan(16 * 1024);
      }),
    );
  });
});
