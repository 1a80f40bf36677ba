/** What a client is told of its limits: each number as it is. */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createCallerLimits } from '../../../src/gateway/traffic/admit-caller.ts';
import type { LimitState, LimitStates } from '../../../src/gateway/traffic/caller-account.ts';

const caller = { key: 'token:1a2b3c4d', limits: { requests_per_minute: 1 } };

const linesOf = (what: string, { limit, remaining, resetMs }: LimitState): string =>
  [
    `x-ratelimit-limit-${what}: ${limit}\r\n`,
    `x-ratelimit-remaining-${what}: ${Math.floor(remaining)}\r\n`,
    `x-ratelimit-reset-${what}: ${Math.ceil(resetMs / 1000)}s\r\n`,
  ].join('');

test('The headers have the numbers of each request, whatever was told before', () => {
  let states: LimitStates = { requests: undefined, tokens: undefined };
  const admit = createCallerLimits({ hold: () => ({ over: undefined, states }), settle: () => undefined });
  const count = fc.oneof(fc.nat({ max: 2000 }), fc.nat(), fc.maxSafeNat());
  const remaining = fc.oneof(count, fc.double({ min: 0, max: 1e12, noNaN: true }));
  const state = fc.record({ limit: count, remaining, resetMs: fc.double({ min: 0, max: 90_000_000, noNaN: true }) });
  fc.assert(
    fc.property(fc.option(state, { nil: undefined }), fc.option(state, { nil: undefined }), (requests, tokens) => {
      states = { requests, tokens };
      const expected = `${requests === undefined ? '' : linesOf('requests', requests)}${tokens === undefined ? '' : linesOf('tokens', tokens)}`;
      expect(admit(caller, 600)).toMatchObject({ kind: 'admitted', headerLines: expected });
    }),
    { numRuns: 5000 },
  );
});
