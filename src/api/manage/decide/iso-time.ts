/** Unix milliseconds as ISO 8601 in UTC; null for "not yet". Pure. */
export function isoTime(at: number): string | null {
  return at > 0 && Number.isFinite(at) ? new Date(at).toISOString() : null;
}
