/**
 * Loaded by Node before a program (`--import`), with the path of a file as query `to`. On SIGUSR2 it writes to that path, with its process id at the end, what was seen since the last
 * one: the event loop's own histogram of delays, and the longest CPU time of its thread between two ticks of a millisecond, which is at least that of each turn in between.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const to = new URL(import.meta.url).searchParams.get('to');
if (to !== null) {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  let before = process.threadCpuUsage();
  let longest = 0;
  let ticks = 0;
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    longest = Math.max(longest, user + system);
    ticks += 1;
  }, 1).unref();
  process.on('SIGUSR2', () => {
    const ms = (nanoseconds) => nanoseconds / 1e6;
    const seen = {
      ticks,
      longestCpuMs: longest / 1000,
      p99Ms: ms(delays.percentile(99)),
      p999Ms: ms(delays.percentile(99.9)),
      maxMs: ms(delays.max),
    };
    writeFileSync(`${to}.${process.pid}~`, JSON.stringify(seen));
    renameSync(`${to}.${process.pid}~`, `${to}.${process.pid}`);
    delays.reset();
    longest = 0;
    ticks = 0;
  });
}
