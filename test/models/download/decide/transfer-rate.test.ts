import { expect, test } from '@jest/globals';
import { addSample, bytesPerSecond, type RateSample } from '../../../../src/models/download/decide/transfer-pace.ts';

const samplesOf = (...samples: readonly [number, number][]): readonly RateSample[] =>
  samples.reduce<readonly RateSample[]>((all, [at, bytes]) => addSample(all, { at, bytes }), []);

test.each<[string, readonly [number, number][], number | undefined]>([
  ['no samples', [], undefined],
  ['one sample', [[0, 0]], undefined],
  [
    'too little time',
    [
      [0, 0],
      [400, 1000],
    ],
    undefined,
  ],
  [
    'two samples',
    [
      [0, 0],
      [2000, 1000],
    ],
    500,
  ],
  [
    'a new speed after ten seconds',
    [
      [0, 0],
      [10_000, 1000],
      [11_000, 1000],
      [20_001, 91_000],
    ],
    10_000,
  ],
  [
    'a block that was damaged',
    [
      [0, 1000],
      [1000, 0],
    ],
    0,
  ],
])('the speed with %s', (_, samples, expected) => {
  const speed = bytesPerSecond(samplesOf(...samples));
  if (expected === undefined) expect(speed).toBeUndefined();
  else expect(Math.abs((speed ?? NaN) - expected)).toBeLessThan(0.01 * expected + 1);
});
