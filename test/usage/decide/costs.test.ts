import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PriceTable, type Price } from '../../../src/schema/slot/scaling.ts';
import { costOf } from '../../../src/usage/decide/usage-rows.ts';

const EUR = { currency: 'EUR' };
const TOKENS = { input: 1_000_000, cached: 400_000, output: 2_000_000 };

describe('costOf()', () => {
  test.each([
    ['no price', EUR, { tokens: TOKENS, media: { images: 2, audioSeconds: 90 } }, 0],
    ['prompts, where cached ones have no price of their own', { ...EUR, promptTokens: 0.5 }, { tokens: TOKENS }, 0.5],
    ['prompts with cheaper cached ones', { ...EUR, promptTokens: 0.5, cachedTokens: 0.1 }, { tokens: TOKENS }, 0.34],
    ['prompts with free cached ones', { ...EUR, promptTokens: 0.5, cachedTokens: 0 }, { tokens: TOKENS }, 0.3],
    ['answers', { ...EUR, outputTokens: 3 }, { tokens: TOKENS }, 6],
    ['an embedding of one token', { ...EUR, promptTokens: 0.02 }, { tokens: { input: 1, output: 0 } }, 0.000_000_02],
    ['guessed tokens', { ...EUR, outputTokens: 3 }, { tokens: { input: 0, output: 1_000_000, isEstimated: true as const } }, 3],
    ['images', { ...EUR, image: 0.04 }, { media: { images: 2 } }, 0.08],
    ['sound', { ...EUR, audioMinute: 0.006 }, { media: { audioSeconds: 90 } }, 0.009],
    ['what is not known', { ...EUR, image: 1, audioMinute: 1, promptTokens: 1, outputTokens: 1 }, {}, 0],
    ['more cached tokens than tokens', { ...EUR, promptTokens: 1, cachedTokens: 0 }, { tokens: { input: 1, cached: 9, output: 0 } }, 0],
    [
      'a recording of a hundred days, at the highest price',
      { ...EUR, audioMinute: 10_000 },
      { media: { audioSeconds: 9e6 } },
      9_007_199.254_740_991,
    ],
  ])('%s', (_what, price, request, amount) => {
    expect(costOf(request, price)).toBe(Math.round(amount * 1e9));
  });

  test('is a whole number, and the sum of its parts', () => {
    const amount = fc.double({ min: 0, max: 10_000, noNaN: true });
    const price = fc.record({ currency: fc.constant('EUR'), promptTokens: amount, outputTokens: amount }, { requiredKeys: ['currency'] });
    const count = fc.nat({ max: 99_999_999 });
    fc.assert(
      fc.property(price, count, count, (each: Price, input, output) => {
        const [all, ofInput, ofOutput] = [
          { input, output },
          { input, output: 0 },
          { input: 0, output },
        ].map((tokens) => costOf({ tokens }, each));
        expect(Number.isInteger(all)).toBe(true);
        expect(Math.abs((all ?? 0) - (ofInput ?? 0) - (ofOutput ?? 0))).toBeLessThanOrEqual(2);
      }),
    );
  });
});

test.each([
  [{}, 'currency'],
  [{ currency: 'euro' }, 'such as "EUR"'],
  [{ ...EUR, promptTokens: -1 }, 'promptTokens'],
  [{ ...EUR, image: 20_000 }, 'image'],
  [{ ...EUR, outputTokens: Number.POSITIVE_INFINITY }, 'outputTokens'],
  [{ ...EUR, tokens: 1 }, 'tokens'],
])('a price like %j is refused', (price, why) => {
  const parsed = PriceTable.safeParse(price);
  expect(JSON.stringify(parsed.error?.issues)).toContain(why.replaceAll('"', '\\"'));
});
