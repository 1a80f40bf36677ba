/** Time limits for requests. */

/**
 * Gives a request its own signal, which aborts when the outer signal aborts or after `timeoutMs`. Leaves no listener on the outer signal, which
 * may live as long as the process.
 */
export async function withTimeout<T>(timeoutMs: number, signal: AbortSignal, send: (limited: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController();
  const abort = (): void => own.abort();
  const timer = setTimeout(abort, timeoutMs);
  signal.addEventListener('abort', abort, { once: true });
  try {
    if (signal.aborted) abort();
    return await send(own.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
