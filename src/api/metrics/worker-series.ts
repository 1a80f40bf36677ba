/** The metrics of workers: processes that forward requests beside that of the controller. None has a sample where there are none. */
import type { MetricFactory } from './metric-factory.ts';

interface WorkerFacts {
  readonly connections: number;
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}

export function createWorkerSeries({ counter, gauge }: MetricFactory) {
  const starts = counter('svc_worker_starts_total');
  const requests = counter('svc_worker_requests_total');
  const cpu = counter('svc_worker_cpu_seconds_total');
  const running = new Map<number, WorkerFacts>();
  const known = new Set<number>();
  gauge('svc_worker_up', (add) => known.forEach((worker) => add({ worker: String(worker) }, running.has(worker) ? 1 : 0)));
  gauge('svc_worker_connections', (add) => running.forEach(({ connections }, worker) => add({ worker: String(worker) }, connections)));
  gauge('svc_worker_resident_memory_bytes', (add) =>
    running.forEach(({ memoryBytes }, worker) => add({ worker: String(worker) }, memoryBytes)),
  );
  return {
    workerStarted(worker: number) {
      known.add(worker);
      starts.inc({ worker });
      requests.inc({ worker }, 0);
    },
    /** `finished`: requests since the last report. */
    workerReported(worker: number, facts: WorkerFacts, finished: number) {
      cpu.inc({ worker }, Math.max(0, facts.cpuSeconds - (running.get(worker)?.cpuSeconds ?? 0)));
      requests.inc({ worker }, finished);
      running.set(worker, facts);
    },
    workerEnded: (worker: number) => void running.delete(worker),
  };
}
