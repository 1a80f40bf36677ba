/** Creates the metrics of the table: counters and histograms in one registry, and gauges, which are read when they are asked for. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { writeGauge, type AddSample } from './gauge-text.ts';
import { METRICS, type MetricName } from './metric-table.ts';

export type MetricFactory = ReturnType<typeof createMetricFactory>;

export function createMetricFactory(registry: Registry) {
  const gauges: (() => string)[] = [];
  const optionsOf = (name: keyof typeof METRICS) => {
    const { help, labels } = METRICS[name];
    return { name, help, labelNames: labels, registers: [registry] };
  };
  return {
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
    text: async () => `${await registry.metrics()}\n${gauges.map((write) => write()).join('\n')}`,
  };
}
