/** The life of a token, from its creation in the dashboard to the first rejected request, with the real service. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { ownEnvironment, startService, type Service } from '../support/service.ts';
import { picture, setUpBrowser } from './visit.ts';

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
