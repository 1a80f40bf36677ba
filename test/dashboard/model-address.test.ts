import { describe, expect, test } from '@jest/globals';
import { parseModelAddress } from '../../dashboard/src/decide/model-address.ts';

describe('an address of a model', () => {
  test.each([
    ['hf:owner/repo', 'hf:owner/repo'],
    [' hf:owner/repo:Q4_K_M ', 'hf:owner/repo:Q4_K_M'],
    ['hf://owner/repo', 'hf:owner/repo'],
    ['owner/Repo-GGUF', 'hf:owner/Repo-GGUF'],
    ['https://huggingface.co/owner/repo', 'hf:owner/repo'],
    ['https://hf.co/owner/repo:Q8_0', 'hf:owner/repo:Q8_0'],
    ['huggingface.co/owner/repo/tree/main', 'hf:owner/repo'],
    ['https://huggingface.co/owner/repo/blob/main/sub/m-Q4_K_M.gguf', 'hf:owner/repo/sub/m-Q4_K_M.gguf'],
    ['https://huggingface.co/owner/repo/resolve/main/m%20x.gguf?download=true', 'hf:owner/repo/m x.gguf'],
    ['hf:owner/repo/m.gguf', 'hf:owner/repo/m.gguf'],
    ['https://huggingface.co/owner/repo/discussions/4#x', 'hf:owner/repo'],
  ])('"%s" names "%s" of the Hub', (text, id) => expect(parseModelAddress(text)).toEqual({ kind: 'hub', id }));

  test.each([
    ['https://example.org/models/m-Q8_0.gguf?token=1', 'm-Q8_0.gguf'],
    ['http://10.0.0.1:8000/a%20b.gguf', 'a-b.gguf'],
    ['https://example.org/', ''],
    ['https://example.org/%E0%A4%A', 'E0-A4-A'],
  ])('"%s" is a file with the name "%s"', (url, name) => expect(parseModelAddress(url)).toEqual({ kind: 'file', url, name }));

  test.each(['', 'qwen', 'qwen coder 7b', 'owner/', '/repo', 'a/b/c', 'javascript:alert(1)', 'ftp://example.org/x.gguf', 'https://'])(
    '"%s" is to be searched for',
    (text) => expect(parseModelAddress(text)).toBeUndefined(),
  );
});
