/**
 * Counters and histograms of the hot path as plain numbers, which become text only when Prometheus scrapes. prom-client checks and joins the labels with every event, also
 * where they were bound before, which costs a request several microseconds. The text is the same as the library's: a metric has its series in the order of their first event.
 */
import { bucketOf, writeHead, writeHistogram, writeLabels, writeSample, type Labels } from './decide/metric-text.ts';

export interface MetricDescription {
  readonly name: string;
  readonly help: string;
}

/** One counter with its labels, bound once and incremented by many requests. */
export interface CounterSeries {
  increment(): void;
  /** The last call: it is not shown any more. */
  remove(): void;
}

export interface HistogramSeries {
  /** Ignores what is not a finite number, or is negative: token counts come from an upstream that may send anything. */
  observe(value: number): void;
  /** The last call: it is not shown any more. */
  remove(): void;
}

export interface OwnCounter {
  series(labels: Labels): CounterSeries;
  text(): string;
}

export interface OwnHistogram {
  series(labels: Labels): HistogramSeries;
  text(): string;
}

export function createOwnCounter({ name, help }: MetricDescription): OwnCounter {
  const shown = new Set<Counted>();
  return {
    series: (labels) => new Counted(shown, labels),
    text: () => [writeHead({ name, help, type: 'counter' }), ...shown.values().map((one) => one.text(name))].join('\n'),
  };
}

export function createOwnHistogram({
  name,
  help,
  buckets: bounds,
}: MetricDescription & { readonly buckets: readonly number[] }): OwnHistogram {
  const shown = new Set<Observed>();
  return {
    series: (labels) => new Observed(shown, labels, bounds),
    text: () => [writeHead({ name, help, type: 'histogram' }), ...shown.values().map((one) => one.text(name))].join('\n'),
  };
}

/** A class for speed, since it holds the numbers that the hot path changes. Not shown before its first event. */
class Counted implements CounterSeries {
  readonly #shown: Set<Counted>;
  readonly #labels: string;
  #value = 0;

  constructor(shown: Set<Counted>, labels: Labels) {
    this.#shown = shown;
    this.#labels = writeLabels(labels);
  }

  increment(): void {
    if (this.#value === 0) this.#shown.add(this);
    this.#value += 1;
  }

  remove(): void {
    this.#shown.delete(this);
  }

  text(name: string): string {
    return writeSample(name, this.#labels, this.#value);
  }
}

/** Likewise. */
class Observed implements HistogramSeries {
  readonly #shown: Set<Observed>;
  readonly #labels: string;
  readonly #bounds: readonly number[];
  readonly #buckets: number[];
  #sum = 0;
  #count = 0;

  constructor(shown: Set<Observed>, labels: Labels, bounds: readonly number[]) {
    this.#shown = shown;
    this.#labels = writeLabels(labels);
    this.#bounds = bounds;
    this.#buckets = bounds.map(() => 0);
  }

  observe(value: number): void {
    if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) return;
    if (this.#count === 0) this.#shown.add(this);
    const bucket = bucketOf(this.#bounds, value);
    if (bucket < this.#buckets.length) this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#sum += value;
    this.#count += 1;
  }

  remove(): void {
    this.#shown.delete(this);
  }

  text(name: string): string {
    return writeHistogram(name, this.#labels, this.#bounds, { buckets: this.#buckets, sum: this.#sum, count: this.#count });
  }
}
