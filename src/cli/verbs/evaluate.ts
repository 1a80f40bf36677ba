/** `svcctl eval`: asks a model the cases of a file through the service, and prints how many answers are right. */
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import type { EvaluationReport, Miss } from '../../evaluation/decide/evaluation-report.ts';
import { parseCases } from '../../evaluation/decide/parse-cases.ts';
import { judgeReport, type Verdict } from '../../evaluation/decide/verdict.ts';
import { encodeRequest, runCases, type AskModel, type Recording } from '../../evaluation/run-cases.ts';
import { readRegularBytes, readRegularFile } from '../../files/regular-file.ts';
import { messageOf } from '../../platform/error-text.ts';
import { pathOf, type EvaluationCase, type EvaluationPath } from '../../schema/slot/evaluation-case.ts';
import type { Client } from '../connect/client.ts';
import { CliFailure, EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { cellText, dataText, listText, type OutputOptions } from '../output/output.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

interface EvalOptions extends OutputOptions {
  readonly file: string;
  readonly compare?: string;
  readonly pass: string;
}

interface Evaluated {
  readonly model: string;
  readonly report: EvaluationReport;
  readonly verdict: Verdict;
}

/** An hour of speech has so many bytes as Opus, a quarter of an hour as WAV. */
const RECORDING_BYTES = 2 ** 25;
/** The shortest request for each path whose answers are streamed. */
const SHORTEST: Readonly<Partial<Record<EvaluationPath, object>>> = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 },
  '/v1/completions': { prompt: 'Hello', max_tokens: 1 },
};

/** One model after the other: where both do not fit into memory, each is loaded once. */
export async function runEval(cli: Cli, options: EvalOptions, model: string): Promise<ExitCode> {
  const { compare, output } = options;
  const pass = Number(options.pass);
  if (!/^[0-9.]+$/.test(options.pass) || !(pass <= 1))
    throw usageFailure(`Invalid share "${options.pass}"`, 'Use a number from 0 to 1, such as 0.9');
  const cases = await readCases(cli, options.file);
  const readRecording = recordingsOf(options.file);
  for (const { request } of cases) if (isRecorded(request)) await readRecording(String(request['file']));
  const client = await cli.connect(options);
  const evaluated: Evaluated[] = [];
  for (const each of compare === undefined ? [model] : [model, compare]) {
    const report = await evaluate(cli, client, { model: each, cases, readRecording });
    evaluated.push({ model: each, report, verdict: judgeReport(report, { pass }) });
  }
  cli.terminal.endProgress();
  const data = await dataText(output, { evaluations: evaluated.map(dataOf) });
  if (data !== undefined) await cli.terminal.write(data);
  else await printTable(cli, options, evaluated);
  return evaluated[0]?.verdict.accepted === true ? EXIT.done : EXIT.failed;
}

async function readCases(cli: Cli, file: string): Promise<readonly EvaluationCase[]> {
  const text = file === '-' ? await cli.readInput() : await readRegularFile(file).catch(refuse(`Could not read the cases in "${file}"`));
  const parsed = parseCases(text);
  if (parsed.mistake === undefined) return parsed.cases;
  throw new CliFailure(withoutControls(`${file}: ${parsed.mistake}`), { hint: 'docs/evaluate.md describes the cases' });
}

const refuse = (what: string) => (cause: unknown) => {
  throw new CliFailure(`${what}: ${messageOf(cause)}`, { cause });
};

const isRecorded = (request: EvaluationCase['request']): boolean => pathOf(request) === '/v1/audio/transcriptions';

/** Reads recordings in the folder of the cases. Nothing else on the machine is sent to a model. */
function recordingsOf(file: string): (name: string) => Promise<Recording> {
  return async (name) => {
    const what = `Could not read the recording "${withoutControls(name)}"`;
    if (file === '-') throw usageFailure(what, 'Recordings are in the folder of the cases: save the cases in a file');
    const folder = await realpath(path.dirname(file)).catch(refuse(what));
    const found = await realpath(path.resolve(folder, name)).catch(refuse(what));
    if (path.isAbsolute(name) || !found.startsWith(`${folder}${path.sep}`))
      throw new CliFailure(`${what}: it is not in "${folder}"`, { hint: 'Move it beside the cases, and write its path from there' });
    const bytes = await readRegularBytes(found, { mostBytes: RECORDING_BYTES, follow: false }).catch(refuse(what));
    return { name: path.basename(found), bytes };
  };
}

