/** Watches a world from outside and says what must never be. Knows nothing of the planner: only workloads, requests and the board. */
import { changesWorld } from '../../../src/reconciler/decide/facts/actions.ts';
import { mayMove } from '../../../src/reconciler/decide/rules/moves.ts';
import type { Plan } from '../../../src/reconciler/decide/facts/facts.ts';
import type { SlotName, WorkloadId } from '../../../src/schema/names.ts';
import type { Life } from './world-life.ts';
import type { World } from './world.ts';

export interface Referee {
  /** To be called whenever something has happened. Throws what is wrong. */
  look(): void;
  /** A fault of the world, not of the controller, took this workload. */
  killed(workload: WorkloadId): void;
  /** A new controller: watches its board. */
  follow(life: Life): void;
  planned(plan: Plan): void;
  /** Changes planned since the last call; probes are no changes. */
  takeChanges(): readonly string[];
  /** Every request of every life was answered exactly once, and no lease is left. */
  close(): void;
}

/** A resync, and the longest stop. */
const FORGIVEN_MS = 25_000;

class Foul extends Error {}

interface Watched {
  readonly life: Life;
  /** Since when a workload is no target any more. */
  readonly offBoardAt: Map<WorkloadId, number>;
  seenReports: number;
  seenAborts: number;
}

export function createReferee(world: World, drainMs: number): Referee {
  const killed = new Set<WorkloadId>();
  const watched: Watched[] = [];
  let changes: string[] = [];
  let restartedAt = 0;

  // What a dead controller had asked for may still come true, and the new one needs a pass to clear it away. In a cluster nothing comes that late.
  const isForgiven = (): boolean => world.cluster === undefined && watched.length > 1 && world.clock.now() - restartedAt < FORGIVEN_MS;

  function lookAtWorkloads(): void {
    if (isForgiven()) return;
    const alive = new Map<SlotName, string[]>();
    for (const { id, slot, phase, revision, container } of world.runtime.list()) {
      if (phase !== 'running' && !(phase === 'created' && world.cluster !== undefined)) continue;
      const same = alive.get(slot) ?? [];
      alive.set(slot, same);
      const altered = container.argv?.includes('--altered') === true;
      same.push(altered ? id : revision);
      if (same.length > 2) foul(`Slot "${slot}" has ${same.length} workloads`);
      if (new Set(same).size !== same.length) foul(`Slot "${slot}" has two workloads of one revision`);
    }
  }

  function lookAtLeases({ life }: Watched): void {
    // A pod that is asked to end ends its requests first, whatever its workload is like then.
    const running = new Set(
      world.runtime.list().flatMap(({ id, phase }) => (phase === 'running' || world.cluster !== undefined ? [id] : [])),
    );
    for (const request of life.traffic.requests) {
      if (request.answers.length > 1) foul(`Request ${request.id} was answered ${request.answers.join(' and ')}`);
      if (request.lease === undefined || running.has(request.lease)) continue;
      if (!killed.has(request.lease)) foul(`Request ${request.id} was lost: its workload "${request.lease}" was stopped under it`);
      life.traffic.died(request.lease);
    }
  }

  function lookAtAborts(each: Watched): void {
    const { life, offBoardAt } = each;
    if (life.traffic.aborted.size === each.seenAborts) return;
    each.seenAborts = life.traffic.aborted.size;
    for (const workload of life.traffic.aborted) {
      const off = offBoardAt.get(workload);
      if (killed.has(workload) || off === undefined) continue;
      if (world.clock.now() - off < drainMs) foul(`The requests of "${workload}" were ended before its drain time was over`);
    }
  }

  function lookAtReports(each: Watched): void {
    const { life } = each;
    for (; each.seenReports < life.reports.length; each.seenReports += 1) {
      for (const { kind, from, to, slot } of life.reports[each.seenReports]?.entries ?? []) {
        if (kind === 'state' && from !== undefined && to !== undefined && !mayMove(from, to)) {
          foul(`Slot "${slot}" moved from "${from}" to "${to}"`);
        }
      }
    }
    const [error] = life.errors;
    if (error !== undefined) foul(error);
  }

  return {
    killed: (workload) => void killed.add(workload),
    follow(life) {
      const offBoardAt = new Map<WorkloadId, number>();
      watched.push({ life, offBoardAt, seenReports: 0, seenAborts: 0 });
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
      for (const action of actions.filter(changesWorld)) changes.push(`${action.name} of "${action.slot}" as ${action.because.message}`);
    },
    takeChanges() {
      const taken = changes;
      changes = [];
      return taken;
    },
    look() {
      const lives = world.lives();
      lookAtWorkloads();
      for (const each of watched) {
        if (!lives.includes(each.life)) continue;
        lookAtAborts(each);
        lookAtLeases(each);
        lookAtReports(each);
      }
    },
    close() {
      for (const { life } of watched) {
        for (const { id, answers, slot } of life.traffic.requests) {
          if (answers.length !== 1) foul(`Request ${id} to "${slot}" has ${answers.length} answers at the end`);
        }
        if (life.traffic.inFlight() > 0) foul('A lease has leaked');
      }
    },
  };
}

export function foul(message: string): never {
  throw new Foul(message);
}
