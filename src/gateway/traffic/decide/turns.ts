/**
 * The order in which waiting requests are served: priority classes first, and within a class start-time fair queueing
 * over callers, by Goyal, Vin and Cheng (1996). `fair-queue.ts` keeps the queue. Pure.
 *
 *   add ──► class of the priority ──► queue of the caller, first come, first served
 *   take ◄─ the highest class, or one that was passed over ◄─ the caller with the least virtual time
 *
 * A request that is taken adds work ÷ weight to the virtual time of its caller. A caller that begins to wait has the
 * virtual time of its class, which is that of the caller served last, or its own if that is later. So nobody saves up
 * turns, and nobody gains by leaving and coming again.
 *
 * The bound. Let a request of a caller of weight w wait while its caller has the work A before it: what waits before
 * it, and what was served last. Each other caller, of weight v, is served between the virtual times at which the
 * request began to wait and is served, which differ by at most A ÷ w: work of at most v × A ÷ w, and the one request
 * that goes beyond that (`mostWorkBefore`). Among callers of the weight W together, the others get at most
 * (W − w) × A ÷ w, and one request each. How many requests the others have, and when they came, does not matter.
 *
 * Each class that waits gets at least one of any `TURNS` turns (`mostTurns`), so the bound of a class holds for all.
 */
import { PRIORITIES, type Priority } from '../../../schema/words/access.ts';

/** What a request may ask of a queue. */
export interface Claim {
  /** Whose turn it takes. */
  readonly caller: string;
  /** The share that a caller gets, compared with others. */
  readonly weight: number;
  readonly priority: Priority;
  /** 1 to `MOST_WORK`. */
  readonly work: number;
}

/** Longer prompts count as this one, so that a caller can wait for one of them. */
export const MOST_WORK = 16;
/** About 4,000 tokens: computing a prompt of that length takes about as long as an ordinary answer. */
const BYTES_OF_WORK = 16_384;
/** A class that waits gets one of so many turns. */
export const TURNS = 20;
export const MOST_PASSED = TURNS - PRIORITIES.length + 1;

/** An answer, and its prompt. How long the answer will be is not known. */
export const estimateWork = (bodyBytes: number): number => Math.min(MOST_WORK, 1 + bodyBytes / BYTES_OF_WORK);

/** Most work of others of the same class that is served before a request. `own.work`: A in the comment above. */
export const mostWorkBefore = (own: Pick<Claim, 'work' | 'weight'>, weightsOfOthers: readonly number[]): number =>
  weightsOfOthers.reduce((sum, weight) => sum + (weight * own.work) / own.weight + MOST_WORK, 0);

/** Most turns of all classes in which a class that waits gets `turns`. */
export const mostTurns = (turns: number, priority: Priority): number =>
  priority === 'high' ? Math.ceil(((turns + 2) * MOST_PASSED) / (MOST_PASSED - 2)) : turns * TURNS;

/** The part of a limit that each process has: at least one, unless the limit is 0. */
export const partOf = (limit: number, processes: number): number => (limit === 0 ? 0 : Math.max(1, Math.floor(limit / processes)));
