/** Returns memory to the system while the service is idle: V8 would keep 60 to 100 MB of a burst with 2,000 slots. */
import { getHeapStatistics } from 'node:v8';
import type { Traffic } from '../../reconciler/ports.ts';
import { messageOf } from '../../platform/error-text.ts';
import type { Log } from '../../platform/log.ts';

const CHECK_MS = 10_000;

interface CollectorOptions {
  readonly activity: () => ReturnType<Traffic['read']>;
  readonly log: Pick<Log, 'debug'>;
  readonly checkMs?: number;
}

/** Does not keep the process alive. */
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
      now,
    };
    const next = timeToCollect(state, sample);
    state = next.state;
    if (next.collect) {
      const before = process.cpuUsage();
      await collect();
      const cost = process.cpuUsage(before);
      const notBefore = performance.now() + ((cost.user + cost.system) / 1000) * REST_OF_COLLECTING;
      state = { ...state, leftBytes: heapBytes(), notBefore };
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

/** Includes buffers of request bodies, which are outside of the heap and freed only by collections. */
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

export interface IdleSample {
  /** Share of one core, from 0 to 1. */
  readonly cpuShare: number;
  readonly hadRequests: boolean;
  readonly heapBytes: number;
  /** Monotonic milliseconds. */
  readonly now: number;
}

type IdleState = Readonly<{ idleChecks: number; leftBytes: number | undefined; notBefore: number }>;

export const NEVER_COLLECTED: IdleState = { idleChecks: 0, leftBytes: undefined, notBefore: 0 };

/** Watches, reports and probes of 2,000 slots take 8 to 10 percent. */
const IDLE_CPU_SHARE = 0.15;
const IDLE_CHECKS = 2;
/** A collection takes 10 to 200 ms, so it must free a noticeable amount. */
const WORTHWHILE_GROWTH = 1.2;
/** With 2,000 slots a collection takes a second of CPU, which at this pace is half a percent of a core. */
const REST_OF_COLLECTING = 200;

export function timeToCollect(state: IdleState, { cpuShare, hadRequests: busy, heapBytes, now }: IdleSample) {
  const idleChecks = busy || cpuShare > IDLE_CPU_SHARE ? 0 : state.idleChecks + 1;
  const grown = state.leftBytes === undefined || heapBytes > state.leftBytes * WORTHWHILE_GROWTH;
  return { collect: idleChecks >= IDLE_CHECKS && grown && now >= state.notBefore, state: { ...state, idleChecks } };
}

export function hadRequests({ workloads, demand }: ReturnType<Traffic['read']>, now: number, withinMs: number): boolean {
  const isUsed = [...workloads.values()].some(
    ({ inFlight, lastUsedAt = Number.NEGATIVE_INFINITY }) => inFlight > 0 || lastUsedAt > now - withinMs,
  );
  return isUsed || [...demand.values()].some(({ waiting }) => waiting > 0);
}
