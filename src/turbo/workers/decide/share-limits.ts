/**
 * Divides the limits of the service among its processes. The controller alone serves large bodies and recordings, so it
 * gets most of the memory for bodies, and the disk. Pure.
 */
import { partOf } from '../../../gateway/traffic/decide/turns.ts';
import type { Settings } from '../../../schema/settings/settings.ts';

export type SharedLimits = Pick<
  Settings,
  'SVC_BODY_LIMIT' | 'SVC_BUFFER_LIMIT' | 'SVC_CONTROL_PLANE' | 'SVC_MAX_CONNECTIONS' | 'SVC_PARK_LIMIT' | 'SVC_SPOOL_LIMIT'
>;

/** The controller keeps half of the memory for bodies, or more where one body may need more, but leaves a quarter. */
const LEAST_KEPT = 1 / 2;
const MOST_KEPT = 3 / 4;
/** A worker must have room for several of its largest bodies. */
const LARGEST_BODY = 1 / 4;
/** The controller's part of requests if it gets only those that workers pass on. */
const PASSED_ON = 1 / 8;

/**
 * `processes`: with the controller, at least 2. Slots have limits as well, which each process divides by `shares`: each
 * may have at least 1.
 */
export function shareLimits<Limits extends SharedLimits>(limits: Limits, processes: number) {
  const { SVC_BUFFER_LIMIT: buffer, SVC_BODY_LIMIT: body, SVC_PARK_LIMIT: parked } = limits;
  const workers = processes - 1;
  const isSeparate = limits.SVC_CONTROL_PLANE === 'separate';
  const kept = Math.floor(Math.min(Math.max(buffer * LEAST_KEPT, body), buffer * MOST_KEPT));
  const each = Math.floor((buffer - kept) / workers);
  const own = isSeparate ? 1 / PASSED_ON : processes;
  const shares = isSeparate ? workers / (1 - PASSED_ON) : processes;
  return {
    // It may take connections over, so its limit of connections includes those of all workers.
    controller: { ...limits, SVC_BUFFER_LIMIT: kept, SVC_PARK_LIMIT: partOf(parked, own), shares: own },
    worker: {
      ...limits,
      SVC_BUFFER_LIMIT: each,
      SVC_PARK_LIMIT: partOf(parked, shares),
      SVC_SPOOL_LIMIT: 0,
      shares,
      SVC_MAX_CONNECTIONS: partOf(limits.SVC_MAX_CONNECTIONS, isSeparate ? workers : processes),
    },
    workerBodyBytes: Math.floor(each * LARGEST_BODY),
  };
}
