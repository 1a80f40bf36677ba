import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { errorAnswer } from '../../../../src/gateway/route/decide/dialects.ts';
import type { ErrorCode } from '../../../../src/schema/words/error-codes.ts';

const retryAfter = (code: ErrorCode, requestId: string): number =>
  Number(errorAnswer(code, 'Try again', { requestId }).headers['retry-after']);

describe('errorAnswer()', () => {
  test.each([
    ['slot.queue_full', 5, 10],
    ['slot.loading', 10, 20],
    ['server.overloaded', 1, 4],
  ] as const)('spreads the retries of clients that get "%s" at the same time over %s to %s seconds', (code, least, most) => {
    const seconds = Array.from({ length: 2000 }, () => retryAfter(code, randomUUID()));
    const counts = new Map(seconds.map((each) => [each, seconds.filter((other) => other === each).length]));
    expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual(Array.from({ length: most - least + 1 }, (_, index) => least + index));
    // No second gets more than twice its share.
    expect(Math.max(...counts.values())).toBeLessThan((2 * seconds.length) / (most - least + 1));
  });

  test('says the same again for the same request, and nothing where waiting does not help', () => {
    expect(new Set(Array.from({ length: 20 }, () => retryAfter('slot.loading', 'req-1'))).size).toBe(1);
    expect(errorAnswer('slot.disabled', 'It is off', { requestId: 'a' }).headers).not.toHaveProperty('retry-after');
  });
});
