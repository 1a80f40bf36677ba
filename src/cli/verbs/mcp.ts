/** `svcctl mcp pending|approve|reject`: a person decides on the plans of agents (`SVC_MCP_APPROVE`). */
import type { Answer } from '../connect/api-answers.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { usageFailure } from '../output/exit-codes.ts';
import { cellText, dataText, type OutputOptions } from '../output/output.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

type Listed = Answer<'agentPlan'>;

/** Prints every change in full: what is left out would be approved unread. */
export async function runPending(cli: Cli, options: OutputOptions): Promise<void> {
  const { terminal } = cli;
  const answer = await (await cli.connect(options)).request('GET', '/api/mcp/plans', 'agentPlans');
  const data = await dataText(options.output, answer);
  if (data !== undefined) return terminal.write(data);
  if (answer.plans.length === 0) return terminal.note('No agent has a plan');
  await terminal.write(`${answer.plans.map(planText).join('\n')}\n`);
}

const planText = ({ id, by, caller, waits, expires_at: end, slots, text }: Listed): string =>
  [
    `plan/${cellText(id)} by "${cellText(by)}" (${cellText(caller)}), ${waits ? 'waits for approval' : 'may be applied'} until ${cellText(end)}`,
    ...slots.flatMap(({ name, result, keys }) => [
      `  slot/${cellText(name)} ${result}`,
      ...keys.map(({ key, before, after }) => `    ${cellText(key)}: ${valueText(before)} -> ${valueText(after)}`),
    ]),
    ...text.split('\n').map((line) => `  ${visible(line)}`),
  ].join('\n');

/** Characters that change how others are shown are written out, so that no text can mislead. */
const visible = (text: string): string =>
  withoutControls(text).replaceAll(/\p{Cf}/gu, (found) => `\\u{${found.codePointAt(0)?.toString(16) ?? ''}}`);

const valueText = (value: unknown): string => (value === undefined ? '(not set)' : visible(JSON.stringify(value)));

export const runApprove = async (cli: Cli, options: ServiceOptions, id: string): Promise<void> =>
  await review(cli, options, { id, verb: 'approve' });

export const runReject = async (cli: Cli, options: ServiceOptions, id: string): Promise<void> =>
  await review(cli, options, { id, verb: 'reject' });

async function review(
  cli: Cli,
  options: ServiceOptions,
  { id, verb }: { readonly id: string; readonly verb: 'approve' | 'reject' },
): Promise<void> {
  if (!/^[0-9a-f]{8}$/.test(id))
    throw usageFailure(`Invalid plan id "${id}": use 8 hexadecimal digits`, 'List the plans with "svcctl mcp pending"');
  await (await cli.connect(options)).request('POST', `/api/mcp/plans/${id}/${verb}`, 'agentPlan');
  cli.terminal.line(`plan/${id} ${verb === 'approve' ? 'approved' : 'rejected'}`);
}
