/** The dashboard while requests fail briefly, as they do when the network changes. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { startWorld, type World } from '../api/manage/world.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { buildDashboard, launch, visit } from './dashboard.ts';

const PART = '**/assets/first-run*.js';

describeWithBrowser('a part of the page that is loaded on demand', () => {
  let world: World;
  let browser: Browser;

  beforeAll(async () => {
    buildDashboard();
    world = await startWorld({ dashboard: 'dashboard/dist' });
    await world.idle();
    browser = await launch();
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    await world.close();
  });

  test('is retried once if it fails to load', async () => {
    const { page, close } = await visit(browser, 'about:blank');
    await page.route(PART, (route) => route.abort('internetdisconnected'), { times: 1 });
    await page.goto(world.url);
    await page.locator('.first-run').waitFor();
    await close();
  }, 60_000);

  test('offers to reload the page if it cannot be loaded', async () => {
    const { page, close } = await visit(browser, 'about:blank');
    await page.route(PART, (route) => route.abort('internetdisconnected'));
    await page.goto(world.url);
    const again = page.getByRole('button', { name: 'Reload page' });
    await again.waitFor();
    await page.unroute(PART);
    await again.click();
    await page.locator('.first-run').waitFor();
    expect(await again.count()).toBe(0);
    await close();
  }, 60_000);
});
