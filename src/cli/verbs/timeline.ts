/** `svcctl timeline SLOT`. */
import { TimelineShape } from '../connect/api-shapes.ts';
import type { Cli } from '../cli.ts';
import { EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { cellText, outputOf, printList } from '../output/output.ts';
import type { ServerOptions } from '../connect/server-address.ts';

export interface TimelineOptions extends ServerOptions {
  readonly limit: string;
  readonly output?: string | undefined;
}

export async function runTimeline(cli: Cli, name: string, options: TimelineOptions): Promise<ExitCode> {
  const output = outputOf(options.output);
  if (!/^[1-9][0-9]{0,3}$/.test(options.limit)) throw usageFailure(`Write --limit as a number up to 9999, not "${options.limit}"`);
  const client = await cli.connect(options);
  const path = `/api/slots/${encodeURIComponent(name)}/timeline?limit=${options.limit}`;
  const { entries } = await client.request('GET', path, TimelineShape);
  await printList(cli.terminal, output, {
    key: 'entries',
    items: entries,
    empty: `Nothing has happened to slot "${name}" yet`,
    columns: [
      { title: 'WHEN', cell: (entry) => entry.at ?? '-' },
      { title: 'KIND', cell: (entry) => (entry.kind === 'failure' ? cli.terminal.paint('red', entry.kind) : entry.kind) },
      { title: 'WHAT', cell: (entry) => cellText(entry.message) },
      { title: 'WHY', cell: (entry) => (entry.cause === null || entry.cause === undefined ? '' : cellText(entry.cause)) },
    ],
  });
  return EXIT.done;
}
