import { expect, test } from '@jest/globals';
import { orderOfRound } from '../../bench/decide/order-of-round.ts';

const places = (count: number, first: number): readonly number[][] => {
  const subjects = Array.from({ length: count }, (_none, index) => index);
  const taken = subjects.map((): number[] => []);
  for (let round = first; round < first + 2 * count; round += 1)
    for (const [place, subject] of orderOfRound(subjects, round).entries()) taken[subject]?.push(place);
  return taken.map((each) => each.toSorted((a, b) => a - b));
};

test.each([1, 2, 3, 5, 6])('each of %i subjects takes every place as often as the others', (count) => {
  const twice = Array.from({ length: 2 * count }, (_none, index) => Math.floor(index / 2));
  for (const first of [-30, -1, 0, 7]) expect(places(count, first)).toEqual(Array.from({ length: count }, () => twice));
});

test.each([4, 5, 6])('none of %i subjects runs twice in a row', (count) => {
  const subjects = Array.from({ length: count }, (_none, index) => index);
  const runs = Array.from({ length: 4 * count }, (_none, round) => orderOfRound(subjects, round - count)).flat();
  for (const [index, subject] of runs.entries()) expect(runs[index + 1]).not.toBe(subject);
});

test('there may be none', () => expect(orderOfRound([], 3)).toEqual([]));
