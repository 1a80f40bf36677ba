/** What a browser says of the dashboard: when it can be used, how often it is drawn, and its heap. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { z } from 'zod';
import { whenInteractive } from './decide/when-interactive.ts';

/** Long enough for everything that begins by itself when the page is opened. */
const SETTLE_MS = 4000;
const SIZE = { width: 1280, height: 900 };
/** `longtask` of browsers: 50 ms and more. https://developer.mozilla.org/docs/Web/API/PerformanceLongTaskTiming */
const WATCH_OPENING = `
  window.opening = { shown: undefined, tasks: [] };
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) opening.tasks.push({ startMs: startTime, durationMs: duration });
  }).observe({ type: 'longtask', buffered: true });
  const look = () => {
    if (document.querySelector('.card .buttons button') === null) requestAnimationFrame(look);
    else requestAnimationFrame(() => (opening.shown = performance.now()));
  };
  requestAnimationFrame(look);`;
const Opening = z.object({ shown: z.number(), tasks: z.array(z.object({ startMs: z.number(), durationMs: z.number() })) });

/** Milliseconds from the request for the page until it can be used, in a browser that has nothing of it, with a CPU that is `slower` times slower. */
export async function measureOpening(browser: Browser, url: string, slower: number): Promise<number> {
  const { page, session } = await openTab(browser);
  await session.send('Emulation.setCPUThrottlingRate', { rate: slower });
  await page.addInitScript(WATCH_OPENING);
  await page.goto(url, { waitUntil: 'commit' });
  await page.locator('.card .buttons button').first().waitFor();
  await pause(SETTLE_MS);
  const { shown, tasks } = Opening.parse(await page.evaluate('opening'));
  await page.context().close();
  return whenInteractive(shown, tasks);
}

export interface Tab {
  /** Bytes that have arrived, compressed and with heads, and how often each path was asked for, since the last call. */
  received(): { readonly bytes: number; readonly paths: ReadonlyMap<string, number> };
  /** Frames a second from now on, for this time. */
  frames(seconds: number): Promise<number>;
  /** Bytes of objects that are in use, after everything else was collected. */
  heapBytes(): Promise<number>;
  /** Drawings of a card's last line, which shows that events arrive, since the last call. */
  drawn(): Promise<number>;
  close(): Promise<void>;
}

/** Opens the dashboard and waits until it is live. */
export async function openDashboard(browser: Browser, url: string): Promise<Tab> {
  const { page, session } = await openTab(browser);
  let bytes = 0;
  let paths = new Map<string, number>();
  // The head of an answer, and each part of its body: the stream of events does not end.
  session.on('Network.responseReceived', ({ response }) => {
    bytes += response.encodedDataLength;
    const { pathname } = new URL(response.url);
    paths.set(pathname, (paths.get(pathname) ?? 0) + 1);
  });
  session.on('Network.dataReceived', ({ encodedDataLength }) => (bytes += encodedDataLength));
  await session.send('Network.enable');
  await page.goto(url);
  await page.getByText('Live', { exact: true }).waitFor();
  await page.evaluate(`(() => {
    window.drawings = 0;
    new MutationObserver((records) => (drawings += records.length)).observe(document.querySelector('.grid'), { characterData: true, subtree: true });
  })()`);
  return {
    received() {
      const since = { bytes, paths };
      [bytes, paths] = [0, new Map()];
      return since;
    },
    frames: async (seconds) =>
      z.number().parse(
        await page.evaluate(`new Promise((resolve) => {
          const begin = performance.now();
          let frames = 0;
          const next = (now) => {
            frames += 1;
            if (now - begin < ${seconds * 1000}) requestAnimationFrame(next);
            else resolve((frames * 1000) / (now - begin));
          };
          requestAnimationFrame(next);
        })`),
      ),
    async heapBytes() {
      await session.send('HeapProfiler.collectGarbage');
      return (await session.send('Runtime.getHeapUsage')).usedSize;
    },
    drawn: async () => z.number().parse(await page.evaluate('(() => { const count = drawings; drawings = 0; return count; })()')),
    close: () => page.context().close(),
  };
}

async function openTab(browser: Browser): Promise<{ readonly page: Page; readonly session: CDPSession }> {
  const context = await browser.newContext({ viewport: SIZE });
  const page = await context.newPage();
  return { page, session: await context.newCDPSession(page) };
}
