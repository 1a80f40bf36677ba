/** Reads one watch until it ends, and detects every reason to give it up. `reflector.ts` decides what happens next. */
import type { Clock } from '../../reconciler/ports.ts';
import type { Failure, Result } from '../../schema/words/failure.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import type { WatchStep } from './decide/fold-watch-event.ts';
import { createLineBuffer } from './list-splitter.ts';

export type WatchOutcome =
  | { readonly kind: 'refused'; readonly failure: Failure }
  | { readonly kind: 'relist' }
  /** The next watch continues from here. */
  | { readonly kind: 'ended'; readonly orderly: boolean; readonly livedMs: number; readonly bookmarked: boolean }
  | { readonly kind: 'lost'; readonly orderly: false; readonly livedMs: number };

/** When the next list is due (monotonic milliseconds), once a bookmark shows that the watch is alive and before. */
export interface ListDue {
  readonly bookmarked: number;
  readonly otherwise: number;
}

interface WatchLimits {
  readonly clock: Clock;
  readonly due: ListDue;
  /** When the server should end the watch. Monotonic milliseconds. */
  readonly endBy: number;
  /** Once bookmarks arrive, the watch is given up if nothing is received for this long. */
  readonly silentMs: number;
}

interface WatchSink {
  fold(event: unknown): { readonly step: WatchStep; readonly changed: boolean };
  opened(): void;
  changed(): void;
}

interface WatchSignals {
  readonly signal: AbortSignal;
  readonly relist: AbortSignal;
}

/** etcd limits an object to 1.5 MB; as JSON with managed fields and escapes it is several times as large. */
export const LINE_LIMIT_BYTES = 16 * 1024 * 1024;
/** A server that does not end a watch when asked to is considered gone after this time. */
const OVERTIME_MS = 30_000;

export async function readWatch(
  open: (signal: AbortSignal) => Promise<Result<AsyncIterable<Uint8Array>>>,
  limits: WatchLimits,
  sink: WatchSink,
  { signal, relist }: WatchSignals,
): Promise<WatchOutcome> {
  const { clock } = limits;
  const startedAt = clock.now();
  const watchdog = createWatchdog(limits, { signal, relist });
  try {
    const opened = await open(watchdog.signal);
    if (!opened.ok) return watchdog.signal.reason === RELIST ? { kind: 'relist' } : { kind: 'refused', failure: opened.failure };
    sink.opened();
    const end = await readEvents(opened.value, sink, watchdog);
    const livedMs = clock.now() - startedAt;
    if (watchdog.signal.reason === RELIST) return { kind: 'relist' };
    if (end === 'lost') return { kind: 'lost', orderly: false, livedMs };
    const orderly = end === 'orderly' && watchdog.signal.reason !== TIMED_OUT;
    return { kind: 'ended', orderly, livedMs, bookmarked: watchdog.expectsBookmarks() };
  } finally {
    watchdog.stop();
  }
}

async function readEvents(chunks: AsyncIterable<Uint8Array>, sink: WatchSink, watchdog: Watchdog): Promise<'orderly' | 'broken' | 'lost'> {
  const buffer = createLineBuffer(LINE_LIMIT_BYTES);
  try {
    for await (const chunk of chunks) {
      watchdog.received();
      const lines = buffer.push(chunk);
      let changed = false;
      let isLost = lines === undefined;
      for (const line of lines ?? []) {
        const folded = sink.fold(parseJson(line));
        changed ||= folded.changed;
        if (folded.step.kind === 'bookmark') watchdog.expectBookmarks();
        isLost = folded.step.kind === 'expired' || folded.step.kind === 'failed';
        if (isLost) break;
      }
      if (changed) sink.changed();
      if (isLost) return 'lost';
    }
    return 'orderly';
  } catch {
    // The connection broke: the next watch continues from here.
    return 'broken';
  }
}

const RELIST = 'relist';
const TIMED_OUT = 'timed out';

type Watchdog = ReturnType<typeof createWatchdog>;

function createWatchdog({ clock, due, endBy, silentMs }: WatchLimits, { signal: outer, relist }: WatchSignals) {
  const own = new AbortController();
  let receivedAt = clock.now();
  let expectsBookmarks = false;
  const end = (): void => own.abort();
  const giveUp = (): void => own.abort(TIMED_OUT);
  const checkSilence = (): void => {
    const now = clock.now();
    if (expectsBookmarks && now - receivedAt >= silentMs) giveUp();
    else cancelCheck = clock.at((receivedAt + silentMs > now ? receivedAt : now) + silentMs, checkSilence);
  };
  let cancelCheck = clock.at(receivedAt + silentMs, checkSilence);
  const beginList = (): void => own.abort(RELIST);
  let cancelList = clock.at(due.otherwise, beginList);
  const cancelEnd = clock.at(endBy + OVERTIME_MS, giveUp);
  outer.addEventListener('abort', end, { once: true });
  relist.addEventListener('abort', beginList, { once: true });
  if (outer.aborted) end();
  if (relist.aborted) beginList();
  return {
    signal: own.signal,
    received: (): void => void (receivedAt = clock.now()),
    /** From now on the server reports its progress even if nothing changes, so silence is a failure. */
    expectBookmarks(): void {
      if (expectsBookmarks) return;
      expectsBookmarks = true;
      cancelList();
      cancelList = clock.at(due.bookmarked, beginList);
    },
    expectsBookmarks: (): boolean => expectsBookmarks,
    stop(): void {
      for (const cancel of [cancelCheck, cancelList, cancelEnd]) cancel();
      outer.removeEventListener('abort', end);
      relist.removeEventListener('abort', beginList);
      end();
    },
  };
}
