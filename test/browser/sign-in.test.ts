/** The dashboard with authentication on and no proxy in front. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { REQUIRED } from '../../src/auth/decide/decide-access.ts';
import { SlotName } from '../../src/schema/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { buildDashboard, launch, picture, visit } from './dashboard.ts';

describeWithBrowser('the dashboard with authentication', () => {
  let world: World;
  let browser: Browser;

  beforeAll(async () => {
    buildDashboard();
    world = await startWorld({
      dashboard: 'dashboard/dist',
      authorize: (access, { rawHeaders }) =>
        access === 'open' || rawHeaders.includes('Bearer svc_good') ? { ok: true, caller: { identity: 'me', scope: 'admin' } } : REQUIRED,
    });
    world.save(SlotName.parse('primary'), 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    await world.idle();
    browser = await launch();
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    await world.close();
  });

  test('shows no slot without a valid token, and does not store tokens', async () => {
    const visitor = await visit(browser, world.url);
    const { page } = visitor;
    await page.getByRole('heading', { name: 'Sign in with a token' }).waitFor();
    expect(await page.locator('.card').count()).toBe(0);
    expect(await visitor.accessibilityFaults()).toEqual([]);
    await picture(page, 'sign-in');
    for (const token of ['svc_bad', 'svc_good']) {
      await page.getByLabel('Token').fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      if (token === 'svc_bad') await page.getByRole('heading', { name: 'Sign in with a token' }).waitFor();
    }
    await page.locator('[data-slot=primary]').waitFor();
    expect(await page.evaluate('[localStorage.length, sessionStorage.length, document.cookie]')).toEqual([0, 0, '']);
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in with a token' }).waitFor();
    await visitor.close();
    expect(visitor.faults).toEqual([]);
  }, 60_000);
});
