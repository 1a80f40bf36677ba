/**
 * The dashboard in Chromium: how soon it can be used, how often it is drawn while 200 slots change all the time, whether its heap grows, and what a page that somebody
 * looks at costs the service. `SVC_BENCH_MINUTES`: how long the heap is watched (default 10).
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { buildDashboard, launch } from '../test/browser/dashboard.ts';
import { BROWSER } from '../test/support/browser-path.ts';
import { measureOpening, openDashboard, type Tab } from './dashboard-page.ts';
import { atLeast, atMost, median, note, type Row } from './measure.ts';
import { cpuSeconds, startBenchService } from './service-process.ts';
import { startViewers } from './viewers.ts';
import { waitUntil } from './wait-until.ts';

const SLOTS = 200;
const EVENTS_PER_SLOT = 5;
const SLOWER = 4;
const OPENINGS = 5;
/** A row of one minute would hide a short stop in its mean. */
const FRAMES_SECONDS = 10;
const VIEWERS = 5;
const MANY_VIEWERS = 50;
const MANY_SLOTS = 5000;
const COST_SECONDS = 60;
const MINUTE_MS = 60_000;
const OWN_SLOTS = ['primary', 'embed', 'third', 'fourth', 'fifth'] as const;
const HEAP_GOAL = { limit: 1.1, unit: '×' };

export async function measureDashboard(): Promise<readonly Row[]> {
  if (BROWSER === '') return [atMost('the dashboard', 'needs Chromium: set SVC_TEST_BROWSER', { limit: 1, unit: 's' })];
  buildDashboard();
  const browser = await launch();
  try {
    return [...(await measureMany(browser)), ...(await measureThousands(browser)), ...(await measureCost(browser))];
  } finally {
    await browser.close();
  }
}

interface Slots {
  readonly url: string;
  readonly process: ChildProcess;
  readonly pid: number;
}

async function measureMany(browser: Browser): Promise<readonly Row[]> {
  const slots = await startSlots(SLOTS);
  try {
    const openings: number[] = [];
    for (let run = 0; run < OPENINGS; run += 1) openings.push((await measureOpening(browser, slots.url, SLOWER)) / 1000);
    const idleCpu = await shareOfCore(slots.pid, FRAMES_SECONDS);
    slots.process.send(SLOTS * EVENTS_PER_SLOT);
    const eventCpu = await shareOfCore(slots.pid, FRAMES_SECONDS);
    const tab = await openDashboard(browser, slots.url);
    const watched = await watch(tab, slots.pid);
    await tab.close();
    const what = `${SLOTS} slots × ${EVENTS_PER_SLOT} events/s`;
    return [
      atMost(`interactive, ${SLOTS} slots, CPU ${SLOWER} × slower, median of ${OPENINGS}`, median(openings), { limit: 1, unit: 's' }),
      atLeast(`frames/s, ${what}, the worst ${FRAMES_SECONDS} s`, Math.min(...watched.frames), { limit: 50, unit: '/s', digits: 1 }),
      note(`frames/s, ${what}, median`, `${median(watched.frames).toFixed(1)} /s`),
      atMost(`heap after ${watched.minutes} min ÷ after 1 min, ${what}`, watched.heapGrowth, HEAP_GOAL),
      note('heap, one value each minute', watched.heapsMb.map((mb) => mb.toFixed(1)).join(', ')),
      note(`drawings of cards, ${what}`, `${watched.drawnPerSecond.toFixed(0)} /s`),
      note(
        `CPU of a viewer, ${what}`,
        `${((watched.cpu - eventCpu) * 100).toFixed(1)} % of a core (events without a viewer: ${((eventCpu - idleCpu) * 100).toFixed(1)} %)`,
      ),
    ];
  } finally {
    slots.process.kill('SIGKILL');
  }
}

