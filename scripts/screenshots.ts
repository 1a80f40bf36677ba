/**
 * Photographs every page of the dashboard in both themes and three widths: `npm run screenshots -- DIRECTORY` (default `.svc/screenshots`). It starts a service of its own, and
 * needs Chromium (SVC_TEST_BROWSER, or one on the PATH). `--docs` renews the pictures of `docs/images` as well, `--only-docs` these alone. `--only slots,hub`
 * takes some views.
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
const DOCS_SIZE = { width: 1200, height: 880 };
const MAX_BYTES = 60_000;
/** The best quality that fits into `MAX_BYTES`. */
const QUALITIES = [80, 65, 50, 35, 20];
const DOCS: readonly { readonly file: string; readonly view: string; readonly theme: Look['theme'] }[] = [
  { file: 'dashboard', view: 'slots', theme: 'light' },
  { file: 'dashboard-dark', view: 'slots', theme: 'dark' },
  { file: 'dashboard-table', view: 'table', theme: 'light' },
  { file: 'dashboard-plan', view: 'plan', theme: 'dark' },
  { file: 'dashboard-explain', view: 'slot-vision-explain', theme: 'light' },
  { file: 'dashboard-edit', view: 'slot-primary-edit', theme: 'dark' },
  { file: 'dashboard-models', view: 'models', theme: 'light' },
  { file: 'dashboard-chat', view: 'chat', theme: 'dark' },
  { file: 'dashboard-requests', view: 'requests', theme: 'light' },
  { file: 'dashboard-hardware', view: 'hardware', theme: 'dark' },
];

const { values, positionals } = parseArgs({
  options: {
    docs: { type: 'boolean', default: false },
    'only-docs': { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
  allowPositionals: true,
});
const directory = resolve(positionals[0] ?? '.svc/screenshots');
const only = values.only.split(',').filter((name) => name !== '');
const isWanted = (view: string): boolean => only.length === 0 || only.includes(view);

buildDashboard();
await mkdir(directory, { recursive: true });
const world = await startPictureWorld();
const ended = new AbortController();
const traffic = world.traffic(ended.signal);
const browser = await launch();
try {
  const first = await openPage(browser, { theme: 'light', ...DOCS_SIZE });
  await first.screenshot({ path: join(directory, 'first-run.png') });
  await first.context().close();
  await fetch(`${world.url}/api/install/complete`, { method: 'POST' });
  if (!values['only-docs']) for (const look of LOOKS) await photograph(look);
  if (values.docs || values['only-docs']) for (const picture of DOCS.filter(({ view }) => isWanted(view))) await record(picture);
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
  for (const view of VIEWS.filter(({ name }) => isWanted(name))) {
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

async function record({ file, view: name, theme }: (typeof DOCS)[number]): Promise<void> {
  const view = VIEWS.find((each) => each.name === name);
  if (view === undefined) throw new Error(`No view "${name}"`);
  // Legible on dense displays.
  const page = await openPage(browser, { theme, ...DOCS_SIZE }, 2);
  await show(page, view);
  const session = await page.context().newCDPSession(page);
  for (const quality of QUALITIES) {
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality });
    const bytes = Buffer.from(data, 'base64');
    if (bytes.length > MAX_BYTES && quality !== QUALITIES.at(-1)) continue;
    await writeFile(join(PICTURES, `${file}.webp`), bytes);
    break;
  }
  await page.context().close();
}
