/**
 * Metrics in the text format of Prometheus, and in OpenMetrics, which has exemplars. Bounds of buckets are written
 * alike in both, so that a Prometheus that changes the format keeps its series. Pure.
 * https://prometheus.io/docs/specs/om/open_metrics_spec/
 */

export type MetricFormat = 'prometheus' | 'openmetrics';

export const CONTENT_TYPES: Readonly<Record<MetricFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** The last line of a text. */
export const END: Readonly<Record<MetricFormat, string>> = { prometheus: '', openmetrics: '# EOF\n' };

export type Labels = Readonly<Record<string, string>>;

export interface MetricHead {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
}

/** A request that was counted in a bucket, and has a trace. */
export interface Exemplar {
  readonly traceId: string;
  readonly spanId: string;
  readonly value: number;
  /** Unix milliseconds. */
  readonly at: number;
}

export interface HistogramNumbers {
  /** Values per bucket, not cumulative, without the last bucket, which has no upper bound. */
  readonly buckets: readonly number[];
  readonly sum: number;
  readonly count: number;
  /** By bucket, the last one included. Default: none. */
  readonly exemplars?: readonly (Exemplar | undefined)[] | undefined;
}

const OPEN_METRICS = 'application/openmetrics-text';

/** By the header `Accept`: OpenMetrics for those who name it and do not like the other format better. */
export function formatFor(accept = ''): MetricFormat {
  const ranges = accept.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const valueOf = (name: string): string | undefined => parameters.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
    return { type, version: valueOf('version') ?? '1.0.0', weight: Number(valueOf('q') ?? 1) };
  });
  const best = (isMeant: (range: (typeof ranges)[number]) => boolean): number =>
    Math.max(0, ...ranges.filter(isMeant).map(({ weight }) => weight || 0));
  const open = best(({ type, version }) => type === OPEN_METRICS && version === '1.0.0');
  return open > 0 && open >= best(({ type }) => type === 'text/plain') ? 'openmetrics' : 'prometheus';
}

/** Returns the two lines before the samples of a metric, without a line end after them. */
export function writeHead({ name, help, type }: MetricHead, format: MetricFormat): string {
  if (format === 'prometheus') return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}`;
  // Only the samples of a counter have the suffix.
  const family = type === 'counter' ? name.replace(/_total$/, '') : name;
  return `# HELP ${family} ${escapeQuoted(help)}\n# TYPE ${family} ${type}`;
}

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
  const { buckets, sum, count, exemplars } = numbers;
  const more = labels === '' ? '' : `,${labels}`;
  let text = '';
  let sofar = 0;
  for (const [index, bound] of bounds.entries()) {
    sofar += buckets[index] ?? 0;
    text += `${name}_bucket{le="${bound}"${more}} ${sofar}${writeExemplar(exemplars?.[index])}\n`;
  }
  text += `${name}_bucket{le="+Inf"${more}} ${count}${writeExemplar(exemplars?.[bounds.length])}\n`;
  return `${text}${writeSample(`${name}_sum`, labels, sum)}\n${writeSample(`${name}_count`, labels, count)}`;
}

function writeExemplar(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return '';
  const { traceId, spanId, value, at } = exemplar;
  return ` # {trace_id="${traceId}",span_id="${spanId}"} ${writeValue(value)} ${at / 1000}`;
}

/** Index of the first bucket whose upper bound is not below the value, or the number of bounds if there is none. */
export function bucketOf(bounds: readonly number[], value: number): number {
  let index = 0;
  while (index < bounds.length && value > (bounds[index] ?? 0)) index += 1;
  return index;
}

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');

const escapeQuoted = (text: string): string => escapeHelp(text).replaceAll('"', '\\"');

const NEEDS_ESCAPE = /[\\"\n]/;

/** Nearly no value needs it. */
const escapeValue = (text: string): string => (NEEDS_ESCAPE.test(text) ? escapeQuoted(text) : text);

function writeValue(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
