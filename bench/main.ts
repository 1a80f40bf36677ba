/**
 * `npm run bench -- [NAME ...] [--save] [--check] [--starts N] [--rounds N] [--seconds N]`: runs all measurements or the named ones, and prints a row for each goal. Missed goals do not
 * change the exit code. `--save` writes what was measured to `bench/results`. `--check` compares the ratios with the last saved ones of the same kind of machine
 * (without names: of all measurements that were saved), and exits with 1 if one is worse, or if there is nothing to compare with.
 */
import { parseArgs } from 'node:util';
import { compareResults, TOLERANCE } from './decide/compare-results.ts';
import { kindOf, warnOfKernel, type Result } from './decide/result.ts';
import { readMachine } from './machine.ts';
import { rowLine, type Outcome, type Pace, type Row } from './measure.ts';
import { readResults, saveResult } from './saved-results.ts';

const rowsOnly = async (rows: Promise<readonly Row[]>): Promise<Outcome> => ({ rows: await rows, tables: [] });

const MEASUREMENTS: Readonly<Record<string, (pace: Pace) => Promise<Outcome>>> = {
  gateway: async (pace) => (await import('./gateway.ts')).measureGateway(pace),
  auth: async () => rowsOnly((await import('./auth.ts')).measureAuth()),
  traces: async () => rowsOnly((await import('./traces.ts')).measureTraces()),
  plan: async () => rowsOnly((await import('./plan.ts')).measurePlan()),
  'at-rest': async () => rowsOnly((await import('./at-rest.ts')).measureAtRest()),
  cluster: async () => rowsOnly((await import('./cluster.ts')).measureCluster()),
  streams: async (pace) => (await import('./streams.ts')).measureStreams(pace),
  planes: async () => rowsOnly((await import('./planes.ts')).measurePlanes()),
  scale: async () => rowsOnly((await import('./scale.ts')).measureScale()),
  edit: async () => rowsOnly((await import('./edit.ts')).measureEdit()),
  responses: async () => rowsOnly((await import('./responses.ts')).measureResponses()),
  images: async () => rowsOnly((await import('./images.ts')).measureImages()),
  models: async () => rowsOnly((await import('./models.ts')).measureModels()),
  speech: async () => rowsOnly((await import('./speech.ts')).measureSpeech()),
  dashboard: async () => rowsOnly((await import('./dashboard.ts')).measureDashboard()),
  swap: async () => rowsOnly((await import('./swap.ts')).measureSwap()),
  'after-swap': async () => (await import('./after-swap.ts')).measureAfterSwap(),
  memory: async () => rowsOnly((await import('./memory.ts')).measureMemory()),
  history: async () => rowsOnly((await import('./history.ts')).measureHistory()),
  source: async () => rowsOnly((await import('./source.ts')).measureSource()),
  evaluate: async () => rowsOnly((await import('./evaluate.ts')).measureEvaluate()),
  'slot-kinds': async () => rowsOnly((await import('./slot-kinds.ts')).measureSlotKinds()),
};

const USAGE = `Usage: npm run bench -- [NAME ...] [--save] [--check] [--starts N] [--rounds N] [--seconds N]
Without a name, all are measured: ${Object.keys(MEASUREMENTS).join(', ')}
docs/performance.md says what each of them measures, and how long it takes.
`;
const { values, positionals } = readArguments();
const pace = { starts: Number(values.starts), rounds: Number(values.rounds), seconds: Number(values.seconds) };
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const unknown = positionals.filter((name) => MEASUREMENTS[name] === undefined);
if (unknown.length > 0) refuse(`Unknown measurement "${unknown.join('", "')}"`);
if (Object.values(pace).some((count) => !(count >= 1))) refuse('Give --starts, --rounds and --seconds numbers from 1');

const machine = readMachine();
const earlier = (await readResults()).filter((result) => kindOf(result.machine) === kindOf(machine));
const isWanted = (name: string): boolean =>
  positionals.length > 0 ? positionals.includes(name) : !values.check || lastWith(name) !== undefined;
const measurements: Record<string, Result['measurements'][string]> = {};
for (const [name, measure] of Object.entries(MEASUREMENTS).filter(([each]) => isWanted(each))) {
  process.stdout.write(`\n${name}\n`);
  const { rows, tables, grids } = await measure(pace);
  for (const row of rows) process.stdout.write(`  ${rowLine(row)}\n`);
  for (const grid of grids ?? [])
    process.stdout.write(`\n  ${grid.title}\n${[grid.header, ...grid.rows].map((cells) => `  ${cells.join(' | ')}\n`).join('')}`);
  const goals = rows.map(({ met, ...row }) => ({ ...row, ...(met === undefined ? {} : { met }) }));
  measurements[name] = { goals, tables: [...tables], ...(grids === undefined ? {} : { grids: [...grids] }) };
}
// The comparison comes first, or a result would be compared with itself.
if (values.check) check();
if (values.save) process.stdout.write(`\nSaved "${await saveResult(machine, measurements)}"; run "npm run generate" to draw it\n`);

function readArguments() {
  const text = (fallback: string) => ({ type: 'string', default: fallback }) as const;
  const flag = { type: 'boolean', default: false } as const;
  try {
    const options = { save: flag, check: flag, help: { ...flag, short: 'h' }, starts: text('3'), rounds: text('4'), seconds: text('1') };
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

function refuse(why: string): never {
  process.stderr.write(`${why}\n${USAGE}`);
  process.exit(64);
}

function lastWith(name: string): Result | undefined {
  return earlier.findLast((result) => result.measurements[name] !== undefined);
}

function check(): void {
  const before = Object.fromEntries(
    Object.keys(MEASUREMENTS).flatMap((name) => {
      const found = lastWith(name)?.measurements[name];
      return found === undefined ? [] : [[name, found] as const];
    }),
  );
  const { compared, regressions, missing } = compareResults(before, measurements);
  const lines = [
    ...missing.map((line) => `Not compared: ${line}`),
    ...regressions.map((line) => `REGRESSION: ${line}`),
    ...new Set(Object.keys(before).flatMap((name) => warnOfKernel(lastWith(name)?.machine ?? machine, machine))),
    compared === 0
      ? `No saved ratio to compare with for this kind of machine (${kindOf(machine)}): save one with --save`
      : `Compared ${compared} ratios with saved ones of this kind of machine (tolerance ${TOLERANCE * 100} %): ${regressions.length} regressions`,
  ];
  process.stdout.write(`\n${lines.join('\n')}\n`);
  if (regressions.length > 0 || compared === 0) process.exitCode = 1;
}
