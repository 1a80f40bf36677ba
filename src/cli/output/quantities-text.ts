/** Sizes and ages as people read them. Pure. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** `6.1 GiB`; `-` if unknown. */
export function sizeText(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return '-';
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit] ?? 'B'}`;
}

/** `42s`, `5m`, `3h` or `12d` since an ISO time; `-` if unknown. `now`: Unix milliseconds. */
export function ageText(since: string | null | undefined, now: number): string {
  const at = Date.parse(since ?? '');
  if (Number.isNaN(at)) return '-';
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}
