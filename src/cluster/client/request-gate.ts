import { createPlaces } from '../../platform/semaphore.ts';

/** Limits how many requests run at the same time. The others wait in order. Resolves with undefined if the signal aborts during the wait. */
export type RequestGate = <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T | undefined>;

export function createRequestGate(limit: number): RequestGate {
  const places = createPlaces(limit);
  return async (signal, work) => {
    if (!(await places.take(signal))) return undefined;
    try {
      return await work();
    } finally {
      places.leave();
    }
  };
}
