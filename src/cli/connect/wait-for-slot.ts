/** Waits until a slot has reached a goal. Used by `svcctl wait` and by every `--wait`. */
import { sleep } from '../../platform/pause.ts';
import { Duration, parseDurationMs } from '../../schema/quantities.ts';
import type { Cli } from '../cli.ts';
import { CliFailure, EXIT, usageFailure } from '../output/exit-codes.ts';
import { progressLine, progressOf, readinessOf } from '../output/slot-progress.ts';
import { withoutControls } from '../output/terminal.ts';
import { SlotAnswer } from './api-answers.ts';
import type { Client } from './client.ts';

export type Goal =
  /** The condition has this status: `True`, `False` or `Unknown`. */
  | { readonly kind: 'condition'; readonly type: string; readonly status: string }
  | { readonly kind: 'state'; readonly state: string }
  | { readonly kind: 'deleted' };

export const READY: Goal = { kind: 'condition', type: 'Ready', status: 'True' };

export interface WaitOptions {
  readonly name: string;
  readonly goal: Goal;
  /** Unix milliseconds. */
  readonly deadline: number;
  /** Set after an edit. Older statuses do not count, and a slot that still serves its old model while the new one cannot be loaded is not ready. */
  readonly generation?: number | undefined;
}

/** Resolves once the goal is reached. Fails with exit code 3 at the deadline, and at once if only the user can resolve the problem. */
export async function waitForSlot(cli: Cli, client: Client, options: WaitOptions): Promise<void> {
  const { name, goal, deadline } = options;
  try {
    for (;;) {
      const slot = await client.find(`/api/slots/${encodeURIComponent(name)}`, SlotAnswer);
      if (slot === undefined) {
        if (goal.kind === 'deleted') return;
        throw new CliFailure(`There is no slot "${name}"`, { hint: 'List the slots with "svcctl get slots"' });
      }
      if (isReached(slot, options)) return;
      failIfStalled(slot, options);
      if (cli.now() >= deadline) {
        throw new CliFailure(`Timed out: ${progressLine(slot)}`, {
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

/** Parses `--timeout`. Returns Unix milliseconds. */
export function deadlineOf(cli: Cli, timeout: string): number {
  if (Duration.safeParse(timeout).success) return cli.now() + parseDurationMs(timeout);
  throw usageFailure(`Write the timeout as a number and a unit, such as "30s" or "5m", not "${timeout}"`);
}

function isReached(slot: SlotAnswer, { goal, generation }: WaitOptions): boolean {
  if (goal.kind === 'deleted' || !hasObserved(slot, generation)) return false;
  if (goal.kind === 'state') return slot.status.state === goal.state;
  const status = (type: string) => slot.status.conditions.find((condition) => condition.type === type)?.status;
  const isUnfinished = status('Reconciling') === 'True' || status('Stalled') === 'True';
  if (generation !== undefined && goal.type === 'Ready' && isUnfinished) return false;
  return (status(goal.type) ?? 'Unknown') === goal.status;
}

function failIfStalled(slot: SlotAnswer, { goal, generation }: WaitOptions): void {
  if (goal.kind !== 'condition' || goal.type !== 'Ready' || goal.status !== 'True' || !hasObserved(slot, generation)) return;
  const { stalled, message } = readinessOf(slot);
  if (!stalled) return;
  throw new CliFailure(`Slot "${slot.name}" is stalled: ${withoutControls(message)}`, {
    hint: `See why with "svcctl explain ${slot.name}"`,
  });
}

function hasObserved(slot: SlotAnswer, generation: number | undefined): boolean {
  const wanted = generation ?? slot.generation;
  return wanted > 0 && slot.generation >= wanted && slot.status.observed_generation >= wanted;
}
