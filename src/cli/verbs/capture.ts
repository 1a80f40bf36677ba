/** `svcctl capture start` and the like: the service records requests, and the record is decrypted here. */
import { stdin } from 'node:process';
import { readRegularFile } from '../../files/regular-file.ts';
import { openSealed, SEAL_KEY } from '../../files/sealed-lines.ts';
import { messageOf } from '../../platform/error-text.ts';
import { DURATION_RULE, isDuration, parseDurationMs } from '../../schema/words/quantities.ts';
import type { Answer } from '../connect/api-answers.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { cellText, dataText, listText, sizeText, type Column, type OutputOptions } from '../output/output.ts';
import type { Cli } from '../verb.ts';

interface StartOptions extends OutputOptions {
  readonly caller?: string;
  readonly slot?: string;
  readonly requests: string;
  readonly for: string;
}

const PATH = '/api/captures';
const pathOf = (id: string): string => `${PATH}/${encodeURIComponent(id)}`;

/** Only the key goes to standard output, so that it can be redirected to a file. */
export async function runCaptureStart(cli: Cli, options: StartOptions): Promise<void> {
  const { caller, slot, output } = options;
  if (caller === undefined && slot === undefined) throw usageFailure('Nothing to capture', 'Name whose requests: --caller, --slot or both');
  if (!isDuration(options.for)) throw usageFailure(`Invalid time "${options.for}"`, DURATION_RULE);
  if (!/^\d{1,6}$/.test(options.requests)) throw usageFailure(`Invalid number "${options.requests}"`, 'Use a whole number, such as 10');
  // The service checks the ranges.
  const body = { caller, slot, requests: Number(options.requests), seconds: parseDurationMs(options.for) / 1000 };
  const started = await (await cli.connect(options)).request('POST', PATH, 'startedCapture', { body });
  const data = await dataText(output, started);
  if (data !== undefined) return cli.terminal.write(data);
  cli.terminal.note(`The capture "${started.id}" runs. Store this key now: it is shown once and cannot be retrieved later`);
  cli.terminal.note(`Read it with "svcctl capture show ${started.id} --key-file FILE" until ${started.expires_at}`);
  cli.terminal.line(started.key);
}

export async function runCaptureList(cli: Cli, options: OutputOptions): Promise<void> {
  const { captures: items } = await (await cli.connect(options)).request('GET', PATH, 'captures');
  const columns: readonly Column<Answer<'capture'>>[] = [
    { title: 'ID', cell: ({ id }) => cellText(id) },
    { title: 'CALLER', cell: ({ caller }) => cellText(caller ?? 'any') },
    { title: 'SLOT', cell: ({ slot }) => cellText(slot ?? 'any') },
    { title: 'STATE', cell: ({ active }) => (active ? 'on' : 'ended') },
    { title: 'REQUESTS', cell: ({ requests }) => cellText(requests === null || requests === undefined ? undefined : String(requests)) },
    { title: 'SIZE', cell: ({ size_bytes: bytes }) => sizeText(bytes) },
    { title: 'STARTED', cell: ({ started_at: at }) => cellText(at) },
    { title: 'DELETED', wide: true, cell: ({ expires_at: at }) => cellText(at) },
    { title: 'WHY', cell: ({ ended_by: why }) => cellText(why) },
  ];
  await cli.terminal.write(await listText(cli.terminal, options.output, { key: 'captures', items, columns, nameOf: ({ id }) => id }));
  if (items.length === 0 && options.output === 'table') cli.terminal.note('No captures found; start one with "svcctl capture start"');
}

export async function runCaptureShow(cli: Cli, options: ServiceOptions & { readonly keyFile: string }, id: string): Promise<void> {
  const key = await readKey(cli, options.keyFile);
  const file = await (await cli.connect(options)).stream(pathOf(id));
  const { lines, why, problem } = openSealed(await file.text(), key);
  for (const line of lines) await cli.terminal.write(`${escapeControls(line)}\n`);
  if (problem !== undefined) throw new CliFailure(`The capture "${id}" is not whole. ${problem}`);
  if (why !== undefined) cli.terminal.note(`The capture has ended: ${why}`);
}

export async function runCaptureStop(cli: Cli, options: ServiceOptions, id: string): Promise<void> {
  const { requests } = await (await cli.connect(options)).request('POST', `${pathOf(id)}/stop`, 'capture');
  cli.terminal.line(`capture/${id} stopped${requests === undefined ? '' : ` after ${requests} requests`}`);
}

export async function runCaptureDelete(cli: Cli, options: ServiceOptions, ...ids: string[]): Promise<void> {
  const client = await cli.connect(options);
  for (const id of ids) {
    await client.request('DELETE', pathOf(id), 'anything');
    cli.terminal.line(`capture/${id} deleted`);
  }
}

/** JSON escapes the others, and these would control a terminal too, or change the order of what it shows. */
const escapeControls = (json: string): string =>
  json.replaceAll(/[\u007F-\u009F\u202A-\u202E\u2066-\u2069]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Not as an argument, which other users of the machine see. */
async function readKey(cli: Cli, file: string): Promise<string> {
  if (file === '-' && stdin.isTTY) cli.terminal.note('Paste the key, then press Enter and Ctrl-D');
  const text = file === '-' ? await cli.readInput() : await readKeyFile(file);
  const key = text.trim();
  if (SEAL_KEY.test(key)) return key;
  throw usageFailure('The key is malformed', 'Use the 43 characters that "svcctl capture start" has printed');
}

async function readKeyFile(file: string): Promise<string> {
  try {
    return await readRegularFile(file);
  } catch (error) {
    throw new CliFailure(`Could not read the key: ${messageOf(error)}`, { cause: error });
  }
}
