/** `svcctl plan`: what the controller would do, now or with the slots of a file. */
import type { Cli } from '../cli.ts';
import { PlanAnswer } from '../connect/api-answers.ts';
import type { FileOptions } from '../connect/service-options.ts';
import { readSlotsFor } from '../manifests/read-manifests.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { dataText, type Output } from '../output/output.ts';
import { withoutControls } from '../output/terminal.ts';

export async function runPlan(cli: Cli, options: FileOptions & { readonly output: Output }): Promise<ExitCode> {
  const { client, slots } = await readSlotsFor(cli, options);
  const plan = await client.request('POST', '/api/plan', PlanAnswer, { body: { slots, prune: options.prune === true } });
  await cli.terminal.write((await dataText(options.output, plan)) ?? `${withoutControls(plan.text).trimEnd()}\n`);
  return plan.changes.length > 0 ? EXIT.different : EXIT.done;
}
