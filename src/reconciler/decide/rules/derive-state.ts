/** Which of the eight states a slot is in: one total function of a few facts. State is never stored to decide anything. */
import type { SlotState } from '../../../schema/slot-status.ts';

export interface StateFacts {
  /**
   * The workload that stands for the slot: the one that answers, else the one that is to answer, else one that is going away.
   * `draining`: it gets no new requests. An exited workload is none.
   */
  readonly workload: 'none' | 'created' | 'running' | 'draining';
  /** Its runtime still fetches what it needs. */
  readonly fetching: boolean;
  /** It passed its last probe, or failed it too seldom to matter, and requests can be sent to it. */
  readonly passing: boolean;
  /** It has requests in flight. */
  readonly inFlight: boolean;
  /** It had a request before. */
  readonly served: boolean;
  /** A workload is being created. */
  readonly applying: boolean;
  /** The image or the model is being fetched for it. */
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
