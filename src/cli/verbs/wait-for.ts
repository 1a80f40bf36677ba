/** Waits until a slot is as wanted. Used by `svcctl wait` and by every `--wait`. */
import { SlotShape } from '../connect/api-shapes.ts';
import type { Cli } from '../cli.ts';
import type { Client } from '../connect/client.ts';
import { CliFailure, EXIT } from '../output/exit-codes.ts';
import { progressLine, progressOf, readyOf } from '../output/slot-progress.ts';
import { harmless } from '../output/terminal.ts';
import { sleep } from '../../platform/pause.ts';

export type Goal =
  /** The condition has this status: `True`, `False` or `Unknown`. */
  | { readonly kind: 'condition'; readonly type: string; readonly status: string }
  | { readonly kind: 'state'; readonly state: string }
  | { readonly kind: 'deleted' };

export interface WaitOptions {
  readonly timeoutMs: number;
  /** Only a status that has seen this generation counts: after an edit, the old one may still look done. */
  readonly generation?: number | undefined;
}

/** Resolves once the goal is reached. Fails with exit code 3 when time is over, and at once when the slot needs a person. */
export async function waitFor(cli: Cli, client: Client, name: string, goal: Goal, options: WaitOptions): Promise<void> {
  const deadline = cli.now() + options.timeoutMs;
  try {
    for (;;) {
      const slot = await client.find(`/api/slots/${encodeURIComponent(name)}`, SlotShape);
      if (slot === undefined) {
        if (goal.kind === 'deleted') return;
        throw new CliFailure(`There is no slot "${name}"`, { hint: 'List the slots with "svcctl get slots"' });
      }
      if (isReached(slot, goal, options.generation)) return;
      failIfStalled(slot, goal, options.generation);
      if (cli.now() >= deadline) {
        throw new CliFailure(`Time is over: ${progressLine(slot)}`, {
          exitCode: EXIT.timedOut,
          hint: `See why with "svcctl explain ${name}", or wait longer with --timeout`,
        });
      }
      cli.terminal.progress(progressOf(slot));
      await sleep(Math.min(client.pollMs, Math.max(1, deadline - cli.now())));
    }
  } finally {
    cli.terminal.endProgress();
  }
}

function isReached(slot: SlotShape, goal: Goal, generation: number | undefined): boolean {
  if (goal.kind === 'deleted') return false;
  if (!hasSeen(slot, generation)) return false;
  if (goal.kind === 'state') return slot.status.state === goal.state;
  const status = (type: string) => slot.status.conditions.find((condition) => condition.type === type)?.status;
  // While a new model takes over, the old one still answers: ready, but not yet what was asked for.
  if (generation !== undefined && goal.type === 'Ready' && status('Reconciling') === 'True') return false;
  return (status(goal.type) ?? 'Unknown') === goal.status;
}

function failIfStalled(slot: SlotShape, goal: Goal, generation: number | undefined): void {
  if (goal.kind !== 'condition' || goal.type !== 'Ready' || goal.status !== 'True' || !hasSeen(slot, generation)) return;
  const { stalled, message } = readyOf(slot);
  if (!stalled) return;
  throw new CliFailure(`Slot "${slot.name}" needs a person: ${harmless(message)}`, { hint: `See why with "svcctl explain ${slot.name}"` });
}

function hasSeen(slot: SlotShape, generation: number | undefined): boolean {
  const wanted = generation ?? slot.generation;
  return wanted > 0 && slot.generation >= wanted && slot.status.observed_generation >= wanted;
}
