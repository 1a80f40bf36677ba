/** `svcctl source status|sync|diff|suspend|resume`: the repository that declares the configuration of the service. */
import { parseDocument } from '../../files/toml/decide/parse-document.ts';
import type { Answer } from '../connect/api-answers.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { cellText, dataText, listText, type Column, type OutputOptions } from '../output/output.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';
import { diffLines } from './compare-slots.ts';

type Status = Answer<'source'>;

const COLUMNS: readonly Column<Status['files'][number]>[] = [
  { title: 'FILE', cell: ({ path }) => cellText(path) },
  { title: 'STATE', cell: ({ state }) => cellText(state) },
  { title: 'CHANGE', cell: ({ change }) => cellText(change) },
  { title: 'COMMIT', cell: ({ revision }) => cellText(revision?.slice(0, 12)) },
];

export async function runSourceStatus(cli: Cli, options: OutputOptions): Promise<void> {
  await print(cli, options, await (await cli.connect(options)).request('GET', '/api/source', 'source'));
}

/** Scripts learn whether the newest commit is in force. */
export async function runSourceSync(cli: Cli, options: OutputOptions & { readonly force?: boolean }): Promise<ExitCode> {
  const body = { force: options.force === true };
  const status = await (await cli.connect(options)).request('POST', '/api/source/sync', 'source', { body });
  await print(cli, options, status);
  return status.state === 'Synced' ? EXIT.done : EXIT.failed;
}

export async function runSourceDiff(cli: Cli, options: ServiceOptions): Promise<ExitCode> {
  const { line, paint } = cli.terminal;
  const { files } = await (await cli.connect(options)).request('GET', '/api/source/diff', 'sourceDiff');
  for (const { path, before, after } of files) {
    const change = before === undefined || before === null ? ' (new)' : after === undefined || after === null ? ' (removed)' : '';
    line(paint('bold', withoutControls(`${path}${change}`)));
    const lines = diffLines(documentOf(before), documentOf(after));
    for (const text of lines) line(paint(text.startsWith('-') ? 'red' : 'green', withoutControls(text)));
    if (lines.length === 0) line('  (comments or order only)');
  }
  return files.length > 0 ? EXIT.different : EXIT.done;
}

export const runSuspend = async (cli: Cli, options: ServiceOptions): Promise<void> => await setSuspended(cli, options, 'suspend');
export const runSourceResume = async (cli: Cli, options: ServiceOptions): Promise<void> => await setSuspended(cli, options, 'resume');

async function setSuspended(cli: Cli, options: ServiceOptions, verb: 'suspend' | 'resume'): Promise<void> {
  await (await cli.connect(options)).request('POST', `/api/source/${verb}`, 'source', { body: {} });
  cli.terminal.line(`source ${verb === 'suspend' ? 'suspended' : 'resumed'}`);
}

function documentOf(text: string | null | undefined): unknown {
  const parsed = parseDocument(text ?? '');
  return parsed.ok ? parsed.document : { text };
}

async function print({ terminal }: Cli, { output }: OutputOptions, status: Status): Promise<void> {
  const data = await dataText(output, status);
  if (data !== undefined) return terminal.write(data);
  const {
    url,
    ref,
    path,
    state,
    suspended,
    revision,
    applied_at: appliedAt,
    head,
    fetched_at: fetchedAt,
    held_until: until,
    problem,
  } = status;
  const lines = [
    ['Repository', `${url} (${ref}, "${path}")`],
    ['State', `${state}${suspended ? ' (suspended)' : ''}`],
    ['In force', revision ? `${revision.slice(0, 12)} since ${appliedAt ?? 'unknown'}` : 'no commit yet'],
    ['Newest', head ? `${head.commit.slice(0, 12)} "${head.subject}" by ${head.author}` : 'unknown'],
    ['Fetched', fetchedAt ?? 'never'],
    ...(until ? [['Waits until', until]] : []),
    ...(problem
      ? [['Problem', `${problem.reason}${problem.commit ? ` in commit ${problem.commit.slice(0, 12)}` : ''}: ${problem.message}`]]
      : []),
  ];
  for (const [name = '', text = ''] of lines) terminal.line(`${`${name}:`.padEnd(13)}${withoutControls(text)}`);
  await terminal.write(await listText(terminal, output, { key: 'files', items: status.files, columns: COLUMNS }));
}
