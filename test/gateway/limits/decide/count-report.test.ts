import { expect, test } from '@jest/globals';
import { composeReport, extraOf, overOf, shareOf } from '../../../../src/gateway/limits/decide/count-report.ts';
import { NO_AMOUNTS } from '../../../../src/gateway/traffic/caller-account.ts';
import type { CallerLimits } from '../../../../src/schema/words/caller-limits.ts';

const COUNTS = [
  [3, 1000],
  [40, 1000],
  [50, 9000],
  [2, 10_000],
];
const NEED = { requests: 1, tokens: 500, inFlight: 1 };
const compose = (limits: CallerLimits, need = NEED) => composeReport(COUNTS, need, limits, 2);

test('a report has the counts of the limits that there are', () => {
  expect(compose({ requests_per_minute: 60, tokens_per_day: 1000 })).toMatchObject({
    counts: [[3, 1000], [], [50, 9000], []],
    need: [1, 500, 500, 1],
    limits: [60, -1, 1000, -1],
    part: 1 / 8,
  });
});

test('a request that seems larger than a limit of tokens asks for all of it', () => {
  expect(compose({ tokens_per_minute: 300, tokens_per_day: 400 }).need).toEqual([1, 300, 400, 1]);
});

test('a report that needs nothing asks for nothing besides', () => {
  expect(compose({ requests_per_minute: 60 }, NO_AMOUNTS)).toMatchObject({ need: [0, 0, 0, 0], part: 0 });
});

test.each([
  [
    { tokens_per_minute: 9, tokens_per_day: 9 },
    { requests: 5, tokens: 20, inFlight: 2 },
  ],
  [{ tokens_per_minute: 9 }, { requests: 5, tokens: 70, inFlight: 2 }],
  [{ tokens_per_day: 9 }, { requests: 5, tokens: 20, inFlight: 2 }],
  [{ requests_per_minute: 9 }, { requests: 5, tokens: 0, inFlight: 2 }],
])('within %j, tokens are granted as far as all limits of tokens allow', (limits, granted) => {
  expect(extraOf([5, 70, 20, 2], limits)).toEqual(granted);
});

test.each([
  [1, 'limit.requests', 'requests_per_minute'],
  [2, 'limit.tokens', 'tokens_per_minute'],
  [3, 'limit.tokens', 'tokens_per_day'],
  [4, 'limit.in_flight', 'max_in_flight'],
])('limit %i is refused with %s', (over, code, key) => {
  expect(overOf(over)).toEqual({ code, message: expect.stringContaining(`"${key}", over all gateways`), waitMs: 1 });
});

const ALL: CallerLimits = {
  models: ['primary'],
  requests_per_minute: 100,
  tokens_per_minute: 1001,
  tokens_per_day: 3,
  max_in_flight: 1,
  max_output_tokens: 30,
  weight: 9,
};

test.each([
  [0, ALL],
  [1, ALL],
  [2, { ...ALL, requests_per_minute: 50, tokens_per_minute: 501, tokens_per_day: 2 }],
  [3, { ...ALL, requests_per_minute: 34, tokens_per_minute: 334, tokens_per_day: 1 }],
  [1000, { ...ALL, requests_per_minute: 1, tokens_per_minute: 2, tokens_per_day: 1 }],
])('of %i gateways, each enforces a part of what is counted, and at least 1', (gateways, part) => {
  expect(shareOf(ALL, gateways)).toEqual(part);
});

test('limits that a caller does not have stay absent', () => {
  expect(shareOf({ models: ['primary'] }, 3)).toEqual({ models: ['primary'] });
});
