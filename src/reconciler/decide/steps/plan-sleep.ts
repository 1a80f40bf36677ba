/**
 * When an idle server is put to sleep or woken, and when its requests are counted first: clients that the gateway does
 * not know may use it. Pure.
 */
import type { Finding } from '../../../schema/words/failure.ts';
import type { PoolBytes } from '../facts/memory-pools.ts';
import type { SlotView, WorkloadView } from '../facts/view.ts';
import { isAsleep, type Roles } from '../rules/assign-roles.ts';
import { delayAfter } from '../rules/backoff.ts';
import { ASLEEP } from '../rules/wanted.ts';
import { askedServer, awaitOthers, NOTHING_DUE, type TimedActions } from './plan-stops.ts';

/** Tens of gigabytes are copied from a device within seconds. */
const SLEEP_WITHIN_MS = 60_000;
/** A server that is busy with other clients is not idle. */
const COUNT_AGAIN_MS = 10_000;

export const WAKING: Finding = { reason: 'Waking', message: 'The server sleeps and is woken' };

/** `memory`: what the server takes in addition when it is woken. */
export function planSleep(view: SlotView, { sleeping, starting, waitsFor }: Roles, memory: PoolBytes): TimedActions {
  const slot = view.slot.name;
  if (starting !== undefined && isAsleep(starting)) {
    if (isBusy(starting) || waitsFor !== undefined) return NOTHING_DUE;
    const args = { ...askedServer(starting, view), withinMs: view.spec.lifecycle.startTimeoutMs, memory };
    return { actions: [{ name: 'wake', slot, because: WAKING, args }], wakes: [] };
  }
  if (sleeping === undefined || isAsleep(sleeping) || isBusy(sleeping)) return NOTHING_DUE;
  // What woke by itself, or by another client, may wake again at once.
  const { times = 0, lastAt = 0 } = sleeping.known.sleeps ?? {};
  const at = lastAt + delayAfter(times);
  if (at > view.now) return { actions: [], wakes: [at] };
  const awaited = awaitOthers(sleeping, view, ASLEEP, COUNT_AGAIN_MS);
  if (awaited !== undefined) return awaited;
  return {
    actions: [{ name: 'sleep', slot, because: ASLEEP, args: { ...askedServer(sleeping, view), withinMs: SLEEP_WITHIN_MS } }],
    wakes: [],
  };
}

const isBusy = ({ sleepUnderWay, probeSince, stopUnderWay, inFlight }: WorkloadView): boolean =>
  (sleepUnderWay ?? probeSince) !== undefined || stopUnderWay || inFlight > 0;
