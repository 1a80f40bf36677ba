/** Pure functions behind chat, cards and the list of models. */
import { describe, expect, test } from '@jest/globals';
import { EMPTY_ANSWER, chatBody, extendAnswer, openCalls, readMessages, toolResults } from '../../dashboard/src/decide/chat.ts';
import { findMath, readMath } from '../../dashboard/src/decide/math.ts';
import { slotsFor } from '../../dashboard/src/decide/model-facts.ts';
import { fixOf, groupConditions } from '../../dashboard/src/decide/slot-facts.ts';
import { otherMachines } from '../../dashboard/src/decide/other-machines.ts';
import type { Capability, Condition, Slot } from '../../dashboard/src/types.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { modelEntry } from './rows.ts';

test.each([
  ['$a + b$ rest', '$a + b$', 'a + b', false],
  ['$x$', '$x$', 'x', false],
  ['$$x$$ in a line', '$$x$$', 'x', true],
  ['\\(x\\) rest', '\\(x\\)', 'x', false],
  ['\\[x\\]', '\\[x\\]', 'x', true],
  ['$\\$5$', '$\\$5$', '\\$5', false],
] as const)('%j begins with a formula', (text, raw, tex, isBlock) => {
  expect(readMath(text, 'inline')).toEqual({ raw, tex, isBlock });
});

test.each(['$5 and $6', '$ x$', '$x $', '$5, or $10', '$', '$$$$', '\\( \\)', 'x $y$', '$a\nb$'])('%j does not', (text) => {
  expect(readMath(text, 'inline')).toBeUndefined();
});

test('a block stands alone, over several lines, and begins a line', () => {
  expect(readMath('$$\na\n$$\nrest', 'block')).toEqual({ raw: '$$\na\n$$\n', tex: 'a', isBlock: true });
  expect(readMath('$$a$$ rest', 'block')).toBeUndefined();
  expect(readMath('\\[\na\n\\]', 'block')?.tex).toBe('a');
  expect(findMath('costs $5\n$$a$$', 'block')).toBe(8);
  expect(findMath('costs $5', 'block')).toBeUndefined();
  expect(findMath('costs $5', 'inline')).toBe(6);
});

test('unclosed delimiters without end are read in a bounded time', () => {
  const text = '\\['.repeat(200_000);
  expect(readMath(text, 'inline')).toBeUndefined();
  expect(readMath(text, 'block')).toBeUndefined();
});

function slot(name: string, provider: string, capabilities: readonly Capability[], spec: Slot['spec'] = {}): Slot {
  return {
    name: SlotName.parse(name),
    spec,
    generation: 1,
    resource_version: 'a',
    status: {
      state: 'offline',
      conditions: [],
      observed_generation: 1,
      provider,
      backend: null,
      model: null,
      wanted_model: null,
      capabilities: [...capabilities],
      endpoint: null,
      memory_bytes: null,
      restarts: 0,
      replicas: null,
      since: null,
      progress: null,
      problems: [],
      rollout: null,
    },
  };
}

const SLOTS = [
  slot('chat-2', 'gguf', ['chat', 'completion']),
  slot('embed', 'gguf', ['embedding']),
  slot('empty', 'gguf', []),
  slot('primary', 'gguf', ['chat', 'completion']),
  slot('removed', 'gguf', ['chat'], null),
  slot('sort', 'gguf', ['rerank']),
  slot('stt', 'stt', []),
  slot('tts', 'tts', ['speech']),
];

test.each([
  [{ kind: 'chat' }, ['primary', 'chat-2', 'empty']],
  [{ kind: 'vision' }, ['primary', 'chat-2', 'empty']],
  [{ kind: 'embed' }, ['embed', 'empty']],
  [{ kind: 'rerank' }, ['empty', 'sort']],
  [{ kind: 'speech', provider: 'tts' }, ['tts']],
  [{ kind: 'transcription', provider: 'stt' }, ['stt']],
  [{ kind: 'transcription', provider: 'npu' }, []],
  [{ kind: null }, ['primary', 'chat-2', 'empty']],
  [{ kind: null, pooling: 'mean' }, ['embed', 'empty']],
  [{ kind: null, pooling: 'rank' }, ['empty', 'sort']],
  [{ kind: null, provider: 'tts' }, ['tts']],
] as const)('a model %j can be loaded into %j', (part, names) => {
  expect(slotsFor(modelEntry(part), SLOTS)).toEqual(names);
});

