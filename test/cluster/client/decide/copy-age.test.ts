import { describe, expect, test } from '@jest/globals';
import {
  afterReceived,
  afterWatchEnded,
  afterWatchOpened,
  confirmed,
  copyAgeMs,
  type CopyAge,
} from '../../../../src/cluster/client/decide/choose-list.ts';

type Step = readonly [atMs: number, what: 'listed' | 'opened' | 'received' | 'ended' | 'broken'];

const STEPS: Readonly<Record<Step[1], (age: CopyAge, at: number) => CopyAge>> = {
  listed: (_age, at) => confirmed(at),
  opened: afterWatchOpened,
  received: afterReceived,
  ended: (age, at) => afterWatchEnded(age, true, at),
  broken: (age, at) => afterWatchEnded(age, false, at),
};

const HOUR = 3_600_000;

const CASES: readonly [what: string, steps: readonly Step[], now: number, ageMs: number][] = [
  ['ages from the start while no list succeeds', [], 90_000, 90_000],
  ['is as old as its list until the watch is open', [[5000, 'listed']], 7000, 2000],
  [
    'ages during the first seconds of a silent watch',
    [
      [0, 'listed'],
      [100, 'opened'],
    ],
    9000,
    9000,
  ],
  [
    'is current on a watch that has been silent for hours',
    [
      [0, 'listed'],
      [100, 'opened'],
    ],
    5 * HOUR,
    0,
  ],
  [
    'is current as soon as something was received',
    [
      [0, 'listed'],
      [100, 'opened'],
      [4000, 'received'],
    ],
    4001,
    0,
  ],
  [
    'is current between two bookmarks',
    [
      [0, 'listed'],
      [100, 'opened'],
      [60_000, 'received'],
    ],
    119_000,
    0,
  ],
  [
    'ages from the end of a watch that the server ended',
    [
      [0, 'listed'],
      [0, 'opened'],
      [HOUR, 'ended'],
    ],
    HOUR + 3000,
    3000,
  ],
  [
    'ages from the last event of a watch that broke, because later ones may be missing',
    [
      [0, 'listed'],
      [0, 'opened'],
      [50_000, 'received'],
      [230_000, 'broken'],
    ],
    230_000,
    180_000,
  ],
  [
    'ages from the list if a silent watch turns out to be broken',
    [
      [0, 'listed'],
      [0, 'opened'],
      [300_000, 'broken'],
    ],
    300_000,
    300_000,
  ],
  [
    'is not refreshed by watches that end at once',
    [
      [0, 'listed'],
      [100, 'opened'],
      [150, 'ended'],
      [30_000, 'opened'],
    ],
    30_050,
    30_050,
  ],
  [
    'is refreshed by a short watch that delivered something',
    [
      [0, 'listed'],
      [100, 'opened'],
      [120, 'received'],
      [150, 'ended'],
    ],
    1150,
    1000,
  ],
  [
    'is refreshed by a list after an outage',
    [
      [0, 'listed'],
      [0, 'opened'],
      [HOUR, 'broken'],
      [2 * HOUR, 'listed'],
    ],
    2 * HOUR + 10,
    10,
  ],
];

describe('copyAgeMs()', () => {
  test.each(CASES)('a copy %s', (_what, steps, now, ageMs) => {
    let age = confirmed(0);
    for (const [at, what] of steps) age = STEPS[what](age, at);
    expect(copyAgeMs(age, now)).toBe(ageMs);
  });
});
