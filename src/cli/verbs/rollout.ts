/** The history of a slot, undo, pause and resume, as `kubectl rollout` has them. */
import { formatToml } from '../../files/toml/decide/toml-text.ts';
import { missLines } from '../../reconciler/decide/outcome/explain.ts';
import { pausePatch } from '../../schema/slot/paused-text.ts';
import { tableAt, valueAt } from '../../schema/pod/kube-fields.ts';
import type { Answer } from '../connect/api-answers.ts';
import { slotPath, type Client } from '../connect/client.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { deadlineOf, UP_TO_DATE, waitForSlot } from '../connect/wait-for-slot.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { cellText, dataText, listText, type Column, type OutputOptions } from '../output/output.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';
import { parseTarget } from './slot.ts';

interface WaitOptions extends ServiceOptions {
  readonly wait?: boolean;
  readonly timeout: string;
}

type Listed = Answer<'revisions'>['revisions'][number];

const COLUMNS: readonly Column<Listed>[] = [
  { title: 'REVISION', cell: ({ revision }) => String(revision) },
  { title: 'WHEN', cell: ({ at }) => cellText(at) },
  { title: 'WHO', cell: ({ who }) => cellText(who) },
  { title: 'OUTCOME', cell: ({ outcome, present }) => cellText(`${outcome}${present ? ' (present)' : ''}`) },
  { title: 'CHANGE', cell: ({ message, undo_of: undoOf }) => cellText(`${undoOf ? `undo to ${undoOf}: ` : ''}${message ?? ''}`) },
];

/** Prints the oldest first, as `kubectl` does. */
export async function runHistory(cli: Cli, options: OutputOptions & { readonly revision?: string }, target: string): Promise<void> {
  const name = parseTarget(target);
  const wanted = options.revision === undefined ? undefined : numberOf(options.revision, '--revision');
  const client = await cli.connect(options);
  const { kept, revisions } = await client.request('GET', `${slotPath(name)}/revisions`, 'revisions');
  const items = revisions.toReversed();
  if (wanted === undefined) {
    await cli.terminal.write(await listText(cli.terminal, options.output, { key: 'revisions', items, columns: COLUMNS }));
    const isTable = options.output === 'table' || options.output === 'wide';
    if (items.length === 0 && isTable) cli.terminal.note(kept ? `Slot "${name}" has no revisions yet` : 'The service keeps no revisions');
    return;
  }
  const found = items.find(({ revision }) => revision === wanted);
  if (found === undefined)
    throw new CliFailure(`Revision ${wanted} of slot "${name}" is not kept`, {
      hint: `List them with "svcctl rollout history slot/${name}"`,
    });
  await cli.terminal.write((await dataText(options.output, found)) ?? withoutControls(formatToml(found.spec)));
}

export async function runStatus(cli: Cli, options: WaitOptions, target: string): Promise<void> {
  const name = parseTarget(target);
  const deadline = deadlineOf(cli, options.timeout);
  await waitUntilInForce(cli, await cli.connect(options), { name, deadline });
}

export async function runUndo(
  cli: Cli,
  options: WaitOptions & { readonly toRevision?: string; readonly dryRun?: boolean },
  target: string,
): Promise<void> {
  const name = parseTarget(target);
  const deadline = deadlineOf(cli, options.timeout);
  const to = options.toRevision === undefined ? undefined : numberOf(options.toRevision, '--to-revision');
  const client = await cli.connect(options);
  const body = { to_revision: to, dry_run: options.dryRun };
  const { result, revision, message } = await client.request('POST', `${slotPath(name)}/undo`, 'undone', { body });
  const isDry = options.dryRun === true;
  if (result === 'unchanged') cli.terminal.line(`slot/${name} unchanged (it says the same as revision ${revision})`);
  else cli.terminal.line(`slot/${name} rolled back to revision ${revision}${isDry ? ' (dry run)' : ''}: ${withoutControls(message)}`);
  if (options.wait === true && !isDry) await waitUntilInForce(cli, client, { name, deadline });
}

export const runPause = async (cli: Cli, options: ServiceOptions, target: string): Promise<void> =>
  await setPaused(await cli.connect(options), cli, parseTarget(target), true);

export async function runResume(cli: Cli, options: WaitOptions, target: string): Promise<void> {
  const name = parseTarget(target);
  const deadline = deadlineOf(cli, options.timeout);
  const client = await cli.connect(options);
  await setPaused(client, cli, name, false);
  if (options.wait === true) await waitUntilInForce(cli, client, { name, deadline });
}

async function setPaused(client: Client, { terminal }: Cli, name: string, paused: boolean): Promise<void> {
  const { spec, resource_version: version } = await client.request('GET', slotPath(name), 'slot');
  const document = tableAt(spec);
  const done = paused ? 'paused' : 'resumed';
  if ((valueAt(document, 'rollout', 'paused') === true) === paused)
    throw new CliFailure(`Rollouts of slot "${name}" are ${paused ? 'already paused' : 'not paused'}`);
  await client.request('PATCH', slotPath(name), 'slot', { body: { spec: pausePatch(document, paused), resource_version: version } });
  terminal.line(`slot/${name} ${done}`);
}

/** The status counts once it describes the newest text. */
async function waitUntilInForce(cli: Cli, client: Client, { name, deadline }: { readonly name: string; readonly deadline: number }) {
  const { generation } = await client.request('GET', slotPath(name), 'slot');
  try {
    await waitForSlot(cli, client, { name, goal: UP_TO_DATE, deadline, generation });
  } catch (error) {
    const slot = await client.request('GET', slotPath(name), 'slot').catch(() => undefined);
    for (const line of missLines(slot?.status.rollout ?? undefined)) cli.terminal.note(withoutControls(line));
    throw error;
  }
  cli.terminal.line(`slot/${name} successfully rolled out`);
}

function numberOf(text: string, flag: string): number {
  if (/^[1-9][0-9]{0,9}$/.test(text)) return Number(text);
  throw usageFailure(`Invalid ${flag} "${text}": use the number of a revision`);
}
