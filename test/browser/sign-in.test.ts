/** The dashboard with authentication on and no proxy in front. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { REQUIRED } from '../../src/auth/decide/decide-access.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { accessibilityFaults, picture, setUpBrowser } from './visit.ts';

describeWithBrowser('the dashboard with authentication', () => {
  const visit = setUpBrowser();
  let world: World;

  beforeAll(async () => {
    world = await startWorld({
      dashboard: 'dashboard/dist',
      authorize: (access, { rawHeaders }) =>
        access === 'open' || rawHeaders.includes('Bearer svc_good')
          ? { ok: true, caller: { key: 'caller', identity: 'me', scope: 'admin' } }
          : REQUIRED,
    });
    world.save(SlotName.parse('primary'), 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    await world.idle();
  }, 120_000);
  afterAll(async () => {
    await world.close();
  });

  test('shows no slot without a valid token, and does not store tokens', async () => {
    const page = await visit(world.url);
    await page.getByRole('heading', { name: 'Sign in with a token' }).waitFor();
    expect(await page.locator('.card').count()).toBe(0);
    expect(await accessibilityFaults(page)).toEqual([]);
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
  }, 60_000);
});
