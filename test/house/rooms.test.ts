/** The shape of src/: rooms that can be overlooked, and names that lead to one file. */
import { basename, dirname } from 'node:path';
import { expect, test } from '@jest/globals';
import { sourcesOf } from './import-graph.ts';

const sources = sourcesOf('src');

function countBy(paths: Iterable<string>, keyOf: (path: string) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(keyOf(path), (counts.get(keyOf(path)) ?? 0) + 1);
  return counts;
}

const over = (counts: ReadonlyMap<string, number>, limit: number) => [...counts].filter(([, count]) => count > limit).map(([key]) => key);

test('no folder has more than 25 files', () => {
  expect(over(countBy(sources.keys(), dirname), 25)).toEqual([]);
});

test('no two files share a name, except for ports.ts', () => {
  expect(
    over(
      countBy(sources.keys(), (path) => basename(path)),
      1,
    ),
  ).toEqual(['ports.ts']);
});

/** A feature may bring files. What must not come back is several files for one thought. */
test('at most 667 files, and at most 20 of them under 30 lines', () => {
  const small = [...sources].filter(([, text]) => text.split('\n').length - 1 < 30).map(([path]) => path);
  expect(sources.size).toBeLessThanOrEqual(667);
  expect(small.length).toBeLessThanOrEqual(20);
});
