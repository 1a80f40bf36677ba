/** Creates the metrics of the table: counters and histograms in one registry or in plain numbers, and gauges, which are read when they are asked for. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { createBreather, type Breather } from '../../platform/slices.ts';
import { METRICS, type MetricName } from './metric-table.ts';
import { createOwnCounter, createOwnHistogram, type OwnCounter, type OwnHistogram } from './own-series.ts';
import { writeHead, writeLabels, writeSample, type Labels } from './decide/metric-text.ts';

export type MetricFactory = ReturnType<typeof createMetricFactory>;

/** `breather`: makes what is called between two metrics, since many slots have many series. */
export function createMetricFactory(registry: Registry, breather: () => Breather = createBreather) {
  const own: (() => string)[] = [];
  const gauges: (() => string)[] = [];
  const optionsOf = (name: keyof typeof METRICS) => {
    const { help, labels } = METRICS[name];
    return { name, help, labelNames: labels, registers: [registry] };
  };
  function added<Metric extends { text(): string }>(metric: Metric): Metric {
    own.push(() => metric.text());
    return metric;
  }
  return {
    /** For events of the hot path. */
    ownCounter: (name: MetricName<'counter'>): OwnCounter => added(createOwnCounter({ name, help: METRICS[name].help })),
    /** For events of the hot path. */
    ownHistogram: (name: MetricName<'histogram'>): OwnHistogram => added(createOwnHistogram({ name, ...METRICS[name] })),
    counter: (name: MetricName<'counter'>): Counter => new Counter(optionsOf(name)),
    /**
     * For a counter without labels: `read` sets the value whenever Prometheus scrapes. While it is undefined there is no sample, since a counter that began with 0
     * would make `increase()` count all of its past.
     */
    readCounter(name: MetricName<'counter'>, read: () => number | undefined): void {
      const counter: Counter = new Counter({
        ...optionsOf(name),
        collect() {
          const value = read();
          counter.reset();
          if (value === undefined) counter.remove({});
          else counter.inc(value);
        },
      });
    },
    histogram: (name: MetricName<'histogram'>): Histogram => new Histogram({ ...optionsOf(name), buckets: [...METRICS[name].buckets] }),
    /** `read` adds the samples whenever Prometheus scrapes, so that nothing is stored twice. */
    gauge(name: MetricName<'gauge'>, read: (add: AddSample) => void): void {
      gauges.push(() => writeGauge({ name, help: METRICS[name].help }, read));
    },
    /** Everything as Prometheus reads it. */
    async text() {
      const breathe = breather();
      const writeAll = async (writers: readonly (() => string)[]): Promise<readonly string[]> => {
        const texts: string[] = [];
        for (const write of writers) {
          texts.push(write());
          await breathe();
        }
        return texts;
      };
      const owned = await writeAll(own);
      const registered = await registry.metrics();
      const read = await writeAll(gauges);
      return `${owned.map((text) => `${text}\n\n`).join('')}${registered}\n${read.join('\n')}`;
    },
  };
}

/**
 * Gauges in the text format of Prometheus, written at each scrape from what they are read from. With 2,000 slots there are 60,000 of their series, and a library that keeps
 * each one as an object takes ten times as long and 100 MB.
 */

/** Adds a sample. The labels of a sample must differ from those of every other one. */
type AddSample = (labels: Labels, value: number) => void;

interface GaugeFacts {
  readonly name: string;
  readonly help: string;
}

/** Returns the lines of one gauge. `read` adds its samples. */
export function writeGauge({ name, help }: GaugeFacts, read: (add: AddSample) => void): string {
  let text = `${writeHead({ name, help, type: 'gauge' })}\n`;
  read((labels, value) => {
    text += `${writeSample(name, writeLabels(labels), value)}\n`;
  });
  return text;
}