async function startSlots(count: number): Promise<Slots> {
  const child = fork(path.join(import.meta.dirname, 'dashboard-process.ts'), [String(count)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  if (child.stdout === null || child.pid === undefined) throw new Error('The process with the slots has no output');
  const [line] = await once(child.stdout, 'data');
  return { url: String(line).trim(), process: child, pid: child.pid };
}

/** What a page receives that shows thousands of slots, of which none changes. */
async function measureThousands(browser: Browser): Promise<readonly Row[]> {
  const slots = await startSlots(MANY_SLOTS);
  try {
    const tab = await openDashboard(browser, slots.url);
    await pause(MINUTE_MS);
    const first = tab.received();
    await pause(MINUTE_MS);
    const second = tab.received();
    const heapBytes = await tab.heapBytes();
    await tab.close();
    return [
      atMost(`received in the first minute, ${MANY_SLOTS} slots`, first.bytes / 1e6, { limit: 1, unit: 'MB' }),
      atMost(`received in the second minute, ${MANY_SLOTS} slots at rest`, second.bytes / 1e3, { limit: 60, unit: 'KB', digits: 1 }),
      note('  its requests', [...second.paths].map(([name, count]) => `${count} ${name}`).join(', ')),
      atMost(`heap of the page, ${MANY_SLOTS} slots`, heapBytes / 1e6, { limit: 30, unit: 'MB', digits: 1 }),
    ];
  } finally {
    slots.process.kill('SIGKILL');
  }
}

interface Watched {
  readonly minutes: number;
  readonly frames: readonly number[];
  readonly heapsMb: readonly number[];
  readonly heapGrowth: number;
  readonly drawnPerSecond: number;
  /** Of one core. */
  readonly cpu: number;
}

/** The first minute fills what the page keeps: events, caches of the browser, compiled functions. */
async function watch(tab: Tab, pid: number): Promise<Watched> {
  const minutes = Math.max(2, Number(process.env['SVC_BENCH_MINUTES'] ?? 10));
  const frames: number[] = [];
  const heaps: number[] = [];
  await tab.drawn();
  const begin = { at: performance.now(), cpu: await cpuSeconds(pid) };
  for (let minute = 1; minute <= minutes; minute += 1) {
    while (performance.now() - begin.at < minute * 60_000 - FRAMES_SECONDS * 500) frames.push(await tab.frames(FRAMES_SECONDS));
    heaps.push(await tab.heapBytes());
  }
  const seconds = (performance.now() - begin.at) / 1000;
  const [first = Number.NaN] = heaps;
  return {
    minutes,
    frames,
    heapsMb: heaps.map((bytes) => bytes / 1e6),
    heapGrowth: (heaps.at(-1) ?? Number.NaN) / first,
    drawnPerSecond: (await tab.drawn()) / seconds,
    cpu: ((await cpuSeconds(pid)) - begin.cpu) / seconds,
  };
}

/** A real service with five ready slots, without and with pages that are looked at. */
async function measureCost(browser: Browser): Promise<readonly Row[]> {
  const service = await startBenchService({ SVC_RUNTIME: 'process' });
  const tabs: Tab[] = [];
  try {
    for (const slot of OWN_SLOTS)
      await service.save(
        slot,
        `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${slot === 'embed' ? 'demo-embed' : 'demo-fox'}"\n`,
      );
    const allReady = async (): Promise<boolean> => {
      const slots = await service.status();
      return slots.length === OWN_SLOTS.length && slots.every(({ ready }) => ready);
    };
    await waitUntil(allReady, { withinMs: 180_000, everyMs: 200, failure: () => 'The slots did not become ready' });
    for (let viewer = 0; viewer < VIEWERS; viewer += 1) tabs.push(await openDashboard(browser, service.url));
    await pause(FRAMES_SECONDS * 1000);
    const withViewers = await shareOfCore(service.pid, COST_SECONDS);
    for (const tab of tabs.splice(0)) await tab.close();
    await pause(FRAMES_SECONDS * 1000);
    const alone = await shareOfCore(service.pid, COST_SECONDS);
    const viewers = startViewers(service.url, MANY_VIEWERS);
    await pause(FRAMES_SECONDS * 1000);
    const withMany = await shareOfCore(service.pid, COST_SECONDS);
    await viewers.stop();
    const unit = '% of a core';
    return [
      atMost(`CPU of a viewer, five ready slots, mean of ${VIEWERS}`, ((withViewers - alone) / VIEWERS) * 100, { limit: 1, unit }),
      atMost(`CPU of ${MANY_VIEWERS} viewers, five ready slots`, (withMany - alone) * 100, { limit: 20, unit }),
    ];
  } finally {
    for (const tab of tabs) await tab.close();
    await service.stop();
  }
}

/** CPU time of a process during this time: 0.5 is half of a core. */
async function shareOfCore(pid: number, seconds: number): Promise<number> {
  const before = await cpuSeconds(pid);
  await pause(seconds * 1000);
  return ((await cpuSeconds(pid)) - before) / seconds;
}
