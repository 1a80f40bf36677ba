/** `svcctl validate -f`: checks files without a service. Exits with 1 if one of them has a problem. */
import { formatProblem } from '../../schema/spec-problem.ts';
import type { Cli } from '../cli.ts';
import { readManifests } from '../manifests/read-manifests.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { withoutControls } from '../output/terminal.ts';

export async function runValidate(cli: Cli, { file }: { readonly file: string }): Promise<ExitCode> {
  const { slots, problems } = await readManifests(cli, file);
  for (const problem of problems) cli.terminal.line(withoutControls(formatProblem(problem)));
  if (problems.length > 0) return EXIT.failed;
  cli.terminal.line(`${slots.length} ${slots.length === 1 ? 'slot is' : 'slots are'} valid`);
  return EXIT.done;
}
