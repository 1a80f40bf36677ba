/** Metrics in the text format of Prometheus. Pure. */

export type Labels = Readonly<Record<string, string>>;

export interface MetricHead {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
}

export interface HistogramNumbers {
  /** Values per bucket, not cumulative, without the last bucket, which has no upper bound. */
  readonly buckets: readonly number[];
  readonly sum: number;
  readonly count: number;
}

/** Returns the two lines before the samples of a metric, without a line end after them. */
export const writeHead = ({ name, help, type }: MetricHead): string => `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}`;

/** Returns labels as they stand between the braces; empty for none. */
export function writeLabels(labels: Labels): string {
  let text = '';
  for (const label in labels) text += `${text === '' ? '' : ','}${label}="${escapeValue(labels[label] ?? '')}"`;
  return text;
}

/** Returns one line, without its line end. `labels`: from `writeLabels`. */
export function writeSample(name: string, labels: string, value: number): string {
  return `${name}${labels === '' ? '' : `{${labels}}`} ${writeValue(value)}`;
}

/** Returns the lines of one histogram, without a line end after them. `bounds`: the upper bounds of its buckets. */
export function writeHistogram(name: string, labels: string, bounds: readonly number[], numbers: HistogramNumbers): string {
  const { buckets, sum, count } = numbers;
  const more = labels === '' ? '' : `,${labels}`;
  let text = '';
  let sofar = 0;
  for (const [index, bound] of bounds.entries()) {
    sofar += buckets[index] ?? 0;
    text += `${name}_bucket{le="${bound}"${more}} ${sofar}\n`;
  }
  text += `${name}_bucket{le="+Inf"${more}} ${count}\n`;
  return `${text}${writeSample(`${name}_sum`, labels, sum)}\n${writeSample(`${name}_count`, labels, count)}`;
}

/** Index of the first bucket whose upper bound is not below the value, or the number of bounds if there is none. */
export function bucketOf(bounds: readonly number[], value: number): number {
  let index = 0;
  while (index < bounds.length && value > (bounds[index] ?? 0)) index += 1;
  return index;
}

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');

const NEEDS_ESCAPE = /[\\"\n]/;

/** Nearly no value needs it. */
const escapeValue = (text: string): string => (NEEDS_ESCAPE.test(text) ? escapeHelp(text).replaceAll('"', '\\"') : text);

function writeValue(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
