/** Decides whether the token of a plan may be used, and whether somebody may approve the plan. Pure. */
import type { Caller } from '../../../auth/decide/decide-access.ts';
import { GRANTS } from '../../../schema/words/access.ts';
import type { SlotName } from '../../../schema/words/names.ts';

/** How long a token is valid after its plan was made or, where a person must approve it, approved. */
export const VALID_MS = 5 * 60_000;

/** In milliseconds. A monotonic clock stands still while the machine sleeps, and Unix time may be set. */
export interface Instant {
  readonly ms: number;
  readonly wallMs: number;
}

/** `waiting`: for approval. */
export type PlanState = 'waiting' | 'ready' | 'rejected' | 'used';

/** Undefined: there was no such slot. */
type Versions = ReadonlyMap<SlotName, string | undefined>;

export interface PlanFacts {
  readonly id: string;
  readonly state: PlanState;
  /** `key` of the caller who made it. */
  readonly planner: string;
  /** When it was made or approved. */
  readonly since: Instant;
  /** The versions that it was made for, of the slots that it edits or affects. */
  readonly versions: Versions;
}

export interface Use {
  /** The token was issued for this plan and its content. */
  readonly isGenuine: boolean;
  readonly caller: Caller | undefined;
  readonly now: Instant;
  /** All slots. */
  readonly versions: Versions;
}

const AGAIN = 'make the plan again';
const UNKNOWN = `There is no such plan here, or it is over: ${AGAIN}`;

/** Whatever either clock is set to, a plan is never valid for longer. */
export const isOver = (since: Instant, now: Instant): boolean =>
  now.ms < since.ms || Math.max(now.ms - since.ms, now.wallMs - since.wallMs) > VALID_MS;

/** Returns why the token cannot be used. Undefined: it can. */
export function refuseUse(plan: PlanFacts | undefined, { isGenuine, caller, now, versions }: Use): string | undefined {
  if (plan === undefined) return UNKNOWN;
  if (!isGenuine) return 'The token is not that of this plan: use the token as it was returned';
  if (caller?.key !== plan.planner) return `Another caller made the plan: ${AGAIN}`;
  if (!GRANTS[caller.scope].includes('admin')) return 'The caller may no longer change slots: use a token with the scope "admin"';
  if (plan.state === 'used') return `The token was used already: ${AGAIN}`;
  if (plan.state === 'rejected') return 'A person rejected the plan: ask why before you make another one';
  if (isOver(plan.since, now)) return `The token was valid for five minutes: ${AGAIN}`;
  const edited = [...plan.versions].filter(([name, version]) => versions.get(name) !== version).map(([name]) => `"${name}"`);
  if (edited.length > 0) return `Changed since the plan was made: ${edited.join(', ')}; ${AGAIN}`;
  if (plan.state === 'waiting')
    return `A person must approve the plan first, in the dashboard or with "svcctl mcp approve ${plan.id}": use the token again afterwards`;
  return undefined;
}

/** Returns why the caller cannot approve or reject the plan. Undefined: the caller can. */
export function refuseReview(
  plan: PlanFacts | undefined,
  { caller, now, approves }: { readonly caller: Caller | undefined; readonly now: Instant; readonly approves: boolean },
): string | undefined {
  if (plan === undefined || isOver(plan.since, now)) return UNKNOWN;
  if (plan.state === 'used') return 'The plan was applied already';
  if (plan.state === 'rejected') return 'The plan was rejected already';
  if (!approves) return undefined;
  if (plan.state === 'ready') return 'The plan needs no approval, or has it already';
  // Without authentication all callers are the same one.
  if (caller?.key === plan.planner && plan.planner !== 'anyone')
    return 'The caller who made a plan cannot approve it: use other credentials than those of the agent';
  return undefined;
}
