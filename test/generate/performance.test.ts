/** The tables of `docs/performance.md` are drawn from saved results alone. */
import { expect, test } from '@jest/globals';
import { afterSwapTables, headlineFigures, performanceTables } from '../../scripts/generate/publish-performance.ts';
import { measurementsOf, resultOf } from '../bench/result-fixture.ts';

const goal = (figure: string, met: boolean) => ({ what: '  requests/s', figure, goal: '≥ 0.4 ×', met });
const draw = (...results: readonly ReturnType<typeof resultOf>[]): string =>
  performanceTables(results.map((result) => JSON.stringify(result)));
const day = (number: number): string => `2026-01-0${number}T10:20:30.000Z`;

test('without a result, the page says so', () => {
  expect(draw()).toBe('No result has been saved.');
});

test('the last two results stand side by side, the older one first', () => {
  const results = [1, 2, 3].map((number) =>
    resultOf({ savedAt: day(number), measurements: measurementsOf([goal(`0.${number} ×`, number === 2)]) }),
  );
  const text = draw(...results.toReversed());
  expect(text).not.toContain('0.1 ×');
  expect(text).toMatch(/\| requests\/s \| 0\.2 × +\| 0\.3 × +\| ≥ 0\.4 × \| missed +\|/);
  expect(text).toMatch(/2026-01-02 10:20, `0123456789`, load before 0\.2 +\| 2026-01-03 10:20/);
});

test('a measurement has only results of the machine where it was measured last, which may differ between measurements', () => {
  const text = draw(
    resultOf({ savedAt: day(1), machine: { cpu: 'Other' }, measurements: measurementsOf([goal('0.1 ×', true)]) }),
    resultOf({ savedAt: day(2), measurements: measurementsOf([goal('0.2 ×', true)]) }),
    resultOf({
      savedAt: day(3),
      modified: true,
      machine: { cpu: 'Third' },
      measurements: { plan: { goals: [goal('0.3 ×', true)], tables: [] } },
    }),
  );
  expect(text).toMatch(/^### plan\n\nMeasured on Third with/m);
  expect(text).toContain(
    '### gateway\n\nMeasured on Some CPU with 2 cores (x64) and 8 GB of memory: Linux 6.1.0, Node 24.21.0, nginx 1.22.1, wrk 4.1.0.',
  );
  expect(text).not.toContain('0.1 ×');
  expect([...text.matchAll(/^### (.*)$/gm)].map(([, name]) => name)).toEqual(['gateway', 'plan']);
  expect(text).toContain('`0123456789` with changes');
});

test('each proxy is compared with the base of its table, and invalid rows are marked', () => {
  const rows = [
    { name: 'nginx', requestsPerSecond: 1000, cpuUs: 20, busy: 0.9, failures: 0, validity: 'valid' },
    { name: 'real service', requestsPerSecond: 300, cpuUs: 50, busy: 0.5, failures: 0, validity: 'waited' },
    { name: 'upstream alone', requestsPerSecond: 5000, failures: 2, validity: 'void' },
    { name: 'real service', requestsPerSecond: 0, failures: 0, validity: 'void' },
  ] as const;
  const text = draw(
    resultOf({ measurements: { gateway: { goals: [], tables: [{ title: '600 B', against: 'nginx', rows: [...rows] }] } } }),
  );
  const cells = text
    .split('\n')
    .filter((line) => /^\| (?:nginx|real|upstream)/.test(line))
    .map((line) =>
      line
        .split('|')
        .map((cell) => cell.trim())
        .slice(1, -1),
    );
  expect(text).toContain('**600 B**');
  expect(cells).toEqual([
    ['nginx', '1000', '1.00 ×', '20.0', '1.00 ×', '90 %', '0', 'valid'],
    ['real service', '300', '0.30 ×', '50.0', '2.50 ×', '50 %', '0', 'invalid: it waited'],
    ['upstream alone', '5000', '5.00 ×', '', '', '', '2', 'void: 2 requests failed'],
    ['real service', '0', '0.00 ×', '', '', '', '0', 'void: nothing was answered'],
  ]);
});

test('tables of servers that have just started are drawn in a section of their own, from the newest result that has them', () => {
  const measured = (cell: string) => ({
    'after-swap': { goals: [], tables: [], grids: [{ title: 'Starts', header: ['Model', 'Time'], rows: [['small', cell]] }] },
  });
  const results = [
    resultOf({ savedAt: day(1), measurements: measured('1 ms') }),
    resultOf({ savedAt: day(2), measurements: measured('2 ms') }),
    resultOf({ savedAt: day(3), measurements: { plan: { goals: [], tables: [] } } }),
  ];
  const text = afterSwapTables(results.map((result) => JSON.stringify(result)));
  expect(text).toContain('Saved 2026-01-02 10:20, `0123456789`, load before 0.2.');
  expect(text).toMatch(/\*\*Starts\*\*\n\n\| Model \| Time \|\n.*\n\| small \| 2 ms \|/);
  expect(draw(...results)).not.toContain('after-swap');
  expect(afterSwapTables([])).toBe('No result has been saved.');
});

const HEADLINES = [
  '600 B, 32 connections: requests/s against nginx',
  'requests/s against a bare forwarder on Node',
  'requests/s with authentication against without',
  '16 streams of 200 chunks: chunks/s against the bare upstream',
  'one connection: added time, median, against nginx',
  'longest stall of a request behind a pass, 1000 slots, median of edits',
];

test('the README has the figures of the newest result of the gateway, and none may be missing', () => {
  const measured = (figure: string, names: readonly string[] = HEADLINES) =>
    measurementsOf(names.map((what) => ({ what, figure, goal: '-', met: true })));
  const results = [
    resultOf({ savedAt: day(3), measurements: { plan: { goals: [], tables: [] } } }),
    resultOf({ savedAt: day(2), measurements: measured('0.2 ×') }),
    resultOf({ savedAt: day(1), measurements: measured('0.1 ×') }),
  ].map((result) => JSON.stringify(result));
  expect(headlineFigures(results)).toMatch(/Saved on 2026-01-02\.\n\n\| What/);
  expect(headlineFigures(results).match(/\| 0\.2 × +\|/g)).toHaveLength(6);
  expect(() => headlineFigures([JSON.stringify(resultOf({ measurements: measured('0.1 ×', HEADLINES.slice(1)) }))])).toThrow(
    HEADLINES[0] ?? '',
  );
  expect(headlineFigures([])).toBe('No result has been saved.');
});
