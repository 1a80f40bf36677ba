/** Profiles in the dashboard of a real service: saving, planning a switch, switching, and invalid profiles. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { isAnswering, pause, startService, type Service } from '../support/service.ts';
import { accessibilityFaults, LOOKS, picture, setUpBrowser, type VisitOptions } from './visit.ts';

const slotOf = (model: string, more = '') => `${more}provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${model}"\n`;

describeWithBrowser('profiles in the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;

  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
    await service.save('primary', slotOf('demo-fox'));
    await service.save('helper', slotOf('demo-owl', 'enabled = false\n'));
    await service.until('primary', 'ready', isAnswering);
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
  });

  const open = (options?: VisitOptions) => visit(`${service.url}/#/slots`, options);
  const bar = (page: Page) => page.getByRole('group', { name: 'Profiles' });
  const chosen = (page: Page) => bar(page).locator('option:checked');
  const isDefault = async (page: Page, text: string) =>
    await bar(page).locator('option:checked', { hasText: text }).waitFor({ state: 'attached' });
  const write = async (file: string, text: string): Promise<void> => {
    const place = path.join(service.configDir, 'profiles', file);
    await mkdir(path.dirname(place), { recursive: true });
    await writeFile(place, text);
  };

  test('saves a profile with the keyboard alone, and asks before replacing one', async () => {
    const page = await open();
    const save = bar(page).getByRole('button', { name: 'Save as profile…' });
    await save.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Save as profile' });
    await page.keyboard.press('Tab');
    await page.keyboard.type('Foxes');
    await page.keyboard.press('Enter');
    expect(await dialog.getByRole('alert').textContent()).toContain('A profile name consists of lower-case letters');
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'profile-save');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('foxes');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await isDefault(page, 'foxes · active');
    expect(await bar(page).getByRole('button', { name: 'Switch…' }).isDisabled()).toBe(true);

    await save.click();
    await dialog.getByLabel('Name').fill('foxes');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('A profile with this name already exists').waitFor();
    await dialog.getByRole('button', { name: 'Replace' }).click();
    await dialog.waitFor({ state: 'hidden' });
  }, 60_000);

  test('shows the plan of a switch, switches, and shows the active profile', async () => {
    await write('owls/primary.toml', slotOf('demo-owl'));
    await write('owls/night.toml', slotOf('demo-owl'));
    const page = await open();
    await isDefault(page, 'foxes · active');
    await bar(page).getByLabel('Profile').selectOption('owls');
    await bar(page).getByText('Differs in night, primary').waitFor();
    await bar(page).getByRole('button', { name: 'Switch…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Switch to profile "owls"' });
    await dialog.locator('.plan li').first().waitFor();
    expect(await dialog.locator('.results li').allTextContents()).toEqual(['night will be created', 'primary will be changed']);
    await dialog.getByText('Unchanged: helper').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'profile-plan');
    // Another client edits a slot while the plan is shown.
    await service.save('helper', slotOf('demo-owl', 'enabled = false\npriority = 3\n'));
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await dialog.getByText('The profile or a slot has changed since this plan was made').waitFor();
    // The old plan must not be applicable while the next one loads.
    await page.route('**/api/profiles/owls/apply', async (route) => {
      await pause(300);
      await route.continue();
    });
    await dialog.getByRole('button', { name: 'Refresh plan' }).click();
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.locator('[data-slot=night] .badge strong', { hasText: /^ready$/ }).waitFor();
    await service.until('primary', 'switched', (slot) => isAnswering(slot) && slot?.status.model === 'demo-owl');
    await isDefault(page, 'owls · active');
    expect(await bar(page).locator('option').allTextContents()).toEqual(['foxes · 3 slots differ', 'owls · active']);
    // An edit makes the profile inactive.
    await service.save('night', slotOf('demo-owl', 'priority = 5\n'));
    await isDefault(page, 'owls · 1 slot differs');
  }, 60_000);

  test('shows the error of a profile, and deletes it without touching a slot', async () => {
    await write('broken/primary.toml', 'provider = "gguf"\n[model]\ndefault = 5\n');
    const page = await open();
    await bar(page).getByLabel('Profile').selectOption('broken');
    await bar(page).getByText('primary.toml:3').waitFor();
    expect(await chosen(page).textContent()).toBe('broken · invalid');
    await bar(page).getByRole('button', { name: 'Switch…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Switch to profile "broken"' });
    expect(await dialog.getByRole('alert').textContent()).toContain('primary.toml:3:1: model.default: Write a string in quotes, not 5');
    expect(await dialog.getByRole('button', { name: 'Apply' }).isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    await bar(page).getByRole('button', { name: 'Delete…' }).click();
    await page.getByRole('dialog', { name: 'Delete profile "broken"' }).getByRole('button', { name: 'Delete' }).click();
    await bar(page).locator('option', { hasText: 'broken' }).waitFor({ state: 'detached' });
    expect(await service.slot('primary')).toMatchObject({ status: { model: 'demo-owl' } });
  }, 60_000);

  test.each(LOOKS)(
    'has no accessibility violations and no overflow: $theme, $width px',
    async (look) => {
      const page = await open(look);
      await bar(page).waitFor();
      await page.locator('.card').first().waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);
      await picture(page, `profiles-${look.theme}-${look.width}`);
      await bar(page).getByLabel('Profile').selectOption('foxes');
      await bar(page).getByRole('button', { name: 'Switch…' }).click();
      await page.locator('.results li').first().waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
      await picture(page, `profile-switch-${look.theme}-${look.width}`);
    },
    60_000,
  );
});
