import { describe, expect, test } from '@jest/globals';
import { requestCode } from '../../../../src/cluster/client/decide/parse-refusal.ts';
import { fail, ok, type Result } from '../../../../src/schema/words/failure.ts';

const CASES: readonly [Result<{ readonly status: number }>, string][] = [
  [ok({ status: 200 }), '200'],
  [ok({ status: 429 }), '429'],
  [ok({ status: 999 }), '599'],
  [fail('retry', 'ApiUnreachable', ''), 'unreachable'],
  [fail('retry', 'ApiUntrusted', ''), 'untrusted'],
  [fail('retry', 'Unauthorized', ''), 'no_credentials'],
  [fail('retry', 'Aborted', ''), 'aborted'],
  [fail('retry', 'ApiFailed', ''), 'unreachable'],
];

describe('requestCode()', () => {
  test.each(CASES)('%j is "%s"', (answer, code) => {
    expect(requestCode(answer)).toBe(code);
  });

  test('has a bounded number of values whatever a server answers', () => {
    const codes = new Set(Array.from({ length: 900 }, (_, index) => requestCode(ok({ status: 100 + index }))));
    expect(codes.size).toBe(500);
  });
});
