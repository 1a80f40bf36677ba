/**
 * Prints the rows that `test/chaos` wrote as a Markdown table. `--write` puts the table into `docs/reliability.md`.
 *   node scripts/print-chaos-table.ts ROWS [--write]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { CaseRow } from '../test/chaos/support/report-case.ts';

const HEAD = ['Case', 'Runtime', 'Times', 'Requests', 'Answered', 'Lost', 'Refused', 'Cut', 'Disconnected', 'Slowest answer'];
const PAGE = path.resolve(import.meta.dirname, '../docs/reliability.md');
const BETWEEN = /(<!-- chaos table -->\n)[\s\S]*?(<!-- end of the chaos table -->)/;

const [file = '', option] = process.argv.slice(2);
const rows = readFileSync(file, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line): CaseRow => JSON.parse(line))
  .toSorted((left, right) => left.name.localeCompare(right.name) || left.runtime.localeCompare(right.runtime));

const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
const texts = rows.map(({ name, runtime, times, requests, answered, lost, refused, cut, disconnected, slowestMs }) =>
  line([name, runtime, times, requests, answered, lost, refused, cut, disconnected, `${(slowestMs / 1000).toFixed(1)} s`]),
);
const table = [line(HEAD), line(HEAD.map(() => '---')), ...texts, ''].join('\n');
if (option === '--write') writeFileSync(PAGE, readFileSync(PAGE, 'utf8').replace(BETWEEN, `$1\n${table}\n$2`));
else process.stdout.write(table);
