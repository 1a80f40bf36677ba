/** Creates the metrics of `metric-table.ts`: plain numbers that become text at each scrape, which also reads gauges. */
import { createBreather, type Breather } from '../../platform/slices.ts';
import { bucketOf, END, writeHead, writeHistogram, writeLabels, writeSample } from './decide/metric-text.ts';
import type { Exemplar, Labels, MetricFormat, MetricHead } from './decide/metric-text.ts';
import { METRICS, type MetricName } from './metric-table.ts';

export type MetricFactory = ReturnType<typeof createMetricFactory>;

/** The labels of a sample must differ from those of every other sample. */
type AddSample = (labels: Labels, value: number) => void;

/** One series. Hot paths bind it once, so that an event costs no lookup. */
abstract class Series {
  readonly #shown: Set<Series>;
  protected readonly labels: string;

  constructor(shown: Set<Series>, labels: string) {
    this.#shown = shown;
    this.labels = labels;
  }

  abstract text(name: string, format: MetricFormat): string;

  show(): void {
    this.#shown.add(this);
  }

  remove(): void {
    this.#shown.delete(this);
  }
}

/** `breather`: creates the pause between two metrics, so that requests do not wait for a scrape with many slots. */
export function createMetricFactory(breather: () => Breather = createBreather) {
  const writers: ((format: MetricFormat) => string)[] = [];

  function createFamily<One extends Series>(head: MetricHead, create: (shown: Set<Series>, labels: string) => One) {
    const shown = new Set<Series>();
    const byLabels = new Map<string, One>();
    writers.push((format) => [writeHead(head, format), ...shown.values().map((one) => one.text(head.name, format))].join('\n'));
    return {
      series: (labels: Labels): One => create(shown, writeLabels(labels)),
      find(labels: Labels): One {
        const key = writeLabels(labels);
        const found = byLabels.get(key) ?? create(shown, key);
        byLabels.set(key, found);
        return found;
      },
      remove(labels: Labels): void {
        const key = writeLabels(labels);
        byLabels.get(key)?.remove();
        byLabels.delete(key);
      },
    };
  }

  return {
    counter(name: MetricName<'counter'>) {
      const { series, find, remove } = createFamily({ name, ...METRICS[name] }, (shown, labels) => new Counted(shown, labels));
      /** An increment by 0 begins a series. */
      return { series, remove, increment: (labels: Labels, by?: number) => find(labels).increment(by) };
    },
    histogram(name: MetricName<'histogram'>) {
      const { buckets, labels: labelNames } = METRICS[name];
      const { series, find } = createFamily({ name, ...METRICS[name] }, (shown, labels) => new Observed(shown, labels, buckets));
      // A histogram without labels is one series, shown from the start.
      if (labelNames.length === 0) find({}).show();
      return { series, observe: (labels: Labels, value: number) => find(labels).observe(value) };
    },
    /** Undefined: no sample, because a counter that began with 0 would make `increase()` count all of its past. */
    readCounter(name: MetricName<'counter'>, read: () => number | undefined): void {
      const add = (addSample: AddSample): void => {
        const value = read();
        if (value !== undefined) addSample({}, value);
      };
      writers.push((format) => writeRead({ name, ...METRICS[name] }, add, format));
    },
    readCounters(name: MetricName<'counter'>, read: (add: AddSample) => void): void {
      writers.push((format) => writeRead({ name, ...METRICS[name] }, read, format));
    },
    gauge(name: MetricName<'gauge'>, read: (add: AddSample) => void): void {
      writers.push((format) => writeRead({ name, ...METRICS[name] }, read, format));
    },
    /** As `gauge`. The text of an entry is kept while it is the same object: those of 5,000 slots take long. */
    gaugeOf<Key, Entry extends object>(
      name: MetricName<'gauge'>,
      entries: () => ReadonlyMap<Key, Entry>,
      read: (key: Key, entry: Entry, add: AddSample) => void,
    ): void {
      const kept = new WeakMap<Entry, string>();
      const textOf = (key: Key, entry: Entry): string => {
        const known = kept.get(entry) ?? writeSamples(name, (add) => read(key, entry, add));
        kept.set(entry, known);
        return known;
      };
      writers.push((format) => {
        const texts = [writeHead({ name, ...METRICS[name] }, format)];
        for (const [key, entry] of entries()) texts.push(textOf(key, entry));
        return texts.join('');
      });
    },
    async text(format: MetricFormat = 'prometheus'): Promise<string> {
      const breathe = breather();
      const texts: string[] = [];
      for (const write of writers) {
        texts.push(write(format));
        await breathe();
      }
      return `${texts.join('\n')}\n${END[format]}`;
    },
  };
}

/** 2,000 slots have 60,000 such series, so each is text at once and never an object. */
export function writeRead(head: MetricHead, read: (add: AddSample) => void, format: MetricFormat): string {
  return writeHead(head, format) + writeSamples(head.name, read);
}

/** Joined, not added up: a text of many pieces is copied as a whole once it is sent, which takes long. */
function writeSamples(name: string, read: (add: AddSample) => void): string {
  const lines: string[] = [];
  read((labels, value) => void lines.push(`\n${writeSample(name, writeLabels(labels), value)}`));
  return lines.join('');
}

/** A class for speed. Shown from its first event on. */
export class Counted extends Series {
  #value = 0;

  increment(by = 1): void {
    if (this.#value === 0) this.show();
    this.#value += by;
  }

  text(name: string): string {
    return writeSample(name, this.labels, this.#value);
  }
}

export class Observed extends Series {
  readonly #bounds: readonly number[];
  readonly #buckets: number[];
  /** The last one of each bucket, once there is any. */
  #exemplars: (Exemplar | undefined)[] | undefined;
  #sum = 0;
  #count = 0;

  constructor(shown: Set<Series>, labels: string, bounds: readonly number[]) {
    super(shown, labels);
    this.#bounds = bounds;
    this.#buckets = bounds.map(() => 0);
  }

  /** Ignores values that are negative or not finite: token counts come from an upstream that may send anything. */
  observe(value: number, exemplar?: Omit<Exemplar, 'value'>): void {
    if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) return;
    if (this.#count === 0) this.show();
    const bucket = bucketOf(this.#bounds, value);
    if (bucket < this.#buckets.length) this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#sum += value;
    this.#count += 1;
    if (exemplar !== undefined) (this.#exemplars ??= [])[bucket] = { ...exemplar, value };
  }

  text(name: string, format: MetricFormat): string {
    const exemplars = format === 'openmetrics' ? this.#exemplars : undefined;
    return writeHistogram(name, this.labels, this.#bounds, { buckets: this.#buckets, sum: this.#sum, count: this.#count, exemplars });
  }
}
