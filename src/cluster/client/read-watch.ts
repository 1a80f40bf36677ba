/** Reads one watch until it ends: lines to events, and every reason to give it up. Knows nothing of what comes after. */
import type { Clock } from '../../reconciler/ports.ts';
import type { Failure, Result } from '../../schema/failure.ts';
import type { WatchStep } from './decide/fold-watch-event.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { createLineBuffer } from './line-buffer.ts';

export type WatchOutcome =
  /** It never began. */
  | { readonly kind: 'refused'; readonly failure: Failure }
  /** A list is due. */
  | { readonly kind: 'due' }
  /** Goes on where it ended. */
  | { readonly kind: 'ended'; readonly orderly: boolean; readonly livedMs: number }
  /** Events are missing: everything must be read again. */
  | { readonly kind: 'lost'; readonly orderly: false; readonly livedMs: number };

export interface WatchLimits {
  readonly clock: Clock;
  /** A list is due. */
  readonly relistAt: number;
  /** The server was asked to end it by then. */
  readonly endBy: number;
  readonly silentMs: number;
}

export interface WatchSink {
  fold(event: unknown): { readonly step: WatchStep; readonly changed: boolean };
  opened(): void;
  /** Once for all events that came together. */
  changed(): void;
}

/** An object has 1.5 MB at the most, as etcd stores it; JSON with both its managed fields and escapes is several times that. */
const LINE_LIMIT_BYTES = 16 * 1024 * 1024;
/** A server that was asked to end a watch and does not is no longer there. */
const OVERTIME_MS = 30_000;

export async function readWatch(
  open: (signal: AbortSignal) => Promise<Result<AsyncIterable<Uint8Array>>>,
  limits: WatchLimits,
  sink: WatchSink,
  signal: AbortSignal,
): Promise<WatchOutcome> {
  const { clock } = limits;
  const startedAt = clock.now();
  const watchdog = createWatchdog(limits, signal);
  try {
    const opened = await open(watchdog.signal);
    if (!opened.ok) return watchdog.isDue() ? { kind: 'due' } : { kind: 'refused', failure: opened.failure };
    sink.opened();
    const end = await readEvents(opened.value, sink, watchdog);
    const livedMs = clock.now() - startedAt;
    if (watchdog.isDue()) return { kind: 'due' };
    if (end === 'lost') return { kind: 'lost', orderly: false, livedMs };
    return { kind: 'ended', orderly: end === 'orderly' && !watchdog.timedOut(), livedMs };
  } finally {
    watchdog.stop();
  }
}

async function readEvents(chunks: AsyncIterable<Uint8Array>, sink: WatchSink, watchdog: Watchdog): Promise<'orderly' | 'broken' | 'lost'> {
  const buffer = createLineBuffer(LINE_LIMIT_BYTES);
  try {
    for await (const chunk of chunks) {
      watchdog.heard();
      const lines = buffer.push(chunk);
      let changed = false;
      let isOver = lines === undefined;
      for (const line of lines ?? []) {
        const folded = sink.fold(parseJson(line));
        changed ||= folded.changed;
        if (folded.step.kind === 'bookmark') watchdog.bookmarked();
        isOver = folded.step.kind === 'expired' || folded.step.kind === 'failed';
        if (isOver) break;
      }
      if (changed) sink.changed();
      if (isOver) return 'lost';
    }
    return 'orderly';
  } catch {
    // The connection broke: the next watch goes on where this one was.
    return 'broken';
  }
}

interface Watchdog {
  readonly signal: AbortSignal;
  heard(): void;
  /** The server tells how far it is even when nothing changes. */
  bookmarked(): void;
  /** It was given up because a list is due. */
  isDue(): boolean;
  /** It was given up because nothing came for too long. */
  timedOut(): boolean;
  stop(): void;
}

function createWatchdog({ clock, relistAt, endBy, silentMs }: WatchLimits, outer: AbortSignal): Watchdog {
  const own = new AbortController();
  let heardAt = clock.now();
  let tells = false;
  let isDue = false;
  let timedOut = false;
  const end = (): void => own.abort();
  const giveUp = (): void => {
    timedOut = true;
    end();
  };
  const look = (): void => {
    if (tells && clock.now() - heardAt >= silentMs) giveUp();
    else cancelLook = clock.at((heardAt + silentMs > clock.now() ? heardAt : clock.now()) + silentMs, look);
  };
  let cancelLook = clock.at(heardAt + silentMs, look);
  const list = (): void => {
    isDue = true;
    end();
  };
  const cancels = [clock.at(relistAt, list), clock.at(endBy + OVERTIME_MS, giveUp)];
  outer.addEventListener('abort', end, { once: true });
  if (outer.aborted) end();
  return {
    signal: own.signal,
    heard: () => void (heardAt = clock.now()),
    bookmarked: () => void (tells = true),
    isDue: () => isDue,
    timedOut: () => timedOut,
    stop() {
      cancelLook();
      for (const cancel of cancels) cancel();
      outer.removeEventListener('abort', end);
      own.abort();
    },
  };
}
