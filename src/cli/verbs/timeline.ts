/** `svcctl timeline SLOT`. */
import type { Cli } from '../cli.ts';
import { TimelineAnswer } from '../connect/api-answers.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { usageFailure } from '../output/exit-codes.ts';
import { cellText, listText, type Output } from '../output/output.ts';

export interface TimelineOptions extends ServiceOptions {
  readonly limit: string;
  readonly output: Output;
}

export async function runTimeline(cli: Cli, options: TimelineOptions, name: string): Promise<void> {
  const { terminal } = cli;
  const { limit, output } = options;
  if (!/^[1-9][0-9]{0,3}$/.test(limit)) throw usageFailure(`Write --limit as a number from 1 to 9999, not "${limit}"`);
  const client = await cli.connect(options);
  const { entries } = await client.request('GET', `/api/slots/${encodeURIComponent(name)}/timeline?limit=${limit}`, TimelineAnswer);
  const text = await listText(terminal, output, {
    key: 'entries',
    items: entries,
    columns: [
      { title: 'WHEN', cell: ({ at }) => at ?? '-' },
      { title: 'KIND', cell: ({ kind }) => (kind === 'failure' ? terminal.paint('red', kind) : kind) },
      { title: 'WHAT', cell: ({ message }) => cellText(message) },
      { title: 'WHY', cell: ({ cause }) => (cause ? cellText(cause) : '') },
    ],
  });
  if (text === '') terminal.note(`The timeline of slot "${name}" is empty`);
  else await terminal.write(text);
}
