import { describe, expect, test } from '@jest/globals';
import { hourOf, OTHERS, sumUsage, type UsageRow } from '../../src/usage/decide/usage-rows.ts';
import { PendingRows } from '../../src/usage/pending-rows.ts';
import { slotName } from '../gateway/support/board-fixture.ts';

const slot = slotName('primary');
const finished = { slot, caller: 'token:1a2b3c4d', route: '/v1/chat/completions', status: 200, seconds: 1 };

function rowsOf(...requests: readonly (readonly [object, number?, string?])[]): readonly UsageRow[] {
  const pending = new PendingRows();
  for (const [more, hour = 7, model = 'fox'] of requests) pending.add({ ...finished, ...more }, hour, { model });
  return pending.rows();
}

describe('a finished request', () => {
  test.each([
    [
      'with tokens',
      { tokens: { input: 30, output: 5, cached: 20 } },
      { requests: 1, input: 30, output: 5, cached: 20, estimated: 0, errors: 0 },
    ],
    ['with guessed tokens', { tokens: { input: 0, output: 5, isEstimated: true } }, { input: 0, output: 5, estimated: 1 }],
    ['that waited', { seconds: 3, parkedSeconds: 2 }, { queueMs: 2000, busyMs: 1000 }],
    ['that failed', { status: 502 }, { requests: 1, errors: 1 }],
    ['that its client left', { status: 499 }, { errors: 1 }],
    ['that reached no slot', { slot: undefined, status: 404 }, { slot: '', requests: 1, errors: 1, busyMs: 0 }],
    ['of the service itself', { caller: undefined }, { caller: '', requests: 1 }],
    ['with a long name', { caller: `user:${'x'.repeat(5000)}` }, { caller: `user:${'x'.repeat(195)}` }],
    ['with half a character', { caller: 'user:\ud800' }, { caller: 'user:\ufffd' }],
    ['that was heard', { media: { audioSeconds: 2.5 } }, { audioMs: 2500, images: 0 }],
    ['with images', { media: { images: 3 } }, { audioMs: 0, images: 3 }],
    ['of no time at all', { seconds: Number.NaN }, { busyMs: 0 }],
  ])('%s is counted', (_what, more, row) => {
    expect(rowsOf([more])).toMatchObject([row]);
  });
});

test('hours, callers, slots and models have rows of their own', () => {
  const embed = { slot: slotName('embed') };
  const rows = rowsOf([{}], [{}], [{}, 7, 'owl'], [{}, 8, 'owl'], [{ caller: 'local' }, 8, 'owl'], [embed, 8, 'owl']);
  expect(rows.map(({ requests }) => requests)).toEqual([2, 1, 1, 1, 1]);
});

test('a clock that is set back adds to the earlier hour', () => {
  expect(rowsOf([{}, 7], [{}, 9], [{}, 7])).toMatchObject([
    { hour: 7, requests: 2 },
    { hour: 9, requests: 1 },
  ]);
  expect([hourOf(3_599_999), hourOf(3_600_000)]).toEqual([0, 1]);
});

describe('100,000 callers', () => {
  test('in an hour: the first ones have rows of their own, and nothing is lost', () => {
    const pending = new PendingRows();
    for (let caller = 0; caller < 100_000; caller += 1) pending.add({ ...finished, caller: `user:${caller}` }, 7, { model: 'fox' });
    pending.add({ ...finished, caller: 'user:1' }, 7, { model: 'fox' });
    const rows = pending.rows();
    expect(rows.length).toBe(10_001);
    expect(rows.find(({ caller }) => caller === 'user:1')?.requests).toBe(2);
    expect(rows.find(({ caller }) => caller === OTHERS)?.requests).toBe(90_000);
    expect(sumUsage(rows, [])).toMatchObject([{ requests: 100_001 }]);
  });

  test('over hours without a store: memory is bounded, and nothing is lost', () => {
    const pending = new PendingRows();
    for (let each = 0; each < 200_000; each += 1)
      pending.add({ ...finished, caller: `user:${each % 5000}`, slot: slotName(`s${each % 3}`) }, Math.floor(each / 5000), {
        model: 'fox',
      });
    expect(pending.size).toBeLessThan(20_200);
    expect(sumUsage(pending.rows(), [])).toMatchObject([{ requests: 200_000 }]);
  });
});

test('callers whose names begin with the same 200 characters are one row', () => {
  const long = 'x'.repeat(300);
  expect(rowsOf([{ caller: `${long}1` }], [{ caller: `${long}2` }], [{}, 7, `${long}1`], [{}, 7, `${long}2`])).toMatchObject([
    { caller: 'x'.repeat(200), requests: 2 },
    { model: 'x'.repeat(200), requests: 2 },
  ]);
});

test('rows that are put back add up with those that came meanwhile', () => {
  const pending = new PendingRows();
  pending.add(finished, 7, { model: 'fox' });
  const taken = pending.take();
  expect(pending.size).toBe(0);
  pending.add(finished, 7, { model: 'fox' });
  pending.putBack(taken);
  expect(pending.rows()).toMatchObject([{ requests: 2, busyMs: 2000 }]);
});

describe('the price of a slot', () => {
  const tokens = { input: 3, output: 4, cached: 1 };

  test('counts for each request as it is then, apart for each currency', () => {
    const pending = new PendingRows();
    const eur = { currency: 'EUR', outputTokens: 1 };
    pending.add({ ...finished, tokens }, 7, { model: 'fox', price: eur });
    pending.add({ ...finished, tokens }, 7, { model: 'fox', price: { ...eur, outputTokens: 10 } });
    pending.add({ ...finished, tokens }, 7, { model: 'fox', price: { currency: 'USD', outputTokens: 1 } });
    pending.add({ ...finished, tokens }, 7, { model: 'fox' });
    expect(pending.rows().map(({ currency, nanos, requests }) => [currency, nanos, requests])).toEqual([
      ['EUR', 44_000, 2],
      ['USD', 4000, 1],
      ['', 0, 1],
    ]);
    expect(sumUsage(pending.rows(), []).map(({ currency, requests }) => [currency, requests])).toEqual([
      ['', 1],
      ['EUR', 2],
      ['USD', 1],
    ]);
  });

  test('changes nothing else of a row', () => {
    const [without, priced] = [undefined, { currency: 'EUR', promptTokens: 2, image: 1, audioMinute: 1 }].map((price) => {
      const pending = new PendingRows();
      pending.add({ ...finished, tokens, media: { audioSeconds: 9 } }, 7, { model: 'fox', price });
      return pending.rows()[0];
    });
    expect({ ...priced, currency: '', nanos: 0 }).toEqual(without);
  });
});
