/** `svcctl plan`: what the controller would do, with or without the slots of a file. */
import { toSnakeCase } from '../../schema/key-case.ts';
import { PlanShape } from '../connect/api-shapes.ts';
import type { Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { outputOf } from '../output/output.ts';
import { forService, readGoodManifests } from '../manifests/read-manifests.ts';
import type { ServerOptions } from '../connect/server-address.ts';
import { harmless } from '../output/terminal.ts';

export interface PlanOptions extends ServerOptions {
  readonly file?: string | undefined;
  readonly prune?: boolean | undefined;
  readonly output?: string | undefined;
}

export async function runPlan(cli: Cli, options: PlanOptions): Promise<ExitCode> {
  const output = outputOf(options.output);
  const manifests = options.file === undefined ? [] : await readGoodManifests(cli, options.file);
  const client = await cli.connect(options);
  const slots = forService(manifests, client.namespace).map(({ name, document }) => ({ name, spec: toSnakeCase(document) }));
  const plan = await client.request('POST', '/api/plan', PlanShape, { body: { slots, prune: options.prune === true } });
  if (output === 'json') cli.terminal.line(JSON.stringify(plan, undefined, 2));
  else await cli.terminal.write(`${harmless(plan.text).trimEnd()}\n`);
  return plan.changes.length > 0 ? EXIT.different : EXIT.done;
}
