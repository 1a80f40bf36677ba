/**
 * Looks at something once for all requests that the kernel reported together, instead of once for each.
 *
 * The event loop asks the kernel which connections have bytes ("poll"), and then reads those. So a request that is read after a poll had begun to arrive before it, and a look after the same poll sees all that
 * was done before this request was sent. The next poll has another number, so nothing is ever as old as an earlier one. This compares no times. The one exception is a request that its client sends on
 * a connection behind another one without waiting for the answer to that: it may be judged by the look that was made for the first.
 */
import { performance } from 'node:perf_hooks';

/** Calls `look` at most once for each poll of this thread's event loop. What `look` throws is not remembered. */
export function oncePerPoll<T>(look: () => T): () => T {
  let seen: { readonly loops: number; readonly events: number; readonly value: T } | undefined;
  return () => {
    // A turn of the loop polls again if more is ready than fits in one answer of the kernel. Then only the second number grows.
    const { loopCount: loops, events } = performance.nodeTiming.uvMetricsInfo;
    if (seen?.loops !== loops || seen.events !== events) seen = { loops, events, value: look() };
    return seen.value;
  };
}
