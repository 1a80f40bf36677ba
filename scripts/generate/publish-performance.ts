/** Publishes saved measurements: in `docs/performance.md` each with its last two results of the machine where it was measured last, in `README.md` a few figures of the last one. Pure. */
import { kindOf, parseResults, type Goal, type Machine, type Result, type ResultTable } from '../../bench/decide/result.ts';
import { voidText } from '../../bench/decide/summarise.ts';
import { alignedTable } from './publish-reference.ts';

const SHOWN = 2;

/** `texts`: the files in `bench/results`, in any order. */
export function performanceTables(texts: readonly string[]): string {
  const results = parseResults(texts);
  if (results.length === 0) return NO_RESULT;
  const names = [...new Set(results.flatMap(({ measurements }) => Object.keys(measurements)))]
    .filter((name) => name !== AFTER_SWAP)
    .toSorted();
  return names.flatMap((name) => partsOf(name, results)).join('\n\n');
}

const AFTER_SWAP = 'after-swap';

/** Figures of the newest result about servers that have just started, which have a section of their own. */
export function afterSwapTables(texts: readonly string[]): string {
  const newest = parseResults(texts).findLast(({ measurements }) => AFTER_SWAP in measurements);
  if (newest === undefined) return NO_RESULT;
  const grids = newest.measurements[AFTER_SWAP]?.grids ?? [];
  return [
    `${machineText(newest.machine)} Saved ${headingOf(newest)}.`,
    ...grids.flatMap(({ title, header, rows }) => [`**${title}**`, alignedTable(header, rows).join('\n')]),
  ].join('\n\n');
}

/** Name of a figure in the results of the gateway, and its row in the README. */
const HEADLINES = {
  '600 B, 32 connections: requests/s against nginx': 'Requests per second of one core, compared with nginx in front of the same upstream',
  'requests/s against a bare forwarder on Node': 'The same, compared with a forwarder on Node that reads nothing',
  'requests/s with authentication against without': 'Requests per second with authentication, compared with none',
  '16 streams of 200 chunks: chunks/s against the bare upstream': 'Chunks per second of 16 streams, compared with the upstream alone',
  'one connection: added time, median, against nginx': 'Latency added to one request, compared with nginx',
  'longest stall of a request behind a pass, 1000 slots, median of edits':
    'Longest delay of a request while one of 1,000 slots is edited, median',
};

/** Throws if the newest result of the gateway lacks a figure. */
export function headlineFigures(texts: readonly string[]): string {
  const newest = parseResults(texts).findLast(({ measurements }) => 'gateway' in measurements);
  if (newest === undefined) return NO_RESULT;
  const rows = Object.entries(HEADLINES).map(([what, name]) => {
    const found = newest.measurements['gateway']?.goals.find((goal) => goal.what.trim() === what);
    if (found === undefined) throw new Error(`The newest result of the gateway has no figure "${what}"`);
    return [name, found.figure];
  });
  return [`${machineText(newest.machine)} Saved on ${newest.savedAt.slice(0, 10)}.`, '', ...alignedTable(['What', 'Figure'], rows)].join(
    '\n',
  );
}

const NO_RESULT = 'No result has been saved.';

function machineText({ cpu, cores, arch, memoryGb, kernel, node, programs }: Machine): string {
  const versions = Object.entries(programs).map(([program, version]) => `${program} ${version}`);
  return `Measured on ${cpu} with ${cores} cores (${arch}) and ${memoryGb} GB of memory: ${[`Linux ${kernel}`, `Node ${node}`, ...versions].join(', ')}.`;
}

/** Figures of different machines are not comparable. */
function partsOf(name: string, results: readonly Result[]): readonly string[] {
  const measured = results.filter(({ measurements }) => measurements[name] !== undefined);
  const newest = measured.at(-1);
  if (newest === undefined) return [];
  const shown = measured.filter(({ machine }) => kindOf(machine) === kindOf(newest.machine)).slice(-SHOWN);
  const tables = newest.measurements[name]?.tables ?? [];
  return [
    `### ${name}`,
    machineText(newest.machine),
    goalTable(name, shown),
    ...tables.flatMap((table) => [`**${table.title}**, in the last of them:`, proxyTable(table)]),
  ];
}

/** One column for each result; the rows are those of the last one. */
function goalTable(name: string, shown: readonly Result[]): string {
  const goalsOf = (result: Result | undefined): readonly Goal[] => result?.measurements[name]?.goals ?? [];
  const rows = goalsOf(shown.at(-1)).map(({ what, goal, met }) => [
    what.trim(),
    ...shown.map((result) => goalsOf(result).find((other) => other.what === what)?.figure ?? 'not measured'),
    goal,
    met === undefined ? '' : met ? 'met' : 'missed',
  ]);
  return alignedTable(['What', ...shown.map(headingOf), 'Goal', 'In the last'], rows).join('\n');
}

function headingOf({ savedAt, commit, modified, machine }: Result): string {
  const changed = modified ? ' with changes' : '';
  return `${savedAt.slice(0, 16).replace('T', ' ')}, \`${commit.slice(0, 10)}\`${changed}, load before ${machine.loadAverage.toFixed(1)}`;
}

function proxyTable({ against, rows }: ResultTable): string {
  const base = rows.find(({ name }) => name === against);
  const cells = rows.map(({ name, requestsPerSecond, cpuUs, busy, failures, validity }) => [
    name,
    requestsPerSecond.toFixed(0),
    ratioText(requestsPerSecond, base?.requestsPerSecond),
    cpuUs === undefined ? '' : cpuUs.toFixed(1),
    ratioText(cpuUs, base?.cpuUs),
    busy === undefined ? '' : `${(busy * 100).toFixed(0)} %`,
    String(failures),
    { valid: 'valid', waited: 'invalid: it waited', void: `void: ${voidText(failures)}` }[validity],
  ]);
  const head = [
    'In front of the same upstream',
    'Per second',
    `Against ${against}`,
    'CPU of each in µs',
    `Against ${against}`,
    'Of its core',
    'Failed',
    'Row',
  ];
  return alignedTable(head, cells).join('\n');
}

function ratioText(value: number | undefined, base: number | undefined): string {
  return value === undefined || base === undefined || base === 0 ? '' : `${(value / base).toFixed(2)} ×`;
}
