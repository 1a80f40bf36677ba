import { describe, expect, test } from '@jest/globals';
import { parseRefusal } from '../../../../src/cluster/client/decide/parse-refusal.ts';

const REQUEST = { verb: 'list', resource: 'pods', namespace: 'models', name: '', server: 'https://kube' };
const NOW = 1_000_000;
const until = (retryAfter: string | undefined, random: number, status = 429): number | undefined =>
  parseRefusal(REQUEST, { status, retryAfter, text: 'busy' }, { now: NOW, random }).until;

describe('parseRefusal()', () => {
  test.each([
    ['1', 429, 1000, 2000],
    ['5', 503, 5000, 10_000],
    ['0', 429, 0, 1000],
    // More than the longest time that we accept.
    ['86400', 429, 300_000, 330_000],
  ])('waits at least the %s s of "Retry-After", and spreads the replicas that were refused together', (header, status, least, most) => {
    expect(until(header, 0, status)).toBe(NOW + least);
    expect(until(header, 0.5, status)).toBe(NOW + (least + most) / 2);
    expect(until(header, 0.999, status)).toBeLessThan(NOW + most);
  });

  test('names no time where the server names none', () => {
    expect(until(undefined, 0.5)).toBeUndefined();
    expect(until('Wed, 21 Oct 2026 07:28:00 GMT', 0.5)).toBeUndefined();
  });

  test('fifty replicas that were refused in the same moment return over five seconds, not in one', () => {
    const seconds = Array.from({ length: 50 }, (_, index) => Math.floor(((until('5', index / 50) ?? 0) - NOW) / 1000));
    for (const second of [5, 6, 7, 8, 9]) expect(seconds.filter((each) => each === second)).toHaveLength(10);
  });
});