test.each([
  [undefined, 'explain'],
  [{ type: 'SpecValid', reason: 'SpecInvalid' }, 'edit'],
  [{ type: 'Stalled', reason: 'SpecInvalid' }, 'edit'],
  [{ type: 'Stalled', reason: 'LicenseNotAccepted' }, 'licence'],
  [{ type: 'Stalled', reason: 'ModelMissing' }, 'model'],
  [{ type: 'Stalled', reason: 'CrashLoop' }, 'restart'],
  [{ type: 'Stalled', reason: 'InternalError' }, 'explain'],
  [{ type: 'Stalled', reason: 'toString' }, 'explain'],
] as const)('the alarm %j is repaired by %s', (alarm, fix) => {
  expect(fixOf(alarm)).toBe(fix);
});

test('conditions with one cause tell it once', () => {
  const condition = (type: Condition['type'], reason: string, message: string): Condition => ({
    type,
    status: 'False',
    reason,
    message,
    last_transition_at: null,
    observed_generation: 1,
  });
  const groups = groupConditions([
    condition('Ready', 'CrashLoop', 'It crashed'),
    condition('UpToDate', 'CrashLoop', 'It crashed'),
    condition('DriftDetected', 'WorkloadAltered', 'It was altered'),
  ]);
  expect(groups.map(({ types, message }) => [types.map(({ type }) => type), message])).toEqual([
    [['Ready', 'UpToDate'], 'It crashed'],
    [['DriftDetected'], 'It was altered'],
  ]);
});

const event = (body: object): string => JSON.stringify(body);

test('counts come from "usage", else from "timings", also in an event without text', () => {
  const timings = { prompt_n: 4, cache_n: 6, predicted_n: 3, predicted_per_second: 50.5 };
  const timed = extendAnswer(EMPTY_ANSWER, event({ choices: [{ delta: {} }], timings }));
  expect(timed.speed).toEqual({ promptTokens: 10, cachedTokens: 6, outputTokens: 3, tokensPerSecond: 50.5 });
  const usage = { prompt_tokens: 11, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 7 } };
  expect(extendAnswer(timed, event({ choices: [], usage })).speed).toEqual({
    promptTokens: 11,
    cachedTokens: 7,
    outputTokens: 4,
    tokensPerSecond: 50.5,
  });
  expect(extendAnswer(EMPTY_ANSWER, event({ usage: { prompt_tokens: -1, completion_tokens: '9' } })).speed).toEqual({
    promptTokens: undefined,
    cachedTokens: undefined,
    outputTokens: undefined,
    tokensPerSecond: undefined,
  });
  expect(extendAnswer(EMPTY_ANSWER, event({ usage: null })).speed).toBeUndefined();
});

test('a tool call is sent back whole, followed by its result', () => {
  const call = (part: object): string => event({ choices: [{ delta: { tool_calls: [{ index: 0, ...part }] } }] });
  const first = extendAnswer(EMPTY_ANSWER, call({ id: 'call_1', function: { name: 'add', arguments: '{"a"' } }));
  const answer = extendAnswer(first, call({ function: { arguments: ':1}' } }));
  expect(openCalls([answer])).toEqual([{ id: 'call_1', name: 'add', args: '{"a":1}' }]);
  const results = toolResults(openCalls([answer]), ['1']);
  expect(openCalls([answer, ...results])).toEqual([]);
  expect(chatBody('primary', [answer, ...results])['messages']).toEqual([
    { role: 'assistant', content: '', tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }] },
    { role: 'tool', tool_call_id: 'call_1', content: '1' },
  ]);
});

test.each(['', 'null', '{}', '[1, null, {"role": "user"}]', '[{"role":"user","content":"x","reasoning":"","tools":{},"images":[]}]', '['])(
  'a stored conversation that is not one, %j, is left out',
  (text) => {
    expect(readMessages(text)).toEqual([]);
  },
);

test('a stored conversation is read again', () => {
  const messages = [{ ...EMPTY_ANSWER, role: 'user' as const, content: 'Hello' }, EMPTY_ANSWER];
  expect(readMessages(JSON.stringify(messages))).toEqual(messages);
});

describe('other machines', () => {
  const remote = (name: string, url: unknown): Slot => slot(name, 'remote', ['chat'], { remote: { url } });

  test('are listed by host and port, with the slots that use them', () => {
    const slots = [
      remote('b', 'https://user:secret@gpu-box.local:8443/v1'),
      remote('a', 'https://gpu-box.local:8443'),
      remote('cloud', 'https://api.example.com/v1'),
      slot('here', 'gguf', ['chat']),
    ];
    expect(otherMachines(slots).map(({ address, slots: used }) => [address, used.map(({ name }) => name)])).toEqual([
      ['api.example.com', ['cloud']],
      ['gpu-box.local:8443', ['a', 'b']],
    ]);
  });

  test.each([undefined, 7, '', 'no address'])('leave out a slot whose address is %p', (url) => {
    expect(otherMachines([remote('a', url)])).toEqual([]);
  });
});
