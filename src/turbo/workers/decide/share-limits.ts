/**
 * Divides the limits of the service among its processes. The controller alone serves large bodies and recordings, so it
 * gets most of the memory for bodies, and the disk. Pure.
 */
import { partOf } from '../../../gateway/traffic/decide/turns.ts';
import type { Settings } from '../../../schema/settings/settings.ts';

export type SharedLimits = Pick<
  Settings,
  'SVC_BODY_LIMIT' | 'SVC_BUFFER_LIMIT' | 'SVC_MAX_CONNECTIONS' | 'SVC_PARK_LIMIT' | 'SVC_SPOOL_LIMIT'
>;

/** The controller keeps half of the memory for bodies, or more where one body may need more, but leaves a quarter. */
const LEAST_KEPT = 1 / 2;
const MOST_KEPT = 3 / 4;
/** A worker must have room for several of its largest bodies. */
const LARGEST_BODY = 1 / 4;

/** `processes`: with the controller, at least 2. Slots have limits as well, which each process divides by `shares`. */
export function shareLimits<Limits extends SharedLimits>(limits: Limits, processes: number) {
  const { SVC_BUFFER_LIMIT: buffer, SVC_BODY_LIMIT: body } = limits;
  const kept = Math.floor(Math.min(Math.max(buffer * LEAST_KEPT, body), buffer * MOST_KEPT));
  const each = Math.floor((buffer - kept) / (processes - 1));
  const parked = partOf(limits.SVC_PARK_LIMIT, processes);
  return {
    // It may take connections over, so its limit of connections includes those of all workers.
    controller: { ...limits, SVC_BUFFER_LIMIT: kept, SVC_PARK_LIMIT: parked, shares: processes },
    worker: {
      ...limits,
      SVC_BUFFER_LIMIT: each,
      SVC_PARK_LIMIT: parked,
      SVC_SPOOL_LIMIT: 0,
      shares: processes,
      SVC_MAX_CONNECTIONS: partOf(limits.SVC_MAX_CONNECTIONS, processes),
    },
    workerBodyBytes: Math.floor(each * LARGEST_BODY),
  };
}
