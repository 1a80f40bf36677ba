/** Sizes and ages as users read them. Pure. */
import { formatSize } from '../../schema/words/quantities.ts';

/** `6.1 GiB`; `-` if unknown. */
export function sizeText(bytes: number | null | undefined): string {
  return bytes === null || bytes === undefined ? '-' : formatSize(bytes);
}

/** `42s`, `5m`, `3h` or `12d` since an ISO time; `-` if unknown. `now`: Unix milliseconds. */
export function ageText(since: string | null | undefined, now: number): string {
  const at = Date.parse(since ?? '');
  if (Number.isNaN(at)) return '-';
  return secondsText(Math.max(0, Math.round((now - at) / 1000)));
}

/** `42s`, `5m`, `3h` or `12d`. */
export function secondsText(seconds: number): string {
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}
