/** A row of one request, for the tests of the store. */
import { noCounts, type UsageRow } from '../../src/usage/decide/usage-rows.ts';

export const rowOf = (hour: number, more: Partial<UsageRow> = {}): UsageRow => ({
  hour,
  caller: 'token:1a2b3c4d',
  slot: 'primary',
  model: 'fox',
  currency: '',
  ...noCounts(),
  requests: 1,
  ...more,
});
