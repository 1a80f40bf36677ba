/**
 * Watches how controllers handle pods that crash: each crash is counted once, and a workload that its kubelet starts again is not replaced.
 * Independent of the planner.
 */
import type { Observed, Plan } from '../../../src/reconciler/decide/facts/facts.ts';
import type { ObservedWorkload } from '../../../src/reconciler/ports.ts';
import type { WorkloadId } from '../../../src/schema/words/names.ts';

export interface CrashJudge {
  /** Returns what is wrong with the knowledge and the plan of one controller; undefined if nothing is. */
  judge(made: Plan, observed: Observed): string | undefined;
}

/** Crashes that make a crash loop. */
const LOOP = 5;

/** Exits of a workload that one controller was shown. */
class Exits {
  count = 0;
  #last: number | undefined;
  /** By time, where the wall clock stood then. */
  readonly #known = new Map<number, number>();

  /** After a step of the wall clock, another exit may have the time of an earlier one. */
  add(at: number, offsetMs: number): void {
    if (at !== this.#last && this.#known.get(at) !== offsetMs) {
      this.count += 1;
      this.#known.set(at, offsetMs);
    }
    this.#last = at;
  }
}

/** `offsetMs`: between the wall clock and the monotonic one. */
export function createCrashJudge(offsetMs: () => number): CrashJudge {
  // Each controller has a tracker of its own.
  const seen = new WeakMap<object, Map<WorkloadId, Exits>>();
  return {
    judge(made, observed) {
      if (observed.runtime.kind === 'unreachable' || observed.traits.network !== 'pods') return undefined;
      const ends = seen.get(observed.lastActive) ?? new Map<WorkloadId, Exits>();
      seen.set(observed.lastActive, ends);
      for (const workload of observed.runtime.facts.workloads) {
        const exits = ends.get(workload.id) ?? new Exits();
        ends.set(workload.id, exits);
        if (workload.exit !== undefined) exits.add(workload.exit.at, offsetMs());
        const wrong = judgeOne(workload, exits.count, made, observed);
        if (wrong !== undefined) return wrong;
      }
      return undefined;
    },
  };
}

function judgeOne(workload: ObservedWorkload, ends: number, made: Plan, observed: Observed): string | undefined {
  const { id, slot, phase, exit } = workload;
  const decision = made.decisions.get(slot);
  if (decision === undefined || phase === 'stopping') return undefined;
  const failures = observed.attempts.get(slot)?.failures ?? [];
  const counted = failures.filter((attempt) => attempt.workload === id && attempt.kind === 'crash').length;
  if (counted > ends) return `"${id}" ended ${ends} times, but ${counted} crashes of it are counted`;
  if (exit === undefined) return undefined;
  const noted = observed.histories.get(id)?.notedExits.includes(String(exit.at)) === true;
  const notes = made.actions.some(({ name, args }) => name === 'noteCrash' && args.workload === id);
  const busy = observed.running.has(`noteCrash:${id}`) || observed.running.has(`stop:${id}`);
  if (!noted && !notes && !busy) return `The crash of "${id}" is not noted`;
  const stops = made.actions.some(({ name, args }) => name === 'stop' && args.workload === id);
  const loops = failures.filter(({ kind }) => kind === 'crash' || kind === 'probe' || kind === 'start-timeout').length >= LOOP;
  const comesBack = phase === 'created' && decision.wanted && decision.revision === workload.revision;
  return stops && comesBack && !loops ? `"${id}" is stopped although its kubelet starts it again` : undefined;
}
