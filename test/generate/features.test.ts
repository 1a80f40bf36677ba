/** The comparisons of the README and of docs/coming-from.md are drawn from one table. */
import { expect, test } from '@jest/globals';
import { absentTable, comparisonTable, migrationTable, parseFeatures, sourceTable } from '../../scripts/generate/publish-features.ts';

const FEATURES = parseFeatures(`
[peers.one]
name = "One"
read = "2026-08"
[peers.one.sources]
docs = "https://one.example/docs"
[peers.two]
name = "Two"
read = "2026-09"
[peers.two.sources]
[[features]]
id = "swap"
name = "Swap"
page = "docs/swap.md"
has = "partly"
note = "Ours"
test = { file = "a.test.ts", name = "swaps" }
peers = { one = ["no", "docs", "Theirs"] }
from = [["two", "\`surge\`", "\`swap\`"], ["one", "other", "not here"]]
[[features]]
id = "quiet"
page = "docs/quiet.md"
test = { file = "a.test.ts", name = "is quiet" }
[[absent]]
id = "canary"
name = "Canary"
peers = { one = ["yes", "docs", "Ours"] }
need = "percentages"
here = "no"
from = [["two", "\`canary\`", "a second slot"], ["two", "\`mirror\`"]]
`);
const cells = (text: string): readonly (readonly string[])[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('|') && !line.includes('---'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

test('the comparison has a column for each product with facts, and equal notes share a number', () => {
  const text = comparisonTable(FEATURES);
  expect(cells(text)).toEqual([
    ['', 'svc', 'One'],
    ['[Swap](docs/swap.md)', '◐ ¹', '○ ²'],
    ['[Canary](SCOPE.md)', '○', '● ¹'],
  ]);
  expect(text).toMatch(/\n\n¹ Ours\. ² Theirs\.$/);
});

test('what users of a product write here comes first, and last what is not available', () => {
  expect(cells(migrationTable(FEATURES, 'two'))).toEqual([
    ['Two', 'Here'],
    ['`surge`', '`swap`'],
    ['`canary`', 'not available: a second slot'],
    ['`mirror`', 'not available: see [above](#what-is-not-available)'],
  ]);
});

test('needs and sources have a table each', () => {
  expect(cells(absentTable(FEATURES))).toEqual([
    ['You need', 'Here'],
    ['percentages', 'no'],
  ]);
  expect(cells(sourceTable(FEATURES))).toEqual([
    ['Product', 'Read', 'Sources'],
    ['One', '2026-08', '[docs](https://one.example/docs)'],
    ['Two', '2026-09', ''],
  ]);
});
