/** The dashboard from the user's point of view: real service, real model server, real browser. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { z } from 'zod';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';
import { accessibilityFaults, LOOKS, picture, setUpBrowser, type VisitOptions } from './visit.ts';

const PRIMARY = 'enabled = false\nbackend = "cpu"\n\n[model]\n# The fox stays.\ndefault = "demo-fox"\n';
const Listed = z.object({
  models: z.array(z.object({ id: z.string(), license: z.string().nullable(), license_url: z.string().nullable() })),
});

describeWithBrowser('the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;

  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
    await service.save('embed', 'enabled = false\nbackend = "cpu"\n[model]\ndefault = "demo-embed"\n');
    await service.save('broken', 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\ncontext = 1\n');
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
  });
  beforeEach(async () => {
    await service.save('primary', PRIMARY);
    await service.until('primary', 'offline', (slot) => slot?.status.state === 'offline');
  });

  const open = (hash: string, options?: VisitOptions) => visit(`${service.url}/${hash}`, options);
  const load = () => service.save('primary', PRIMARY.replace('false', 'true'));
  const until = (what: Parameters<typeof service.until>[2]) => service.until('primary', 'as wanted', what);

  test('shows the plan of a load, loads the slot, and shows each of its states', async () => {
    const page = await open('');
    const card = page.locator('[data-slot=primary]');
    await card.locator('.badge strong', { hasText: 'offline' }).waitFor();
    await page.evaluate(`(() => {
      const badge = document.querySelector('[data-slot=primary] .badge strong');
      window.states = [badge.textContent];
      new MutationObserver(() => window.states.push(badge.textContent)).observe(badge, { characterData: true, childList: true, subtree: true });
    })()`);
    await card.getByRole('button', { name: 'Load', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Load slot "primary"' });
    await dialog.locator('.plan li').first().waitFor();
    await picture(page, 'load-plan');
    expect(await accessibilityFaults(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await card.locator('.badge strong', { hasText: /^ready$/ }).waitFor();
    const states: unknown = await page.evaluate('window.states');
    expect(states).toEqual(expect.arrayContaining(['offline', 'warming', 'ready']));
    expect(await service.slot('primary')).toMatchObject({ status: { state: 'ready' } });
  }, 60_000);

  test('says on every page while requests are captured', async () => {
    const page = await open('#/slots');
    await page.getByText('Live', { exact: true }).waitFor();
    const notice = page.getByText('requests are being captured');
    expect(await notice.count()).toBe(0);
    const headers = { 'content-type': 'application/json' };
    const started = await fetch(`${service.url}/api/captures`, { method: 'POST', headers, body: '{"slot":"primary"}' });
    await notice.waitFor();
    await page.getByRole('link', { name: 'Playground' }).click();
    await notice.waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await fetch(`${service.url}/api/captures/${JSON.parse(await started.text()).id}`, { method: 'DELETE' });
    await notice.waitFor({ state: 'detached' });
  }, 60_000);

  test('streams a chat, and lists a slot with an error first', async () => {
    await load();
    await until(isAnswering);
    const page = await open('#/slots');
    expect(await page.locator('.card').first().getAttribute('data-slot')).toBe('broken');
    expect(await page.locator('[data-slot=broken] .alarm').textContent()).toContain('context');
    await page.getByRole('link', { name: 'Playground' }).click();
    await page.getByLabel('Message').fill('Hello');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    expect((await page.locator('.message.assistant .markdown').textContent())?.length).toBeGreaterThan(10);
    await picture(page, 'playground');
  }, 60_000);

  test('reports a lost connection, and resumes', async () => {
    const page = await open('', { networkFails: true });
    await page.getByText('Live', { exact: true }).waitFor();
    await service.kill('SIGTERM');
    await page.getByText('data may be out of date').waitFor();
    await page.locator('.grid.stale').waitFor();
    await picture(page, 'stale');
    await service.start();
    await page.getByText('Live', { exact: true }).waitFor();
    await load();
    await page.locator('[data-slot=primary] .badge strong', { hasText: /^ready$/ }).waitFor();
  }, 60_000);

  test('marks an error at its line, shows the plan of an edit, and resolves a conflict', async () => {
    const page = await open('#/slots/primary/edit');
    const editor = page.getByRole('textbox', { name: 'Slot as TOML' });
    await editor.waitFor();
    const replaceAll = async (text: string): Promise<void> => {
      await editor.click();
      await page.keyboard.press('ControlOrMeta+a');
      // Otherwise Chromium copies the colours of the old text as inline styles, which the policy forbids.
      await page.keyboard.press('Delete');
      await page.keyboard.insertText(text);
    };
    await replaceAll('enabled = false\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\ncontext = 3\n');
    await page.getByText('Line 5:').waitFor();
    await replaceAll('enabled = = false\n');
    await page.getByText('Line 1:').waitFor();
    await picture(page, 'edit-mistake');
    await replaceAll('enabled = true\nbackend = "cpu"\n[model]\ndefault = "demo-owl"\n');
    await page.locator('.plan li').first().waitFor();
    await picture(page, 'edit-plan');
    expect(await accessibilityFaults(page)).toEqual([]);
    await service.save('primary', `priority = 7\n${PRIMARY}`);
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('Someone else has changed this slot').waitFor();
    expect(await page.getByRole('alert').textContent()).toContain('priority');
    await picture(page, 'edit-conflict');
    await page.getByRole('button', { name: 'Reapply my changes' }).click();
    await page.locator('.plan li').first().waitFor();
    await page.getByRole('button', { name: 'Apply' }).click();
    await until((slot) => isAnswering(slot) && slot?.status.model === 'demo-owl');
    const stored: unknown = await (await fetch(`${service.url}/api/slots/primary`)).json();
    expect(stored).toMatchObject({ spec: { priority: 7, enabled: true, model: { default: 'demo-owl' } } });
  }, 60_000);

  test('lists the revisions of a slot, and returns to one of them', async () => {
    await service.save('primary', PRIMARY.replace('demo-fox', 'demo-owl'));
    const revisions = async () => await (await fetch(`${service.url}/api/slots/primary/revisions`)).text();
    await eventually('the edit is a revision', async () => (await revisions()).includes('demo-owl'));
    const page = await open('#/slots/primary/history');
    const newest = page.getByRole('listitem').filter({ hasText: 'changed model.default from "demo-fox" to "demo-owl"' });
    await newest.first().waitFor();
    expect(await newest.first().getByRole('button').count()).toBe(0);
    await picture(page, 'history');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page
      .getByRole('button', { name: /^Undo to/ })
      .first()
      .click();
    const dialog = page.getByRole('dialog', { name: /^Return slot "primary" to revision/ });
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page
      .getByText(/undo to [0-9]+/)
      .first()
      .waitFor();
    expect(await readFile(join(service.configDir, 'slots', 'primary.toml'), 'utf8')).toBe(PRIMARY);
  }, 60_000);

  test('creates a token that is shown once, and revokes it', async () => {
    const page = await open('#/settings');
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByLabel('Label').fill('laptop');
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click();
    const secret = page.getByRole('textbox', { name: 'laptop' });
    await secret.waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    expect(await secret.inputValue()).toMatch(/^svc_/);
    await picture(page, 'token');
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Revoke laptop' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('No tokens yet').waitFor();
  }, 60_000);

  test('shows what callers, models and slots have used, and what it costs', async () => {
    await service.save(
      'primary',
      `${PRIMARY.replace('false', 'true')}[price]\ncurrency = "EUR"\noutput_tokens = 5000\nprompt_tokens = 0.1\n`,
    );
    await until(isAnswering);
    await (await service.chat({ model: 'primary', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20 })).text();
    const page = await open('#/activity/usage');
    const row = page.getByRole('row', { name: 'anyone' });
    await row.waitFor();
    expect(await row.textContent()).toMatch(/0\.\d\d EUR$/);
    expect(await accessibilityFaults(page)).toEqual([]);
    // The price was an edit.
    await page.getByText(/^Swaps and new revisions: [1-9]/).waitFor();
    await picture(page, 'usage-caller');
    for (const [group, name] of [
      ['Model', 'demo-fox'],
      ['Slot', 'primary'],
    ] as const) {
      await page.getByLabel('Group by').selectOption({ label: group });
      await page.getByRole('row', { name }).waitFor();
    }
    const total = await page.getByRole('row', { name: 'Total' }).textContent();
    await page.getByLabel('Range').selectOption({ label: 'This hour' });
    await page.getByRole('row', { name: 'primary' }).waitFor();
    expect(total).toMatch(/^Total\d+.*EUR$/);
  }, 60_000);

  test('has the theme of the system, or one that this browser remembers', async () => {
    const page = await open('#/settings', { theme: 'light' });
    const background = async (): Promise<unknown> => await page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await background();
    await page.getByLabel('Theme').selectOption({ label: 'Dark' });
    const dark = await background();
    expect(dark).not.toEqual(light);
    await page.reload();
    await page.getByLabel('Theme').waitFor();
    expect(await background()).toEqual(dark);
    await page.getByLabel('Theme').selectOption({ label: 'As the system' });
    expect(await background()).toEqual(light);
  }, 60_000);

  const places = [
    'slots',
    'slots?view=table',
    'slots/primary/explain',
    'slots/primary/timeline',
    'slots/primary/logs',
    'slots/primary/edit',
    'models',
    'playground',
    'playground/compare',
    'playground/images',
    'playground/speak',
    'playground/transcribe',
    'playground/similarity',
    'playground/rerank',
    'activity',
    'activity/drift',
    'activity/requests',
    'activity/usage',
    'activity/changes',
    'activity/logs',
    'hardware',
    'settings',
  ];
  // The accessibility check is slow. Two looks cover both themes and both widths.
  const isChecked = ({ theme, width }: VisitOptions): boolean => (theme === 'light') === (width === 1280);

  // Others are for pictures only.
  const looks: readonly VisitOptions[] = process.env['SVC_TEST_SCREENSHOTS'] === undefined ? LOOKS.filter(isChecked) : LOOKS;
  test.each(looks)(
    'has no accessibility violations and no overflow: $theme, $width px',
    async (look) => {
      await load();
      await until(isAnswering);
      const page = await open('#/slots', look);
      await page.locator('.card').first().waitFor();
      for (const place of places) {
        await page.evaluate(`location.hash = '#/${place}'`);
        await eventually('the page has settled', async () => (await page.getByText(/^Loading( editor)?…$/).count()) === 0);
        if (isChecked(look)) expect([place, await accessibilityFaults(page)]).toEqual([place, []]);
        const wide: unknown = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        expect([place, wide]).toEqual([place, 0]);
        await picture(page, `${place.replaceAll('/', '-')}-${look.theme}-${look.width}`);
      }
    },
    300_000,
  );

  test('can be used with the keyboard alone', async () => {
    const page = await open('#/slots');
    await page.locator('[data-slot=primary]').waitFor();
    const focused = () => page.evaluate('document.activeElement.textContent');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to content');
    await page.keyboard.press('Enter');
    const load = page.locator('[data-slot=primary]').getByRole('button', { name: 'Load', exact: true });
    for (let presses = 0; presses < 60 && !(await load.evaluate((button) => button === button.ownerDocument.activeElement)); presses += 1) {
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(await focused()).toBe('Load');
  }, 60_000);

  test('The picker shows a license badge: each curated image model with a link to its licence', async () => {
    const page = await open('#/models');
    const { models } = Listed.parse(await (await fetch(`${service.url}/api/models`)).json());
    for (const name of ['sdxl-turbo', 'sd-1.5-pruned-emaonly', 'flux-schnell']) {
      const { license, license_url: url } = models.find(({ id }) => id === name) ?? {};
      const row = page.locator('.model-row').filter({ has: page.getByRole('heading', { name, exact: true }) });
      const badge = row.getByRole('link', { name: `Licence: ${license}`, exact: true });
      expect(await badge.getAttribute('href')).toBe(url);
      expect(url).toMatch(/^https:/);
    }
  }, 60_000);
});
