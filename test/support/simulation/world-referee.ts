/** Watches a world from outside and throws when something happens that never may. Independent of the planner: looks at workloads, requests and boards only. */
import { changesWorld } from '../../../src/reconciler/decide/facts/actions.ts';
import { mayMove } from '../../../src/reconciler/decide/rules/moves.ts';
import type { Plan } from '../../../src/reconciler/decide/facts/facts.ts';
import type { SlotName, WorkloadId } from '../../../src/schema/words/names.ts';
import type { Report } from '../../../src/reconciler/ports.ts';
import type { Rule } from './rules/rule.ts';
import { judgeLife, RULES, type Judges } from './rules/rules.ts';
import type { Life } from './world-life.ts';
import type { World } from './world.ts';

export interface Referee {
  /** To be called whenever something has happened. Throws a `Violation`. */
  look(): void;
  /** Notes that a fault of the world, not of the controller, ended this workload. */
  killed(workload: WorkloadId): void;
  /** Watches the board of a new controller. */
  follow(life: Life): void;
  planned(plan: Plan): void;
  /** Returns the changes planned since the last call; a probe is not a change. */
  takeChanges(): readonly string[];
  /** Throws unless every request of every controller was answered exactly once, and no hold is left. */
  close(): void;
}

/** A resync and the longest stop. */
const FORGIVEN_MS = 25_000;

class Violation extends Error {}

interface Watched {
  readonly life: Life;
  readonly judges: Judges;
  /** Since when a workload has not been a target. */
  readonly offBoardAt: Map<WorkloadId, number>;
  seenReports: number;
  seenAborts: number;
}

/** `rules`: what each controller is held to as well. */
export function createReferee(world: World, drainMs: number, rules: readonly Rule[] = RULES): Referee {
  const killed = new Set<WorkloadId>();
  const watched: Watched[] = [];
  /** What a dead controller had started late, and the new one stops: a stop that fails is tried again for minutes. */
  const strays = new Set<WorkloadId>();
  let changes: string[] = [];
  let restartedAt = 0;

  // What a dead controller had requested may still happen, and the new one needs a pass to clean up. In a cluster nothing happens that late.
  const isForgiven = (): boolean => world.cluster === undefined && watched.length > 1 && world.clock.now() - restartedAt < FORGIVEN_MS;

  function checkWorkloads(): void {
    if (isForgiven()) return;
    const alive = new Map<SlotName, string[]>();
    for (const { id, slot, phase, revision, container } of world.runtime.list()) {
      if ((phase !== 'running' && !(phase === 'created' && world.cluster !== undefined)) || strays.has(id)) continue;
      const same = alive.get(slot) ?? [];
      alive.set(slot, same);
      const altered = container.argv?.includes('--altered') === true;
      same.push(altered ? id : revision);
      if (same.length > 2) violation(`Slot "${slot}" has ${same.length} workloads`);
      if (new Set(same).size !== same.length) violation(`Slot "${slot}" has two workloads of one revision`);
    }
  }

  function checkHolds({ life }: Watched): void {
    // A terminating pod finishes its requests first, whatever the phase of its workload is.
    const running = new Set(
      world.runtime.list().flatMap(({ id, phase }) => (phase === 'running' || world.cluster !== undefined ? [id] : [])),
    );
    for (const request of life.traffic.requests) {
      if (request.answers.length > 1) violation(`Request ${request.id} was answered twice: ${request.answers.join(' and ')}`);
      if (request.hold === undefined || running.has(request.hold)) continue;
      if (!killed.has(request.hold)) violation(`Request ${request.id} was lost: its workload "${request.hold}" was stopped while it ran`);
      life.traffic.died(request.hold);
    }
  }

  function checkAborts(each: Watched): void {
    const { life, offBoardAt } = each;
    if (life.traffic.aborted.size === each.seenAborts) return;
    each.seenAborts = life.traffic.aborted.size;
    for (const workload of life.traffic.aborted) {
      const off = offBoardAt.get(workload);
      if (killed.has(workload) || off === undefined) continue;
      if (world.clock.now() - off < drainMs) violation(`The requests of "${workload}" were ended before its drain time was over`);
    }
  }

  function checkEnd({ life }: Watched): void {
    const left = life.hasEnded() ? [...life.journal.open].find(({ name }) => name === 'apply' || name === 'stop') : undefined;
    if (left !== undefined) violation(`A controller ended before its action "${left.key}"`);
  }

  function checkReports(each: Watched): void {
    const { life } = each;
    for (; each.seenReports < life.reports.length; each.seenReports += 1) {
      const report = life.reports[each.seenReports];
      if (report !== undefined) checkTimestamps(report);
      for (const { from, to, slot } of report?.moves ?? [])
        if (!mayMove(from, to)) violation(`Slot "${slot}" moved from "${from}" to "${to}"`);
    }
    const [error] = life.errors;
    if (error !== undefined) violation(error);
  }

  /** People compare timestamps with their own clocks. */
  function checkTimestamps({ at, statuses, entries }: Report): void {
    const [first, last] = world.clock.wallRange();
    const ofStatuses = statuses.flatMap(({ since, conditions }) => [since, ...conditions.map(({ lastTransitionAt }) => lastTransitionAt)]);
    const wrong = [at, ...ofStatuses, ...entries.map((entry) => entry.at)].find((time) => time < first || time > last);
    if (wrong !== undefined) violation(`The wall clock never showed the time ${wrong} that was reported`);
  }

  return {
    killed: (workload) => void killed.add(workload),
    follow(life) {
      const offBoardAt = new Map<WorkloadId, number>();
      watched.push({ life, judges: judgeLife(world, life, rules), offBoardAt, seenReports: 0, seenAborts: 0 });
      restartedAt = world.clock.now();
      let before = new Set<WorkloadId>();
      life.board.subscribe((view) => {
        const now = new Set([...view.slots.values()].flatMap(({ targets }) => targets.map(({ workload }) => workload)));
        for (const id of before) if (!now.has(id)) offBoardAt.set(id, world.clock.now());
        for (const id of now) offBoardAt.delete(id);
        before = now;
      });
    },
    planned({ actions }) {
      for (const action of actions) if (action.name === 'stop' && isForgiven()) strays.add(action.args.workload);
      for (const action of actions.filter(changesWorld)) changes.push(`${action.name} of "${action.slot}" as ${action.because.message}`);
    },
    takeChanges() {
      const taken = changes;
      changes = [];
      return taken;
    },
    look() {
      const lives = world.lives();
      checkWorkloads();
      for (const each of watched) {
        if (!lives.includes(each.life)) {
          checkEnd(each);
          continue;
        }
        checkAborts(each);
        checkHolds(each);
        checkReports(each);
        const wrong = each.judges.look();
        if (wrong !== undefined) violation(wrong);
      }
    },
    close() {
      for (const { life } of watched) {
        for (const { id, answers, slot } of life.traffic.requests) {
          if (answers.length !== 1) violation(`Request ${id} to "${slot}" has ${answers.length} answers at the end`);
        }
        if (life.traffic.inFlight() > 0) violation('A hold was never released');
      }
    },
  };
}

export function violation(message: string): never {
  throw new Violation(message);
}
