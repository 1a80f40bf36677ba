/**
 * The server of a workload, if its prompts can be kept. The environment that it was started with says so, also for
 * a workload that an earlier controller has started. Pure.
 */
import type { ObservedWorkload, PromptServer } from '../../ports.ts';
import type { SavedServer } from './actions.ts';
import type { SlotView } from './view.ts';
import { MODEL_FILES, PROMPTS } from './workload.ts';

/** Undefined where it does not run or save, or where nothing tells its model from another of the same shape. */
export function promptServer({ slot, revision, phase, endpoints, container }: ObservedWorkload): PromptServer | undefined {
  const { [PROMPTS]: variable, [MODEL_FILES]: modelFiles } = container.env ?? {};
  const [endpoint, ...others] = endpoints;
  if (phase !== 'running' || endpoint === undefined || others.length > 0) return undefined;
  return variable === undefined || modelFiles === undefined ? undefined : { slot, variable, endpoint, revision, modelFiles };
}

/** The same, if it may have prompts that are worth keeping. */
export function savedServer(
  fact: ObservedWorkload,
  { spec, lastActiveAt }: Pick<SlotView, 'spec' | 'lastActiveAt'>,
): SavedServer | undefined {
  const server = spec.lifecycle.keepPrompts && lastActiveAt !== undefined ? promptServer(fact) : undefined;
  return server && { ...server, usedAt: lastActiveAt ?? 0 };
}
