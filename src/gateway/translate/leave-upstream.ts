/** Leaves the server: reads a request that must finish, then sends what the translation set. */
import type { UpstreamRequest } from '../../providers/translation.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import { UpstreamCall, type UpstreamCallDeps } from './upstream-call.ts';

interface Leaving {
  readonly call: UpstreamCall | undefined;
  readonly requests: readonly UpstreamRequest[];
  readonly settings: Pick<Settings, 'SVC_FIRST_BYTE_TIMEOUT'>;
  readonly signal: AbortSignal;
}

/** Requests that cancel or forget something are answered at once. */
const LEAVE_MS = 5000;

/** Returns undefined if there is nothing to do. The promise never rejects. */
export function leaveUpstream(deps: UpstreamCallDeps, { call, requests, settings, signal }: Leaving): Promise<void> | undefined {
  const mustFinish = call?.request.mustFinish === true && call.isSent ? call : undefined;
  if (mustFinish === undefined) call?.destroy();
  if (mustFinish === undefined && requests.length === 0) return undefined;
  const withinMs = mustFinish === undefined ? LEAVE_MS : settings.SVC_FIRST_BYTE_TIMEOUT;
  return finish(
    mustFinish,
    requests.values().map((request) => new UpstreamCall(request, deps)),
    { signal, withinMs },
  );
}

async function finish(
  mustFinish: UpstreamCall | undefined,
  others: Iterable<UpstreamCall>,
  { signal, withinMs }: { readonly signal: AbortSignal; readonly withinMs: number },
): Promise<void> {
  let current = mustFinish;
  let stop: (() => void) | undefined;
  let isOver = false;
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  const end = (): void => {
    isOver = true;
    current?.destroy();
    stop?.();
  };
  const timer = setTimeout(end, withinMs).unref();
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  if (current !== undefined) await Promise.race([stopped, readAll(current)]);
  for (const call of others) {
    if (isOver) break;
    current = call;
    await Promise.race([stopped, readAll(call, true)]);
  }
  clearTimeout(timer);
  signal.removeEventListener('abort', end);
}

/** Never rejects: if the server is gone, or the request is malformed, nothing is left to be cancelled. */
async function readAll(call: UpstreamCall, isNew = false): Promise<void> {
  try {
    if (isNew) call.start();
    while ((await call.next()) !== undefined);
  } catch {}
}