interface Evaluation {
  readonly model: string;
  readonly cases: readonly EvaluationCase[];
  readonly readRecording: (name: string) => Promise<Recording>;
}

async function evaluate({ terminal }: Cli, client: Client, { model, cases, readRecording }: Evaluation): Promise<EvaluationReport> {
  const ask: AskModel = async (request) => {
    const { type, bytes } = await encodeRequest(request, model);
    const answer = await client.infer(request.path, type, bytes);
    return { status: answer.status, contentType: answer.header('content-type'), body: answer.bytes };
  };
  const step = `Asking "${withoutControls(model)}" through the service, which loads it first if it is not loaded`;
  terminal.progress({ text: step, step });
  await warmUp(client, model, cases);
  let done = 0;
  const onResult = (): void => {
    done += 1;
    terminal.progress({ text: `${withoutControls(model)}: ${done} of ${cases.length} cases`, step, share: done / cases.length });
  };
  return await runCases(cases, ask, { signal: new AbortController().signal, readRecording, onResult });
}

/** The time to load a model is none to its first token. A name that does not exist ends the verb here. */
async function warmUp(client: Client, model: string, cases: readonly EvaluationCase[]): Promise<void> {
  const path = cases.map(({ request }) => pathOf(request)).find((each) => each !== undefined && SHORTEST[each] !== undefined);
  if (path !== undefined) await client.request('POST', path, 'anything', { body: { model, ...SHORTEST[path] }, inference: true });
}

const dataOf = ({ model, report, verdict }: Evaluated): object => ({
  model,
  accepted: verdict.accepted,
  because: verdict.because,
  cases: report.cases,
  passed: report.passed,
  first_token_p95_ms: report.firstTokenP95 ?? null,
  tokens_per_second: report.tokensPerSecond ?? null,
  total_ms: report.totalMs ?? null,
  misses: report.misses,
});

const MEASURES: readonly { readonly title: string; cell(evaluated: Evaluated): string | undefined }[] = [
  { title: 'Passed', cell: ({ report: { cases, passed } }) => `${passed} of ${cases} (${Math.floor((passed / cases) * 100)} %)` },
  { title: 'First token, p95', cell: ({ report: { firstTokenP95: ms } }) => (ms === undefined ? undefined : `${Math.round(ms)} ms`) },
  { title: 'Tokens/s', cell: ({ report: { tokensPerSecond } }) => tokensPerSecond?.toFixed(1) },
  { title: 'Total time', cell: ({ report: { totalMs = 0 } }) => `${(totalMs / 1000).toFixed(1)} s` },
];

async function printTable({ terminal }: Cli, { output }: EvalOptions, evaluated: readonly Evaluated[]): Promise<void> {
  const models = evaluated.map((each) => ({
    title: cellText(each.model),
    cell: ({ cell }: (typeof MEASURES)[number]) => cellText(cell(each)),
  }));
  const columns = [{ title: 'MODEL', cell: ({ title }: (typeof MEASURES)[number]) => title }, ...models];
  await terminal.write(await listText(terminal, output, { key: 'measures', items: MEASURES, columns }));
  for (const { model, report } of evaluated) {
    for (const miss of report.misses) terminal.line(missText(model, miss));
    const more = report.cases - report.passed - report.misses.length;
    if (more > 0) terminal.line(`\n${withoutControls(model)}: ${more} more cases did not pass`);
  }
  const [first] = evaluated;
  if (first?.verdict.accepted === false) terminal.note(`${withoutControls(first.model)} is not good enough. ${first.verdict.because}`);
}

const missText = (model: string, miss: Miss): string =>
  [
    `\n${cellText(model)}: case ${miss.case}${miss.required ? ' (required)' : ''}`,
    `  question  ${cellText(miss.question)}`,
    `  expected  ${cellText(miss.expectation)}`,
    `  answer    ${cellText(miss.answer)}`,
  ].join('\n');
