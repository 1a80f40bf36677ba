/**
 * Photographs every page of the dashboard in both themes and three widths: `npm run screenshots -- DIRECTORY` (default `.svc/screenshots`). It starts a service of its own, and
 * needs Chromium (SVC_TEST_BROWSER, or one on the PATH). `--docs` renews the pictures of `docs/images` as well. `--only slots,hub` takes some views.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { z } from 'zod';
import { buildDashboard, launch } from '../test/browser/dashboard.ts';
import { eventually } from '../test/support/eventually.ts';
import { startPictureWorld } from './screenshots/world.ts';
import { VIEWS, type View } from './screenshots/views.ts';

interface Look {
  readonly theme: 'light' | 'dark';
  readonly width: number;
  readonly height: number;
}

const SIZES = [
  { width: 390, height: 844 },
  { width: 1360, height: 900 },
  { width: 1920, height: 1080 },
];
const LOOKS: readonly Look[] = SIZES.flatMap((size) => (['light', 'dark'] as const).map((theme) => ({ theme, ...size })));
/** The list of models is longer. */
const MAX_HEIGHT = 3600;
/** What a page requests by itself has arrived. */
const DRAWN_MS = 700;
/** Rates are the difference of two samples that are six seconds apart. */
const TRAFFIC_MS = 14_000;
const PICTURES = join(import.meta.dirname, '../docs/images');
/** Legible on dense displays, and at most 60 KB. */
const DOCS = { width: 1200, height: 800, scale: 2, quality: 50 };
const DOCS_VIEWS: readonly (readonly [file: string, view: string, theme: Look['theme']])[] = [
  ['dashboard', 'slots', 'light'],
  ['dashboard-dark', 'slots', 'dark'],
];

const { values, positionals } = parseArgs({
  options: { docs: { type: 'boolean', default: false }, only: { type: 'string', default: '' } },
  allowPositionals: true,
});
const directory = resolve(positionals[0] ?? '.svc/screenshots');
const only = values.only.split(',').filter((name) => name !== '');

buildDashboard();
await mkdir(directory, { recursive: true });
const world = await startPictureWorld();
const ended = new AbortController();
const traffic = world.traffic(ended.signal);
const browser = await launch();
try {
  const first = await openPage(browser, { theme: 'light', ...DOCS });
  await first.screenshot({ path: join(directory, 'first-run.png') });
  await first.context().close();
  await fetch(`${world.url}/api/install/complete`, { method: 'POST' });
  for (const look of LOOKS) await photograph(look);
  if (values.docs) for (const picture of DOCS_VIEWS) await record(...picture);
} finally {
  ended.abort();
  await traffic;
  await browser.close();
  await world.close();
}

async function openPage(from: Browser, { theme, width, height }: Look, deviceScaleFactor = 1): Promise<Page> {
  const options = { viewport: { width, height }, colorScheme: theme, deviceScaleFactor, reducedMotion: 'reduce' } as const;
  const page = await (await from.newContext(options)).newPage();
  await page.goto(world.url);
  await page.getByText('Live', { exact: true }).waitFor();
  await pause(TRAFFIC_MS);
  return page;
}

async function photograph(look: Look): Promise<void> {
  const page = await openPage(browser, look);
  for (const view of VIEWS.filter(({ name }) => only.length === 0 || only.includes(name))) {
    const name = `${view.name}-${look.width}-${look.theme}`;
    await show(page, view);
    const excess: unknown = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    if (excess !== 0) process.stdout.write(`${name} is ${String(excess)} pixels wider than the window\n`);
    if (view.isWindow !== true) await stretch(page, look);
    await page.screenshot({ path: join(directory, `${name}.png`) });
    await page.setViewportSize(look);
    await view.cleanUp?.(page);
  }
  await page.context().close();
}

/** Makes the window as high as the page: cards outside the window are not drawn. */
async function stretch(page: Page, { width, height }: Look): Promise<void> {
  const whole = z.number().parse(await page.evaluate('document.documentElement.scrollHeight'));
  await page.setViewportSize({ width, height: Math.max(height, Math.min(whole, MAX_HEIGHT)) });
  await pause(DRAWN_MS);
}

async function show(page: Page, { hash, prepare }: View): Promise<void> {
  await page.evaluate(`location.hash = '#/${hash}'; scrollTo(0, 0)`);
  await eventually('the page has settled', async () => (await page.getByText(/^Loading( editor)?…$/).count()) === 0);
  await prepare?.(page);
  await pause(DRAWN_MS);
}

async function record(file: string, name: string, theme: Look['theme']): Promise<void> {
  const view = VIEWS.find((each) => each.name === name);
  if (view === undefined) throw new Error(`No view "${name}"`);
  const page = await openPage(browser, { theme, ...DOCS }, DOCS.scale);
  await show(page, view);
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: DOCS.quality });
  await writeFile(join(PICTURES, `${file}.webp`), Buffer.from(data, 'base64'));
  await page.context().close();
}
