import { describe, expect, test } from '@jest/globals';
import { formatCost, formatEnergy, totalOf } from '../../dashboard/src/decide/usage-totals.ts';

describe('usage', () => {
  const row = {
    requests: 1,
    errors: 0,
    input_tokens: 10,
    cached_tokens: 4,
    output_tokens: 5,
    estimated_requests: 0,
    busy_seconds: 0.5,
    audio_seconds: null,
    energy_wh: null,
    loads: 1,
    evictions: 0,
  };
  const eur = (amount: number) => ({ currency: 'EUR', amount });

  test('is added up, but not over currencies', () => {
    const rows = [
      { ...row, images: 2, energy_wh: 1.5, cost: [eur(1)] },
      { ...row, images: 1, cost: [eur(0.5), { currency: 'USD', amount: 2 }] },
      { ...row, images: null, errors: 1, evictions: 2, cost: [] },
    ];
    expect(totalOf(rows)).toEqual({
      requests: 3,
      errors: 1,
      input_tokens: 30,
      cached_tokens: 12,
      output_tokens: 15,
      estimated_requests: 0,
      busy_seconds: 1.5,
      audio_seconds: null,
      images: 3,
      energy_wh: 1.5,
      loads: 3,
      evictions: 2,
      cost: [eur(1.5), { currency: 'USD', amount: 2 }],
    });
    expect(totalOf([])).toMatchObject({ requests: 0, cost: [] });
  });

  test.each([
    [1.234, '~1.23 Wh'],
    [0.000_123, '~0.00012 Wh'],
    [12_345.6, '~12.35 kWh'],
  ])('the energy %j is shown as %j', (wh, text) => {
    expect(formatEnergy(wh)).toBe(text);
  });

  test.each([
    [[], ''],
    [[eur(1234.5)], '1,234.50 EUR'],
    [[eur(0)], '0.00 EUR'],
    [[eur(0.001_234)], '0.0012 EUR'],
    [[eur(0.000_001)], '0.000001 EUR'],
    [[eur(1), { currency: 'USD', amount: 0.01 }], '1.00 EUR + 0.01 USD'],
  ])('the cost %j is shown as %j', (cost, text) => {
    expect(formatCost(cost)).toBe(text);
  });
});
