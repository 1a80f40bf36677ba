/**
 * Reads fields of a caught error by its shape, since errors of another realm (a test's, a worker's) are not instances
 * of our `Error`.
 */

/** Returns the error's code (`ENOENT`, `UND_ERR_SOCKET`), or an empty string. */
export const codeOf = (error: unknown): string => field(error, 'code');

/** Returns the error's name (`TimeoutError`, `AbortError`), or an empty string. */
export const nameOf = (error: unknown): string => field(error, 'name');

/** Returns the error's message, or the next best description if the message is empty. */
export const messageOf = (error: unknown): string => field(error, 'message') || codeOf(error) || nameOf(error) || String(error);

/** Whether a file or process does not exist. Any other error says nothing about that. */
export const isAbsent = (error: unknown): boolean => ['ENOENT', 'ESRCH'].includes(codeOf(error));

function field(error: unknown, key: 'code' | 'name' | 'message'): string {
  if (typeof error !== 'object' || error === null || !(key in error)) return '';
  const value: unknown = Reflect.get(error, key);
  return typeof value === 'string' ? value : '';
}
