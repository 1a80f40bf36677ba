/** What a caught error says. By its shape, since errors of another realm (a test's, a worker's) are no instances of our `Error`. */

/** `ENOENT`, `UND_ERR_SOCKET`; empty when it has none. */
export const codeOf = (error: unknown): string => field(error, 'code');

/** `TimeoutError`, `AbortError`. */
export const nameOf = (error: unknown): string => field(error, 'name');

export const messageOf = (error: unknown): string => field(error, 'message') || nameOf(error) || String(error);

function field(error: unknown, key: 'code' | 'name' | 'message'): string {
  if (typeof error !== 'object' || error === null || !(key in error)) return '';
  const value: unknown = Reflect.get(error, key);
  return typeof value === 'string' ? value : '';
}
