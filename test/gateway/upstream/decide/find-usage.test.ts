import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { estimateUsage, findUsage } from '../../../../src/gateway/upstream/decide/judge-answer.ts';

describe('findUsage()', () => {
  test.each([
    ['chat', '{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8},"timings":{}}', { input: 3, output: 5 }],
    ['embeddings', '{"usage":{"prompt_tokens":7,"total_tokens":7}}', { input: 7, output: 0 }],
    ['messages', '{"usage":{"input_tokens":1,"output_tokens":2}}', { input: 1, output: 2 }],
    [
      'a stream',
      'data: {"usage":null}\n\ndata: {"choices":[],"usage":{"completion_tokens":5,"prompt_tokens":3}}\n\ndata: [DONE]\n\n',
      { input: 3, output: 5 },
    ],
    [
      'a cached prompt',
      '{"usage":{"completion_tokens":5,"prompt_tokens":30,"prompt_tokens_details":{"cached_tokens":20}}}',
      { input: 30, output: 5, cached: 20 },
    ],
    [
      'messages with a cached prompt',
      '{"usage":{"cache_read_input_tokens":20,"input_tokens":10,"output_tokens":5}}',
      { input: 30, output: 5, cached: 20 },
    ],
    [
      'a stream of llama-server',
      'data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"timings":{"cache_n":20,"prompt_n":10,"prompt_ms":3.5,"predicted_n":5}}\n\ndata: [DONE]\n\n',
      { input: 30, output: 5, cached: 20 },
    ],
    ['timings of an old llama-server', '{"timings":{"prompt_n":10,"predicted_n":5}}', { input: 10, output: 5 }],
    [
      'timings besides a usage of null',
      '{"usage":null,"timings":{"cache_n":0,"prompt_n":10,"predicted_n":5}}',
      { input: 10, output: 5, cached: 0 },
    ],
    [
      'more cached than asked',
      '{"usage":{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":99}}}',
      { input: 3, output: 0, cached: 3 },
    ],
    ['a negative prompt', '{"usage":{"prompt_tokens":-3,"completion_tokens":5}}', undefined],
    ['a negative answer', '{"usage":{"prompt_tokens":3,"completion_tokens":-5}}', { input: 3, output: 0 }],
    ['an absurd prompt', '{"usage":{"prompt_tokens":123456789012,"completion_tokens":5}}', undefined],
    ['negative timings', '{"timings":{"prompt_n":-1,"predicted_n":5}}', undefined],
    ['an answer without', '{"choices":[]}', undefined],
    ['a stream without', 'data: {"usage":null}\n\n', undefined],
  ])('finds the counts of %s', (_what, tail, usage) => {
    expect(findUsage(tail)).toEqual(usage);
  });

  test('adds the prompt that the beginning of a stream has counted', () => {
    const begun = findUsage(
      'event: message_start\ndata: {"message":{"usage":{"cache_read_input_tokens":2,"input_tokens":3,"output_tokens":0}}}\n\n',
    );
    const end = 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":9}}\n\n';
    expect(findUsage(end, begun)).toEqual({ input: 5, output: 9, cached: 2 });
    expect(findUsage(end)).toBeUndefined();
  });

  test('finds valid counts or none in any text', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, after) => {
        const usage = findUsage(`${before}"usage":{${after}`);
        if (usage !== undefined) expect(Number.isSafeInteger(usage.input) && Number.isSafeInteger(usage.output)).toBe(true);
      }),
    );
  });
});

test.each([
  ['a whole stream', 40, 'data: {}\n\n'.repeat(4), 4],
  ['the end of a long one', 1000, 'data: {}\n\n'.repeat(4), 100],
  ['lines that end with CR LF', 24, 'data: {}\r\n\r\n'.repeat(2), 2],
  ['a piece of an event', 40, 'data: {"choices"', undefined],
])('estimateUsage() counts the events of %s', (_what, bytes, tail, output) => {
  expect(estimateUsage(bytes, tail)).toEqual(output === undefined ? undefined : { input: 0, output, isEstimated: true });
});
