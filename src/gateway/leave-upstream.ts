/** What is left to do at the server when a translated request has ended: read a request that must finish to its end, and send what the translation asked for. */
import type { UpstreamRequest } from '../providers/translation.ts';
import type { Settings } from '../schema/settings/settings.ts';
import { UpstreamCall, type UpstreamCallDeps } from './upstream/upstream-call.ts';

export interface Leaving {
  readonly call: UpstreamCall | undefined;
  readonly requests: readonly UpstreamRequest[];
  readonly settings: Pick<Settings, 'SVC_FIRST_BYTE_TIMEOUT'>;
  /** Aborts when the workload is about to be stopped. */
  readonly signal: AbortSignal;
}

/** Requests that cancel or forget something are answered at once. */
const LEAVE_MS = 5000;

/** Returns undefined if there is nothing to do. What is returned never rejects. */
export function leaveUpstream(deps: UpstreamCallDeps, { call, requests, settings, signal }: Leaving): Promise<void> | undefined {
  const mustFinish = call?.request.mustFinish === true && call.isSent ? call : undefined;
  if (mustFinish === undefined) call?.destroy();
  if (mustFinish === undefined && requests.length === 0) return undefined;
  const withinMs = mustFinish === undefined ? LEAVE_MS : settings.SVC_FIRST_BYTE_TIMEOUT;
  return limited(signal, withinMs, async (within) => finish(deps, { mustFinish, requests, signal: within }));
}

/** The signal that the work gets aborts with the given one, or after some time. Nothing is left of it when the work has ended, unlike of `AbortSignal.timeout`. */
async function limited(signal: AbortSignal, withinMs: number, work: (within: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const timer = setTimeout(end, withinMs);
  timer.unref();
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    await work(ending.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}

interface Rest {
  readonly mustFinish: UpstreamCall | undefined;
  readonly requests: readonly UpstreamRequest[];
  readonly signal: AbortSignal;
}

async function finish(deps: UpstreamCallDeps, { mustFinish, requests, signal }: Rest): Promise<void> {
  if (mustFinish !== undefined) await drain(mustFinish, signal);
  for (const request of requests) {
    if (signal.aborted) return;
    const call = new UpstreamCall(request, deps);
    await drain(call, signal, () => call.start());
  }
}

/** Reads an answer to its end and drops it. The connection is closed when the signal aborts. */
async function drain(call: UpstreamCall, signal: AbortSignal, start?: () => void): Promise<void> {
  let stop: (() => void) | undefined;
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  const abort = (): void => {
    call.destroy();
    stop?.();
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    start?.();
    await Promise.race([stopped, readAll(call)]);
  } catch {
    // The server is gone, or the request is malformed: nothing is left to be cancelled.
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

async function readAll(call: UpstreamCall): Promise<void> {
  while ((await call.next()) !== undefined);
}
