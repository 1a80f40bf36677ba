/** Numbers and times for display. Pure. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** As the service writes sizes in its messages: "512 B", "1.5 GiB". */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** Largest unit only: "3 min". */
export function formatSeconds(seconds: number): string {
  if (seconds < 0.9995) return `${Math.round(Math.max(0, seconds) * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** Like `formatSeconds`, but in whole seconds, because it counts up while visible. */
export function formatAge(seconds: number): string {
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : formatSeconds(seconds);
}

/** Undefined if the time is unknown. Never negative. */
export function secondsSince(time: string | null, nowMs: number): number | undefined {
  const at = time === null ? Number.NaN : Date.parse(time);
  return Number.isNaN(at) ? undefined : Math.max(0, (nowMs - at) / 1000);
}

/** "14:03:22" in the browser's time zone, with the date if it is another day. */
export function formatTime(time: string | null, nowMs: number): string {
  if (time === null) return '';
  const at = new Date(time);
  const clock = at.toLocaleTimeString('en-GB');
  return at.toDateString() === new Date(nowMs).toDateString() ? clock : `${at.toLocaleDateString('en-CA')} ${clock}`;
}
