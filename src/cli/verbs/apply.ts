/** `svcctl apply -f`. The service checks all slots before it writes the first one. */
import type { Cli } from '../cli.ts';
import { ApplyAnswer } from '../connect/api-answers.ts';
import type { FileOptions } from '../connect/service-options.ts';
import { readSlotsFor } from '../manifests/read-manifests.ts';
import { dataText, type Output } from '../output/output.ts';

export interface ApplyOptions extends FileOptions {
  readonly dryRun?: boolean;
  readonly output: Output;
}

export async function runApply(cli: Cli, options: ApplyOptions): Promise<void> {
  const { terminal } = cli;
  const { client, slots } = await readSlotsFor(cli, options);
  const body = { slots, prune: options.prune === true, dry_run: options.dryRun === true };
  const applied = await client.request('POST', '/api/apply', ApplyAnswer, { body });
  const data = await dataText(options.output, applied);
  if (data !== undefined) return terminal.write(data);
  const dryRun = applied.dry_run ? ' (dry run)' : '';
  for (const { name, result } of applied.slots) {
    const colour = result === 'deleted' ? 'red' : result === 'unchanged' ? 'grey' : 'green';
    terminal.line(`slot/${name} ${terminal.paint(colour, result)}${dryRun}`);
  }
}
