/** `svcctl apply -f`: all slots are checked before the first is written. */
import { toSnakeCase } from '../../schema/key-case.ts';
import { ApplyShape } from '../connect/api-shapes.ts';
import type { Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { outputOf } from '../output/output.ts';
import { forService, readGoodManifests } from '../manifests/read-manifests.ts';
import type { ServerOptions } from '../connect/server-address.ts';

export interface ApplyOptions extends ServerOptions {
  readonly file: string;
  readonly prune?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  readonly output?: string | undefined;
}

export async function runApply(cli: Cli, options: ApplyOptions): Promise<ExitCode> {
  const output = outputOf(options.output);
  const manifests = await readGoodManifests(cli, options.file);
  const client = await cli.connect(options);
  const slots = forService(manifests, client.namespace).map(({ name, document }) => ({ name, spec: toSnakeCase(document) }));
  const body = { slots, prune: options.prune === true, dry_run: options.dryRun === true };
  const applied = await client.request('POST', '/api/apply', ApplyShape, { body });
  if (output === 'json') {
    cli.terminal.line(JSON.stringify(applied, undefined, 2));
    return EXIT.done;
  }
  const dry = applied.dry_run ? ' (dry run)' : '';
  for (const { name, result } of applied.slots) {
    const colour = result === 'deleted' ? 'red' : result === 'unchanged' ? 'grey' : 'green';
    cli.terminal.line(`slot/${name} ${cli.terminal.paint(colour, result)}${dry}`);
  }
  return EXIT.done;
}
