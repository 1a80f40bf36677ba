/** `svcctl validate -f`: checks files without a service; exits 1 when something is wrong. */
import { formatProblem } from '../../schema/spec-problem.ts';
import type { Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { readManifests, styleOf } from '../manifests/read-manifests.ts';
import { harmless } from '../output/terminal.ts';

export async function runValidate(cli: Cli, options: { readonly file: string }): Promise<ExitCode> {
  const { slots, problems } = await readManifests(cli, options.file);
  for (const problem of problems) cli.terminal.line(harmless(formatProblem(problem, styleOf(problem))));
  if (problems.length > 0) return EXIT.failed;
  cli.terminal.line(`${slots.length} ${slots.length === 1 ? 'slot is' : 'slots are'} valid`);
  return EXIT.done;
}
