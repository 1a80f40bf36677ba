/** `svcctl wait slot/NAME`, by default until the slot is up to date. */
import { SLOT_STATES } from '../../schema/status/slot-status.ts';
import type { Cli } from '../cli.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { deadlineOf, waitForSlot, type Goal } from '../connect/wait-for-slot.ts';
import { usageFailure } from '../output/exit-codes.ts';

export interface WaitOptions extends ServiceOptions {
  readonly for: string;
  readonly timeout: string;
}

export async function runWait(cli: Cli, options: WaitOptions, ...targets: string[]): Promise<void> {
  const names = targets.map(parseTarget);
  const goal = parseGoal(options.for);
  const deadline = deadlineOf(cli, options.timeout);
  const client = await cli.connect(options);
  for (const name of names) {
    await waitForSlot(cli, client, { name, goal, deadline });
    cli.terminal.line(`slot/${name}: ${options.for}`);
  }
}

function parseTarget(target: string): string {
  const name = /^(?:slots?\/)?([a-z0-9-]+)$/.exec(target)?.[1];
  if (name === undefined) throw usageFailure(`Write the slot as "slot/NAME", not "${target}"`);
  return name;
}

function parseGoal(text: string): Goal {
  if (text === 'delete' || text === 'deleted') return { kind: 'deleted' };
  const [kind, value, status = 'True'] = text.split('=');
  if (kind === 'condition' && value !== undefined && value !== '') return { kind, type: value, status };
  const state = SLOT_STATES.find((known) => known === value);
  if (kind === 'state' && state !== undefined) return { kind, state };
  throw usageFailure(
    `Wait for "condition=TYPE", "condition=TYPE=False", "state=STATE" or "delete", not for "${text}"`,
    `The states are ${SLOT_STATES.join(', ')}`,
  );
}
