/** `svcctl validate -f`: checks files without a service. Exits with 1 if one of them has a problem. */
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import { findAliasConflicts } from '../../schema/slot/slot-rules.ts';
import { SlotDocument } from '../../schema/slot/slot-spec.ts';
import type { Cli } from '../cli.ts';
import type { Manifest } from '../manifests/manifest.ts';
import { readManifests } from '../manifests/read-manifests.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { withoutControls } from '../output/terminal.ts';

export async function runValidate(cli: Cli, { file }: { readonly file: string }): Promise<ExitCode> {
  const { slots, problems } = await readManifests(cli, file);
  for (const problem of problems) cli.terminal.line(withoutControls(formatProblem(problem)));
  if (problems.length > 0) return EXIT.failed;
  for (const line of warnings(slots)) cli.terminal.note(`${cli.terminal.paintError('yellow', 'warning:')} ${withoutControls(line)}`);
  cli.terminal.line(`${slots.length} ${slots.length === 1 ? 'slot is' : 'slots are'} valid`);
  return EXIT.done;
}

/** Names that more than one of the slots claims. The service accepts them. */
function warnings(slots: readonly Manifest[]): readonly string[] {
  const fileOf = new Map(slots.map(({ name, file }) => [String(name), file]));
  const named = slots.flatMap(({ name, document }) => {
    const { data } = SlotDocument.safeParse(document);
    return data === undefined ? [] : [{ name, enabled: data.enabled, model: data.model.default, aliases: data.model.aliases }];
  });
  return [...findAliasConflicts(named)].flatMap(([name, sentences]) =>
    sentences.map((sentence) => `${fileOf.get(name) ?? name}: model.aliases: ${sentence}`),
  );
}
