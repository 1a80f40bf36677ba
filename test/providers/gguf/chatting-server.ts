/** A server that chats as llama-server b11669 does: it calls a function where it has one, and otherwise thinks and answers. */
import { expect } from '@jest/globals';
import { sendJson, type Answer } from '../../gateway/support/fake-upstream.ts';

/** Called for each message of a user. */
export const CALL = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern"}' } };
const USAGE = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17, prompt_tokens_details: { cached_tokens: 3 } };

export interface Chat {
  readonly messages: readonly { readonly role: string; readonly content?: unknown; readonly tool_calls?: readonly object[] }[];
  readonly tools?: readonly object[];
  readonly stream?: boolean;
  readonly max_tokens?: number;
}

/** Deltas of an answer: a call of a function where there are any, else reasoning and text. */
function deltasOf({ messages, tools }: Chat): readonly object[] {
  const last = messages.at(-1);
  if (tools !== undefined && last?.role === 'user') {
    const call = (part: object) => ({ tool_calls: [{ index: 0, ...part }] });
    return [
      call({ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city"' } }),
      call({ function: { arguments: ':"Bern"}' } }),
    ];
  }
  const text = last?.role === 'tool' ? ['It is ', String(last.content)] : ['Turn ', String(messages.length), ': "ü🙂"'];
  return [{ reasoning_content: 'Let me ' }, { reasoning_content: 'think' }, ...text.map((content) => ({ content }))];
}

export const answerChat: Answer = async ({ url, body }, res) => {
  expect(url).toBe('/v1/chat/completions');
  const chat: Chat = JSON.parse(body.toString());
  if (chat.messages.some(({ content }) => content === 'fail'))
    return sendJson(res, 500, {
      error: { code: 500, message: 'input is too large to process. increase the physical batch size', type: 'server_error' },
    });
  const deltas = deltasOf(chat);
  const finish = chat.max_tokens === 2 ? 'length' : chat.tools === undefined ? 'stop' : 'tool_calls';
  if (chat.stream !== true) {
    const joined: Record<string, unknown> = { role: 'assistant', content: null };
    for (const delta of deltas)
      for (const [key, part] of Object.entries(delta))
        joined[key] = typeof part === 'string' ? [joined[key], part].filter((text) => typeof text === 'string').join('') : [CALL];
    return sendJson(res, 200, { choices: [{ index: 0, finish_reason: finish, message: joined }], usage: USAGE });
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  const chunk = (part: object): string => `data: ${JSON.stringify({ object: 'chat.completion.chunk', model: 'toy', ...part })}\n\n`;
  const events = [
    ': ping\n\n',
    chunk({ choices: [{ index: 0, finish_reason: null, delta: { role: 'assistant', content: null } }] }),
    ...deltas.map((delta) => chunk({ choices: [{ index: 0, finish_reason: null, delta }] })),
    ...(chat.messages.some(({ content }) => content === 'break')
      ? ['error: {"error":{"code":500,"message":"Compute error","type":"server_error"}}\n\n']
      : []),
    chunk({ choices: [{ index: 0, finish_reason: finish, delta: {} }] }),
    chunk({ choices: [], usage: USAGE }),
    'data: [DONE]\n\n',
  ].join('');
  // Pieces end anywhere, also within a character.
  const bytes = Buffer.from(events);
  for (let at = 0; at < bytes.length; at += 97) {
    res.write(bytes.subarray(at, at + 97));
    await new Promise((resolve) => setImmediate(resolve));
  }
  res.end();
};
