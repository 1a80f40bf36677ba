/** Creates and registers the metrics of one registry. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export type MetricFactory = ReturnType<typeof createMetricFactory>;

export function createMetricFactory(registry: Registry) {
  const registers = [registry];
  return {
    counter: (name: string, help: string, labelNames: readonly string[] = []) => new Counter({ name, help, labelNames, registers }),
    histogram: (name: string, help: string, buckets: number[], labelNames: readonly string[] = []) =>
      new Histogram({ name, help, buckets, labelNames, registers }),
    /** `read` sets the values whenever Prometheus scrapes, so that nothing is stored twice. */
    gauge(name: string, help: string, labelNames: readonly string[], read: (gauge: Gauge) => void): void {
      const gauge: Gauge = new Gauge({
        name,
        help,
        labelNames,
        registers,
        collect() {
          gauge.reset();
          read(gauge);
        },
      });
    },
  };
}
