/** `svcctl profile list|show|save|apply|delete`. A switch changes the same files as an edit by hand. */
import type { Answer } from '../connect/api-answers.ts';
import { profilePath } from '../connect/client.ts';
import type { FileOptions, ServiceOptions } from '../connect/service-options.ts';
import { readSlotsFor } from '../manifests/read-manifests.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { cellText, dataText, listText, type Column, type OutputOptions } from '../output/output.ts';
import { withoutControls, type Terminal } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

export async function runProfileList(cli: Cli, options: OutputOptions): Promise<void> {
  const { terminal } = cli;
  const { profiles, problems: others } = await (await cli.connect(options)).request('GET', '/api/profiles', 'profiles');
  const list = { key: 'profiles', items: profiles, columns: profileColumns(terminal), nameOf: ({ name }: Listed) => name };
  await terminal.write(await listText(terminal, options.output, list));
  for (const problem of others) terminal.note(problemText(problem));
  if (profiles.length === 0 && options.output === 'table') terminal.note('No profiles found; save one with "svcctl profile save NAME"');
}

export async function runProfileShow(cli: Cli, options: OutputOptions, name: string): Promise<void> {
  const { terminal } = cli;
  const profile = await (await cli.connect(options)).request('GET', profilePath(name), 'profile');
  const data = await dataText(options.output, profile);
  if (data !== undefined) return terminal.write(data);
  const columns: readonly Column<Answer<'profile'>['slots'][number]>[] = [
    { title: 'SLOT', cell: (each) => each.name },
    { title: 'ON A SWITCH', cell: ({ result }) => paintResult(terminal, result) },
    { title: 'MODEL', cell: ({ spec }) => cellText(modelOf(spec)) },
  ];
  await terminal.write(await listText(terminal, options.output, { key: 'slots', items: profile.slots, columns }));
  for (const problem of profile.problems) terminal.note(problemText(problem));
}

export async function runProfileSave(
  cli: Cli,
  options: OutputOptions & Pick<FileOptions, 'file'> & { readonly replace: boolean },
  name: string,
): Promise<void> {
  const path = profilePath(name);
  const { client, slots } = await readSlotsFor(cli, options);
  const body = options.file === undefined ? {} : { slots };
  const headers = options.replace ? {} : { 'if-none-match': '*' };
  const profile = await client.request('PUT', path, 'profile', { body, headers });
  const data = await dataText(options.output, profile);
  if (data !== undefined) return cli.terminal.write(data);
  const saved = profile.slots.filter(({ result }) => result !== 'disabled').map((each) => each.name);
  cli.terminal.line(`profile/${name} saved (${saved.join(', ')})`);
}

export async function runProfileApply(cli: Cli, options: OutputOptions & { readonly dryRun?: boolean }, name: string): Promise<ExitCode> {
  const { terminal } = cli;
  const body = { dry_run: options.dryRun === true };
  const path = `${profilePath(name)}/apply`;
  const applied = await (await cli.connect(options)).request('POST', path, 'profileSwitch', { body });
  const data = await dataText(options.output, applied);
  if (data !== undefined) await terminal.write(data);
  else {
    printResults(terminal, applied);
    await terminal.write(`${withoutControls(applied.plan.text).trimEnd()}\n`);
  }
  return applied.dry_run && (applied.plan.failing ?? []).length > 0 ? EXIT.failed : EXIT.done;
}

export async function runProfileDelete(cli: Cli, options: ServiceOptions, ...names: string[]): Promise<void> {
  const paths = names.map((name) => ({ name, path: profilePath(name) }));
  const client = await cli.connect(options);
  for (const { name, path } of paths) {
    await client.request('DELETE', path, 'anything');
    cli.terminal.line(`profile/${name} deleted`);
  }
}

type Listed = Answer<'profiles'>['profiles'][number];

function profileColumns(terminal: Terminal): readonly Column<Listed>[] {
  return [
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'ACTIVE', cell: ({ active }) => (active ? terminal.paint('green', 'yes') : 'no') },
    { title: 'SLOTS', cell: ({ slots }) => String(slots.filter(({ result }) => result !== 'disabled').length) },
    { title: 'DIFFERENT', cell: ({ slots }) => cellText(differentSlots(slots)) },
    { title: 'PROBLEM', cell: ({ problems: [first] }) => (first === undefined ? '' : problemText(first)) },
  ];
}

function differentSlots(slots: Listed['slots']): string {
  const names = slots.filter(({ result }) => result !== 'unchanged').map(({ name }) => name);
  return names.length === 0 ? '-' : names.join(',');
}

export function printResults(terminal: Terminal, { slots, dry_run: isDry }: Answer<'applied'>): void {
  for (const { name, result } of slots) terminal.line(`slot/${name} ${paintResult(terminal, result)}${isDry ? ' (dry run)' : ''}`);
}

function paintResult({ paint }: Terminal, result: string): string {
  return paint(result === 'disabled' || result === 'deleted' ? 'red' : result === 'unchanged' ? 'grey' : 'green', result);
}

function problemText({ file, line, message }: Answer<'profiles'>['problems'][number]): string {
  const place = [file, line].flatMap((part) => (part === null || part === undefined ? [] : String(part))).join(':');
  return withoutControls(place === '' ? message : `${place}: ${message}`);
}

export function modelOf(spec: Readonly<Record<string, unknown>>): string | undefined {
  const { default: model } = Object(spec['model']);
  return typeof model === 'string' ? model : undefined;
}
