/** `svcctl explain SLOT`. */
import type { Cli } from '../cli.ts';
import { ExplainAnswer } from '../connect/api-answers.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { withoutControls } from '../output/terminal.ts';

export async function runExplain(cli: Cli, options: ServiceOptions, name: string): Promise<void> {
  const client = await cli.connect(options);
  const { text, problems } = await client.request('GET', `/api/slots/${encodeURIComponent(name)}/explain`, ExplainAnswer);
  for (const problem of problems) cli.terminal.line(`${cli.terminal.paint('red', 'invalid')} ${withoutControls(problem)}`);
  await cli.terminal.write(`${withoutControls(text).trimEnd()}\n`);
}
