/** `svcctl wait slot/NAME --for condition=Ready`. */
import { Duration, parseDurationMs } from '../../schema/quantities.ts';
import { SLOT_STATES } from '../../schema/slot-status.ts';
import type { Cli } from '../cli.ts';
import { EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import type { ServerOptions } from '../connect/server-address.ts';
import { waitFor, type Goal } from './wait-for.ts';

export interface WaitVerbOptions extends ServerOptions {
  readonly for: string;
  readonly timeout: string;
}

export async function runWait(cli: Cli, targets: readonly string[], options: WaitVerbOptions): Promise<ExitCode> {
  const names = targets.map(slotOf);
  const goal = goalOf(options.for);
  const timeoutMs = timeoutOf(options.timeout);
  const client = await cli.connect(options);
  const deadline = cli.now() + timeoutMs;
  for (const name of names) {
    await waitFor(cli, client, name, goal, { timeoutMs: Math.max(0, deadline - cli.now()) });
    cli.terminal.line(`slot/${name}: ${options.for}`);
  }
  return EXIT.done;
}

export function timeoutOf(text: string): number {
  if (!Duration.safeParse(text).success)
    throw usageFailure(`Write the time-out as a number and a unit, such as "30s" or "5m", not "${text}"`);
  return parseDurationMs(text);
}

function slotOf(target: string): string {
  const match = /^(?:slots?\/)?([a-z0-9-]+)$/.exec(target);
  if (match?.[1] === undefined) throw usageFailure(`Name the slot as "slot/NAME", not "${target}"`);
  return match[1];
}

function goalOf(text: string): Goal {
  if (text === 'delete' || text === 'deleted') return { kind: 'deleted' };
  const [kind, value, status = 'True'] = text.split('=');
  if (kind === 'condition' && value !== undefined && value !== '') return { kind, type: value, status };
  const state = SLOT_STATES.find((known) => known === value);
  if (kind === 'state' && state !== undefined) return { kind, state };
  const states = SLOT_STATES.join(', ');
  throw usageFailure(
    `Wait for "condition=Ready", "state=…" or "delete", not "${text}"`,
    `States: ${states}; a condition may have "=False" after it`,
  );
}
