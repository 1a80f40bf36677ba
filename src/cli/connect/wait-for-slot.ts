/** Waits until a slot reaches a goal, for `svcctl wait` and `--wait`. */
import { sleep } from '../../platform/clock.ts';
import { isDuration, parseDurationMs } from '../../schema/words/quantities.ts';
import { CliFailure, EXIT, usageFailure } from '../output/exit-codes.ts';
import { conditionOf, noticeOf, progressLine, progressOf, readinessOf } from '../output/slot-progress.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';
import type { SlotAnswer } from './api-answers.ts';
import type { Client } from './client.ts';

export type Goal =
  /** The condition has this status: `True`, `False` or `Unknown`. */
  | { readonly kind: 'condition'; readonly type: string; readonly status: string }
  | { readonly kind: 'state'; readonly state: string }
  | { readonly kind: 'deleted' };

export const READY = { kind: 'condition', type: 'Ready', status: 'True' } as const satisfies Goal;
export const UP_TO_DATE = { kind: 'condition', type: 'UpToDate', status: 'True' } as const satisfies Goal;

export interface WaitOptions {
  readonly name: string;
  readonly goal: Goal;
  /** Unix milliseconds. */
  readonly deadline: number;
  /** Set after an edit: the lowest generation that counts. */
  readonly generation?: number | undefined;
  /** Set after an edit that requested this model: no other model counts. */
  readonly model?: string | undefined;
}

/**
 * Resolves with the slot when it reaches the goal, or with undefined if it is deleted. The last edit counts: a slot
 * that still answers with its earlier model is not ready. Fails with exit code 3 at the deadline, and at once if only
 * an action of a user can lead to the goal.
 */
export async function waitForSlot(cli: Cli, client: Client, options: WaitOptions): Promise<SlotAnswer | undefined> {
  const { name, goal, deadline } = options;
  try {
    for (;;) {
      const slot = await client.find(`/api/slots/${encodeURIComponent(name)}`, 'slot');
      if (slot === undefined) {
        if (goal.kind === 'deleted') return undefined;
        throw new CliFailure(`Slot "${name}" not found`, { hint: 'List the slots with "svcctl get slots"' });
      }
      if (hasObserved(slot, options)) {
        failIfHopeless(slot, options);
        if (isReached(slot, goal)) return slot;
      }
      const hint = `See why with "svcctl explain ${name}", or wait longer with --timeout`;
      if (cli.now() >= deadline) throw new CliFailure(`Timed out: ${progressLine(slot)}`, { exitCode: EXIT.timedOut, hint });
      cli.terminal.progress(progressOf(slot));
      await sleep(Math.min(client.pollMs, Math.max(1, deadline - cli.now())));
    }
  } finally {
    cli.terminal.endProgress();
  }
}

/** Parses `--timeout`. Returns Unix milliseconds. */
export function deadlineOf(cli: Cli, timeout: string): number {
  if (isDuration(timeout)) return cli.now() + parseDurationMs(timeout);
  throw usageFailure(`Invalid timeout "${timeout}"`, 'Use a number and a unit, such as "30s" or "5m"');
}

/** Whether the status describes the last edit. A document that was never valid has no generation. */
function hasObserved(slot: SlotAnswer, { generation: wanted = 0 }: WaitOptions): boolean {
  const { generation, status } = slot;
  const isRefused = generation === 0 && readinessOf(slot).stalled;
  return isRefused || (generation > 0 && generation >= wanted && status.observed_generation >= generation);
}

function isReached(slot: SlotAnswer, goal: Goal): boolean {
  if (goal.kind === 'deleted') return false;
  if (asksForNewest(goal) && !isUpToDate(slot)) return false;
  if (goal.kind === 'state') return slot.status.state === goal.state;
  if (goal.type === UP_TO_DATE.type && goal.status === 'True') return true;
  return (conditionOf(slot, goal.type)?.status ?? 'Unknown') === goal.status;
}

/** Goals that a workload from before the edit must not fulfil. Any other condition or state is taken literally. */
function asksForNewest(goal: Goal): boolean {
  if (goal.kind === 'state') return goal.state === 'ready';
  return goal.kind === 'condition' && goal.status === 'True' && (goal.type === READY.type || goal.type === UP_TO_DATE.type);
}

/** Fails if the goal cannot be reached without an action of a user. */
function failIfHopeless(slot: SlotAnswer, { goal, model }: WaitOptions): void {
  if (!asksForNewest(goal)) return;
  const { name, status } = slot;
  const hint = `See why with "svcctl explain ${name}"`;
  const { stalled, upToDate, message } = readinessOf(slot);
  if (stalled) throw new CliFailure(`Slot "${name}" is stalled: ${withoutControls(message)}`, { hint });
  if (upToDate === 'False' && conditionOf(slot, 'UpToDate')?.reason === 'Paused')
    throw new CliFailure(`The edit of slot "${name}" waits, because rollouts are paused`, {
      hint: `Resume them with "svcctl rollout resume slot/${name}"`,
    });
  if (upToDate === 'False' && conditionOf(slot, 'Reconciling')?.status === 'False')
    throw new CliFailure(`Slot "${name}" cannot be loaded: ${withoutControls(noticeOf(slot))}`, { hint });
  if (model !== undefined && isUpToDate(slot) && status.model !== model) {
    const now = status.model ?? 'none';
    throw new CliFailure(`Another client has edited slot "${name}": its model is "${withoutControls(now)}", not "${model}"`, { hint });
  }
  const ready = conditionOf(slot, READY.type);
  const isOff = isUpToDate(slot) && ready?.status === 'False' && OFF_REASONS.has(ready.reason);
  if (!isOff || (goal.kind === 'condition' && goal.type === UP_TO_DATE.type)) return;
  throw new CliFailure(`Slot "${name}" will not become ready: ${withoutControls(ready.message)}`, {
    hint: `Load it with "svcctl slot load ${name}"`,
  });
}

/** Reasons of slots that stay off until an edit. */
const OFF_REASONS: ReadonlySet<string> = new Set(['Disabled', 'NoReplicas']);

/** An older service has no condition `UpToDate`; the others imply it. */
function isUpToDate(slot: SlotAnswer): boolean {
  const { upToDate, stalled } = readinessOf(slot);
  return upToDate === undefined ? conditionOf(slot, 'Reconciling')?.status !== 'True' && !stalled : upToDate === 'True';
}
