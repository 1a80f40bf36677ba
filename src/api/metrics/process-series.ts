/** The metrics of the process: memory, CPU, and how busy its event loop is. */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { MetricFactory } from './metric-factory.ts';

/** Time between the timers that measure the delay. Fifty a second cost nothing that can be measured. */
const RESOLUTION_MS = 20;

export function registerProcessSeries({ gauge, readCounter }: MetricFactory) {
  const eventLoop = watchEventLoop();
  gauge('process_resident_memory_bytes', (add) => add({}, process.memoryUsage.rss()));
  gauge('process_start_time_seconds', (add) => add({}, Math.round(performance.timeOrigin / 1000)));
  readCounter('process_cpu_seconds_total', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  gauge('nodejs_eventloop_delay_mean_seconds', (add) => add({}, eventLoop.last().mean));
  gauge('nodejs_eventloop_delay_p50_seconds', (add) => add({}, eventLoop.last().p50));
  gauge('nodejs_eventloop_delay_p99_seconds', (add) => add({}, eventLoop.last().p99));
  gauge('nodejs_eventloop_delay_max_seconds', (add) => add({}, eventLoop.last().max));
  gauge('nodejs_eventloop_utilization_ratio', (add) => add({}, eventLoop.last().utilization));
  return {
    /** Ends the window of the event-loop metrics. To be called before each scrape. */
    sample: eventLoop.sample,
  };
}

function watchEventLoop() {
  const intervals = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  intervals.enable();
  let before = performance.eventLoopUtilization();
  let sampled = { mean: 0, p50: 0, p99: 0, max: 0, utilization: 0 };
  return {
    last: () => sampled,
    sample() {
      const now = performance.eventLoopUtilization();
      sampled = {
        mean: delaySeconds(intervals.mean),
        p50: delaySeconds(intervals.percentile(50)),
        p99: delaySeconds(intervals.percentile(99)),
        max: delaySeconds(intervals.max),
        utilization: performance.eventLoopUtilization(now, before).utilization,
      };
      before = now;
      intervals.reset();
    },
  };
}

/** Node measures the whole interval between two timers, in nanoseconds. Not a number: no timer has run yet. */
function delaySeconds(interval: number): number {
  return Number.isFinite(interval) ? Math.max(0, interval / 1e9 - RESOLUTION_MS / 1000) : 0;
}
