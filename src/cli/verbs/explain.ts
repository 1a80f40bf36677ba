/** `svcctl explain SLOT`. */
import { ExplainShape } from '../connect/api-shapes.ts';
import type { Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import type { ServerOptions } from '../connect/server-address.ts';
import { harmless } from '../output/terminal.ts';

export async function runExplain(cli: Cli, name: string, options: ServerOptions): Promise<ExitCode> {
  const client = await cli.connect(options);
  const { text, problems } = await client.request('GET', `/api/slots/${encodeURIComponent(name)}/explain`, ExplainShape);
  for (const problem of problems) cli.terminal.line(`${cli.terminal.paint('red', 'refused')} ${harmless(problem)}`);
  await cli.terminal.write(`${harmless(text).trimEnd()}\n`);
  return EXIT.done;
}
