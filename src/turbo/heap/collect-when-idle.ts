/**
 * Returns memory to the system while the service is idle. V8 collects garbage when it needs room, so the garbage of a burst of work would stay until the next
 * burst, and the freed pages would stay with the process: 60 to 100 MB with 2,000 slots. The inspector's documented `collectGarbage` command returns both.
 */
import { getHeapStatistics } from 'node:v8';
import type { Traffic } from '../../reconciler/ports.ts';
import { hadRequests, NEVER_COLLECTED, timeToCollect } from '../../wiring/heap/decide/time-to-collect.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { Log } from '../../platform/log.ts';

const CHECK_MS = 10_000;

interface CollectorOptions {
  /** Returns the gateway's present activity. */
  readonly activity: () => ReturnType<Traffic['read']>;
  readonly log: Pick<Log, 'debug'>;
  readonly checkMs?: number;
}

/** Checks every `checkMs` until the signal aborts. Does not keep the process alive. */
export function collectWhenIdle({ activity, log, checkMs = CHECK_MS }: CollectorOptions, signal: AbortSignal): void {
  let state = NEVER_COLLECTED;
  let cpu = process.cpuUsage();
  let at = performance.now();
  const giveUp = (error: unknown): void => {
    clearInterval(timer);
    log.debug({ error: messageOf(error) }, 'Garbage cannot be collected while idle on this system');
  };
  const check = async (): Promise<void> => {
    const used = process.cpuUsage(cpu);
    const now = performance.now();
    const sample = {
      cpuShare: (used.user + used.system) / 1000 / (now - at),
      hadRequests: hadRequests(activity(), now, checkMs),
      heapBytes: heapBytes(),
    };
    const next = timeToCollect(state, sample);
    state = next.state;
    if (next.collect) {
      await collect();
      state = { ...state, leftBytes: heapBytes() };
      log.debug(
        { beforeBytes: sample.heapBytes, afterBytes: state.leftBytes, ms: performance.now() - now },
        'Collected garbage while idle',
      );
    }
    cpu = process.cpuUsage();
    at = performance.now();
  };
  const timer = setInterval(() => void check().catch(giveUp), checkMs);
  timer.unref();
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}

/** With what is outside of the heap and freed only by collections: the buffers of request bodies. */
function heapBytes(): number {
  const { total_physical_size: heap, external_memory: outside } = getHeapStatistics();
  return heap + outside;
}

async function collect(): Promise<void> {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  try {
    await session.post('HeapProfiler.collectGarbage');
  } finally {
    session.disconnect();
  }
}
