/** Plans of agents, in memory until they are over: a token applies its plan once. The rules are in `decide/`. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Caller } from '../../auth/decide/decide-access.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { PlannedSlot } from '../../schema/status/resource-answers.ts';
import { isOver, refuseReview, refuseUse, VALID_MS, type Instant, type PlanFacts } from './decide/judge-plan.ts';

/** What an agent wants, and what it was told about it. */
export interface Draft extends Pick<PlanFacts, 'versions'> {
  /** As in the body of `POST /api/apply`. */
  readonly edits: readonly { readonly name: SlotName; readonly spec: unknown; readonly resource_version?: string }[];
  readonly slots: readonly PlannedSlot[];
  /** What the controller would do. */
  readonly text: string;
}

export interface ChangePlan extends Draft, PlanFacts {
  readonly by: Caller;
  readonly hash: string;
}

type Outcome = { readonly ok: true; readonly plan: ChangePlan } | { readonly ok: false; readonly message: string };

export type ChangePlans = ReturnType<typeof createChangePlans>;

/** Bodies of requests are limited, so these take at most 32 MiB. */
const MOST_PLANS = 32;
const TOKEN = /^plan_([0-9a-f]{8})_([\w-]{43})$/;

interface PlansOptions {
  readonly now: () => Instant;
  readonly needsApproval: boolean;
}

export function createChangePlans({ now, needsApproval }: PlansOptions) {
  const key = randomBytes(32);
  /** The oldest first. */
  const plans = new Map<string, ChangePlan>();
  const sign = ({ id, hash, planner }: ChangePlan): Buffer => createHmac('sha256', key).update(`${id} ${hash} ${planner}`).digest();
  const isTokenOf = (plan: ChangePlan | undefined, signature: string): boolean =>
    plan !== undefined && timingSafeEqual(sign(plan), Buffer.from(signature, 'base64url'));

  function review(id: string, caller: Caller | undefined, approves: boolean): Outcome {
    const plan = plans.get(id);
    const at = now();
    const message = refuseReview(plan, { caller, now: at, approves });
    if (message !== undefined || plan === undefined) return { ok: false, message: message ?? '' };
    const reviewed: ChangePlan = { ...plan, state: approves ? 'ready' : 'rejected', since: approves ? at : plan.since };
    plans.set(id, reviewed);
    return { ok: true, plan: reviewed };
  }

  return {
    needsApproval,
    add(draft: Draft, by: Caller): { readonly plan: ChangePlan; readonly token: string } {
      const at = now();
      const oldest = [...plans.values()].filter(({ since }, index) => index <= plans.size - MOST_PLANS || isOver(since, at));
      for (const { id } of oldest) plans.delete(id);
      const hash = createHash('sha256')
        .update(JSON.stringify([draft.edits, draft.slots, [...draft.versions], draft.text]))
        .digest('hex');
      const id = randomBytes(4).toString('hex');
      const plan: ChangePlan = { ...draft, id, hash, by, planner: by.key, since: at, state: needsApproval ? 'waiting' : 'ready' };
      plans.set(id, plan);
      return { plan, token: `plan_${id}_${sign(plan).toString('base64url')}` };
    },
    /** Uses up the token. `versions`: those of all slots, read just now. */
    use(token: string, caller: Caller | undefined, versions: PlanFacts['versions']): Outcome {
      const [, id = '', signature = ''] = TOKEN.exec(token) ?? [];
      const plan = plans.get(id);
      const message = refuseUse(plan, { isGenuine: isTokenOf(plan, signature), caller, now: now(), versions });
      if (message !== undefined || plan === undefined) return { ok: false, message: message ?? '' };
      const used: ChangePlan = { ...plan, state: 'used' };
      plans.set(id, used);
      return { ok: true, plan: used };
    },
    approve: (id: string, caller: Caller | undefined): Outcome => review(id, caller, true),
    reject: (id: string, caller: Caller | undefined): Outcome => review(id, caller, false),
    /** Those that can still be applied or approved. */
    list: (): readonly ChangePlan[] =>
      [...plans.values()].filter(({ state, since }) => (state === 'waiting' || state === 'ready') && !isOver(since, now())),
  };
}

export const expiryOf = ({ wallMs }: Instant): string => new Date(wallMs + VALID_MS).toISOString();
