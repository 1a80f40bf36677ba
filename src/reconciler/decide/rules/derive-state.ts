/** Which of the eight states a slot is in: one total function of few facts, never stored to decide. Pure. */
import type { SlotState } from '../../../schema/status/slot-status.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import type { Roles } from './assign-roles.ts';

type Subjects = Pick<Roles, 'serving' | 'starting' | 'draining' | 'sleeping'>;

export interface StateFacts {
  /** The workload that represents the slot. `draining`: it gets no new requests. An exited workload counts as none. */
  readonly workload: 'none' | 'created' | 'running' | 'draining';
  /** Its runtime is still fetching what it needs. */
  readonly fetching: boolean;
  /** It is healthy, and requests can be sent to it, or will be once they have woken it. */
  readonly passing: boolean;
  /** It has requests in flight. */
  readonly inFlight: boolean;
  /** It has had a request before. */
  readonly served: boolean;
  /** A workload is being created. */
  readonly applying: boolean;
  /** The image or the model is being pulled for it. */
  readonly pulling: boolean;
}

export function deriveState(facts: StateFacts): SlotState {
  switch (facts.workload) {
    case 'none':
      if (facts.applying) return 'starting';
      return facts.pulling ? 'pulling' : 'offline';
    case 'created':
      return facts.fetching ? 'pulling' : 'starting';
    case 'draining':
      return 'unloading';
    case 'running':
      if (!facts.passing) return 'warming';
      if (facts.inFlight) return 'serving';
      return facts.served ? 'idle' : 'ready';
    default:
      return facts.workload satisfies never;
  }
}

/** What the state depends on, as far as the workloads show it. */
export function stateFactsOf(view: SlotView, roles: Subjects): Omit<StateFacts, 'applying' | 'pulling'> {
  const subject = isLeft(view, roles) ? undefined : findSubject(view, roles);
  if (subject === undefined) {
    const draining = view.workloads.some(({ fact }) => fact.phase !== 'exited');
    return { workload: draining ? 'draining' : 'none', fetching: false, passing: false, inFlight: false, served: false };
  }
  return {
    workload: subject.fact.phase === 'created' ? 'created' : 'running',
    fetching: subject.fact.fetching !== undefined,
    passing: (roles.serving ?? roles.sleeping) !== undefined,
    inFlight: subject.inFlight > 0,
    served: subject.used || roles.sleeping !== undefined,
  };
}

/** The workload that represents the slot: the serving one, or else one that may serve soon, running ones first. */
export function findSubject(view: SlotView, { serving, starting, draining }: Subjects): WorkloadView | undefined {
  if (serving !== undefined) return serving;
  const staying = view.workloads.filter((workload) => workload.alive && draining.every((each) => each.workload !== workload));
  return staying.find(({ fact }) => fact.phase === 'running') ?? starting ?? staying[0];
}

/**
 * Nothing answers, and what did is leaving: to make room, for a fault that a late probe may still disprove, or with a
 * stop that is under way and may fail.
 */
function isLeft(view: SlotView, roles: Subjects): boolean {
  if (roles.draining.some(({ because }) => because.reason === 'RoomNeeded')) return true;
  if (findSubject(view, roles)?.fact.phase === 'running') return false;
  const running = view.workloads.filter(({ fact }) => fact.phase === 'running');
  return running.some((workload) => workload.stopUnderWay || roles.draining.some((each) => each.workload === workload));
}
