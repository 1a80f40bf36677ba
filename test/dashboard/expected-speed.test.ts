import { describe, expect, test } from '@jest/globals';
import { expectedSpeed, measuredSpeeds } from '../../dashboard/src/decide/expected-speed.ts';
import { modelEntry, usageRow } from './rows.ts';

const GB = 1e9;
const used = (model: string | null, tokens: number, seconds: number, guessed = 0) =>
  usageRow({ model, output_tokens: tokens, busy_seconds: seconds, estimated_requests: guessed });
const model = (id: string, size: number | null) => modelEntry({ id, size_bytes: size });

describe('the expected speed of a model', () => {
  test('comes from models that have written enough here, and whose size and tokens are known', () => {
    const models = [model('a', 4 * GB), model('b', null), model('c', GB), model('d', GB), model('e', GB)];
    const usage = [
      used('a', 1000, 50),
      used('b', 1000, 50),
      used('c', 199, 10),
      used('d', 1000, 0),
      used('e', 1000, 10, 1),
      used(null, 9000, 1),
    ];
    expect(measuredSpeeds(usage, models)).toEqual([{ model: 'a', sizeBytes: 4 * GB, tokensPerSecond: 20 }]);
  });

  test('follows from the model nearest in size, by its size', () => {
    const measured = [
      { model: 'small', sizeBytes: GB, tokensPerSecond: 60 },
      { model: 'large', sizeBytes: 20 * GB, tokensPerSecond: 4 },
    ];
    expect(expectedSpeed(2 * GB, measured)).toEqual({ tokensPerSecond: 30, like: 'small' });
    expect(expectedSpeed(40 * GB, measured)).toEqual({ tokensPerSecond: 2, like: 'large' });
    expect(expectedSpeed(200 * GB, measured)).toBeUndefined();
    expect(expectedSpeed(2 * GB, [])).toBeUndefined();
    expect(expectedSpeed(0, measured)).toBeUndefined();
  });
});
