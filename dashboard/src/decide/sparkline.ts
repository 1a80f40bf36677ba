/** The points of a small curve, as SVG has them. Pure. */

/** The newest value is at the right edge, however few there are. Without values: an empty text. */
export function sparklinePoints(
  values: readonly number[],
  { width, height, most }: { readonly width: number; readonly height: number; readonly most: number },
): string {
  const shown = values.slice(-most);
  const highest = Math.max(1, ...shown);
  const step = width / Math.max(1, most - 1);
  const first = width - step * (shown.length - 1);
  return shown
    .map((value, index) => `${(first + index * step).toFixed(1)},${(height - 1 - (value / highest) * (height - 2)).toFixed(1)}`)
    .join(' ');
}
