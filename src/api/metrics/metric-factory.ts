/** Creates the metrics of the table in one registry. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { METRICS, type MetricName } from './metric-table.ts';

export type MetricFactory = ReturnType<typeof createMetricFactory>;

export function createMetricFactory(registry: Registry) {
  const optionsOf = (name: keyof typeof METRICS) => {
    const { help, labels } = METRICS[name];
    return { name, help, labelNames: labels, registers: [registry] };
  };
  return {
    counter: (name: MetricName<'counter'>): Counter => new Counter(optionsOf(name)),
    /** `read` sets the value whenever Prometheus scrapes. */
    readCounter(name: MetricName<'counter'>, read: () => number): void {
      const counter: Counter = new Counter({
        ...optionsOf(name),
        collect() {
          counter.reset();
          counter.inc(read());
        },
      });
    },
    histogram: (name: MetricName<'histogram'>): Histogram => new Histogram({ ...optionsOf(name), buckets: [...METRICS[name].buckets] }),
    /** `read` sets the values whenever Prometheus scrapes, so that nothing is stored twice. */
    gauge(name: MetricName<'gauge'>, read: (gauge: Gauge) => void): void {
      const gauge: Gauge = new Gauge({
        ...optionsOf(name),
        collect() {
          gauge.reset();
          read(gauge);
        },
      });
    },
  };
}
