/** What a source may say in the service's log; pino's logger fits. */
export interface SourceLog {
  info(details: Readonly<Record<string, unknown>>, message: string): void;
  warn(details: Readonly<Record<string, unknown>>, message: string): void;
}

export function messageOf(error: unknown): string {
  return isErrorLike(error) ? error.message : String(error);
}

/** The code of a system error: `ENOENT`, `EACCES`. */
export function codeOf(error: unknown): string | undefined {
  return isErrorLike(error) && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** By shape: an error of another realm is no instance of this one's `Error`. */
function isErrorLike(error: unknown): error is { readonly message: string } {
  return typeof error === 'object' && error !== null && 'message' in error && typeof error.message === 'string';
}
