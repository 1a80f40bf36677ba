import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { findUsage } from '../../../../src/gateway/upstream/decide/judge-answer.ts';

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
    ['an answer without', '{"choices":[]}', undefined],
    ['a stream without', 'data: {"usage":null}\n\n', undefined],
  ])('finds the counts of %s', (_what, tail, usage) => {
    expect(findUsage(tail)).toEqual(usage);
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
