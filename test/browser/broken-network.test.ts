/** The dashboard while requests fail briefly, as they do when the network changes. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startWorld, type World } from '../api/manage/world.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { setUpBrowser } from './visit.ts';

const PART = '**/assets/first-run*.js';

describeWithBrowser('a part of the page that is loaded on demand', () => {
  const visit = setUpBrowser();
  let world: World;

  beforeAll(async () => {
    world = await startWorld({ dashboard: 'dashboard/dist' });
    await world.idle();
  }, 120_000);
  afterAll(async () => {
    await world.close();
  });

  test('is retried once if it fails to load', async () => {
    const page = await visit(world.url, {
      networkFails: true,
      prepare: (opened) => opened.route(PART, (route) => route.abort('internetdisconnected'), { times: 1 }),
    });
    await page.locator('.first-run').waitFor();
  }, 60_000);

  test('offers to reload the page if it cannot be loaded', async () => {
    const page = await visit(world.url, {
      networkFails: true,
      prepare: (opened) => opened.route(PART, (route) => route.abort('internetdisconnected')),
    });
    const reload = page.getByRole('button', { name: 'Reload page' });
    await reload.waitFor();
    await page.unroute(PART);
    await reload.click();
    await page.locator('.first-run').waitFor();
    expect(await reload.count()).toBe(0);
  }, 60_000);
});
