import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseHubName } from '../../../src/models/decide/parse-model-name.ts';

describe('parseHubName()', () => {
  test.each([
    ['hf:unsloth/Qwen3-4B-GGUF', { repo: 'unsloth/Qwen3-4B-GGUF' }],
    ['hf:unsloth/Qwen3-4B-GGUF:Q4_K_M', { repo: 'unsloth/Qwen3-4B-GGUF', quantisation: 'Q4_K_M' }],
    ['hf:o/r:UD-Q4_K_XL', { repo: 'o/r', quantisation: 'UD-Q4_K_XL' }],
    ['hf:o/r/m.gguf', { repo: 'o/r', file: 'm.gguf' }],
    ['hf:o/r/BF16/m-00001-of-00002.gguf', { repo: 'o/r', file: 'BF16/m-00001-of-00002.gguf' }],
  ])('%s', (text, name) => {
    expect(parseHubName(text)).toEqual({ kind: 'hub', name });
  });

  test.each(['demo-fox', 'own/m.gguf', 'HF:o/r', '', 'https://huggingface.co/o/r'])('%p is something else', (text) => {
    expect(parseHubName(text)).toEqual({ kind: 'other' });
  });

  test.each([
    'hf:',
    'hf:o',
    'hf:o/',
    'hf:/r',
    'hf:o/r:',
    'hf:o/r:a:b',
    'hf:o/r:Q4/m.gguf',
    'hf:o/r/',
    'hf:o/r/../../etc/passwd',
    'hf:../r',
    'hf:o/..',
    'hf:o/r/a//b',
    'hf:o/r/a\0b',
    'hf:o/r?x=1',
    `hf:o/${'r'.repeat(4096)}`,
  ])('%p is refused with an example', (text) => {
    expect(parseHubName(text)).toMatchObject({ kind: 'invalid', message: expect.stringContaining('hf:owner/repo') });
  });

  test('never throws, and no path that it accepts leaves its directory', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '.', '/', ':', '\0', '-', 'hf:', '..') }), (tail) => {
        const parsed = parseHubName(`hf:${tail}`);
        if (parsed.kind !== 'hub') return;
        const parts = `${parsed.name.repo}/${parsed.name.file ?? 'x'}`.split('/');
        expect(parts.filter((part) => ['', '.', '..'].includes(part))).toEqual([]);
      }),
    );
  });
});
