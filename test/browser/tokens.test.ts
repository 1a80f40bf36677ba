/** The life of a token, from its creation in the dashboard to the first rejected request, and what each scope sees. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Scope } from '../../src/schema/words/access.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { ownEnvironment, startService, type Service } from '../support/service.ts';
import { accessibilityFaults, picture, setUpBrowser } from './visit.ts';

describeWithBrowser('tokens in the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;
  let admin: string;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', environment: { SVC_AUTH_ENABLED: '1' } });
    const env = { ...ownEnvironment(), ...service.environment };
    const args = ['src/cli/svcctl.mjs', 'token', 'create', '--label', 'first', '--scope', 'admin'];
    admin = (await promisify(execFile)(process.execPath, args, { env })).stdout.trim();
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
  });

  test('can be created, copied, used and revoked', async () => {
    const page = await visit(`${service.url}/#/settings`);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByLabel('Token').fill(admin);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Create token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Label').fill('laptop');
    await dialog.getByLabel('Last day (optional)').fill('2099-12-31');
    await dialog.getByText('Limits (optional)').click();
    await dialog.getByLabel('Models, separated by commas').fill('primary, embed');
    await dialog.getByLabel('Requests per minute').fill('3000');
    await picture(page, 'token-limits');
    await dialog.getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const token = String(await page.evaluate('navigator.clipboard.readText()'));
    expect(token).toBe(await page.getByRole('textbox', { name: 'laptop' }).inputValue());
    await page.getByRole('button', { name: 'Done' }).click();

    const row = page.getByRole('row', { name: 'laptop' });
    expect(await row.textContent()).toMatch(
      /2099-12-31 23:59:59Models, separated by commas: primary, embed; Requests per minute: 3000Never/,
    );
    await eventually('a chat with the token is answered', async () => (await chatStatus(token)) === 200);
    await page.getByRole('link', { name: 'Activity' }).click();
    await page.getByRole('link', { name: 'Settings' }).click();
    await row.waitFor();
    expect(await row.textContent()).not.toContain('Never');

    await row.getByRole('button', { name: 'Revoke laptop' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await row.waitFor({ state: 'detached' });
    expect(await chatStatus(token)).toBe(401);
  }, 60_000);

  async function chatStatus(token: string): Promise<number> {
    const response = await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'primary', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 2 }),
    });
    await response.text();
    return response.status;
  }
});

describeWithBrowser('the dashboard for a token that may not change anything', () => {
  const visit = setUpBrowser();
  let world: World;
  let scope: Scope = 'read-only';

  beforeAll(async () => {
    world = await startWorld({
      dashboard: 'dashboard/dist',
      authorize: () => ({ ok: true, caller: { key: 'caller', identity: 'me', scope } }),
    });
    world.save(SlotName.parse('primary'), 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    await world.idle();
  }, 120_000);
  afterAll(async () => {
    await world.close();
  });

  test.each([
    ['read-only', ['Explain', 'Timeline'], []],
    ['all', ['Explain', 'Timeline', 'Logs'], []],
    ['admin', ['Explain', 'Timeline', 'Logs', 'Edit'], ['Change model', 'Restart', 'Unload']],
  ] as const)(
    'shows a token of scope "%s" the links %j',
    async (given, links, buttons) => {
      scope = given;
      const page = await visit(world.url);
      const card = page.locator('[data-slot=primary]');
      await card.getByRole('link', { name: 'Explain' }).waitFor();
      await eventually('the links are shown', async () => (await page.locator('[data-slot=primary] .links a').count()) === links.length);
      expect(await card.locator('.links a').allTextContents()).toEqual(links);
      const offered = await card.locator('.buttons > *').allTextContents();
      expect(offered.toSorted()).toEqual(buttons);
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').pressSequentially('primary');
      const actions = given === 'admin' ? ['Unload primary action', 'Restart primary action'] : [];
      expect(await page.getByRole('option').allTextContents()).toEqual(['primary slot', ...actions]);
      await page.keyboard.press('Escape');
      await page.getByRole('link', { name: 'Settings' }).click();
      await page.getByRole('heading', { name: 'Tokens' }).waitFor();
      expect(await page.getByRole('button', { name: 'Create token' }).count()).toBe(given === 'admin' ? 1 : 0);
      await page.getByRole('link', { name: 'Playground' }).click();
      if (given === 'read-only') await page.getByText('Your token does not allow this').waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);
    },
    60_000,
  );
});
