/** Slots and models in the dashboard of a real service: a new slot from its purpose to an answer, and what is deleted again. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { chatText, isAnswering, startService, type Service } from '../support/service.ts';
import { accessibilityFaults, LOOKS, picture, setUpBrowser, type VisitOptions } from './visit.ts';

describeWithBrowser('new slots in the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
    await service.save('primary', 'enabled = false\nprovider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    await service.until('primary', 'known', (slot) => slot !== undefined);
  }, 120_000);
  afterAll(() => service.dispose());

  const open = async (place = 'slots', options?: VisitOptions): Promise<Page> => await visit(`${service.url}/#/${place}`, options);
  const openDialog = async (options?: VisitOptions) => {
    const page = await open('slots', options);
    await page.getByRole('button', { name: 'New slot…' }).click();
    return { page, dialog: page.getByRole('dialog', { name: 'New slot', exact: true }) };
  };

  test('a second slot is declared planned, and answers', async () => {
    const { page, dialog } = await openDialog();
    expect(await dialog.getByLabel(/^Name/u).inputValue()).toBe('chat');
    await dialog.getByLabel(/^Model/u).fill('demo-owl');
    await dialog.getByLabel(/^Name/u).fill('second');
    await dialog.getByRole('button', { name: 'Show plan' }).click();
    const plan = page.getByRole('dialog', { name: 'New slot "second"' });
    await plan.getByRole('button', { name: 'Apply' }).click();
    await page.locator('[data-slot=second]').waitFor();
    await service.until('second', 'ready', isAnswering);
    expect(await chatText(await service.chat({ model: 'second', max_tokens: 24 }))).toContain('owl');
  }, 120_000);

  test('a name that is taken and one that is wrong are said before anything is applied', async () => {
    const { page, dialog } = await openDialog();
    await dialog.getByLabel(/^Model/u).fill('demo-owl');
    await dialog.getByLabel(/^Name/u).fill('primary');
    expect(await dialog.getByRole('alert').textContent()).toContain('exists already');
    expect(await dialog.getByRole('button', { name: 'Show plan' }).isDisabled()).toBe(true);
    await dialog.getByLabel(/^Name/u).fill('Not Valid');
    await dialog.getByRole('button', { name: 'Show plan' }).click();
    const plan = page.getByRole('dialog', { name: 'New slot "Not Valid"' });
    await plan.getByRole('alert').waitFor();
    expect(await plan.getByRole('button', { name: 'Apply' }).isDisabled()).toBe(true);
  }, 60_000);

  test('a model that nothing provides cannot be applied', async () => {
    const { page, dialog } = await openDialog();
    await dialog.getByLabel(/^Model/u).fill('nobody-has-this');
    await dialog.getByRole('button', { name: 'Show plan' }).click();
    const plan = page.getByRole('dialog', { name: 'New slot "chat"' });
    await plan.getByText('nobody-has-this').first().waitFor();
    expect(await plan.getByRole('button', { name: 'Apply' }).isDisabled()).toBe(true);
  }, 60_000);

  test('a slot is deleted after a question, and its card goes', async () => {
    const page = await open('slots/second/edit');
    await page.getByRole('button', { name: 'Delete slot…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete slot "second"' });
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'slot-delete');
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.locator('[data-slot=second]').waitFor({ state: 'detached' });
    expect(await service.slot('second')).toBeUndefined();
  }, 60_000);

  test('a model that is in use stays, and the page says why; another one is deleted', async () => {
    const page = await open('models');
    const remove = async (model: string) => {
      await page
        .getByRole('group', { name: `Actions: ${model}` })
        .getByRole('button', { name: 'Delete…' })
        .click();
      const dialog = page.getByRole('dialog', { name: `Delete model "${model}"` });
      await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
      return dialog;
    };
    const refused = await remove('demo-fox');
    expect(await refused.getByRole('alert').textContent()).toContain('is used by the slot "primary"');
    await refused.getByRole('button', { name: 'Cancel' }).click();
    const done = await remove('demo-owl');
    await done.waitFor({ state: 'detached' });
  }, 60_000);

  test.each(LOOKS)(
    'the dialog is accessible: %j',
    async (look) => {
      const { page } = await openDialog(look);
      expect(await accessibilityFaults(page)).toEqual([]);
      await picture(page, `slot-new-${look.theme}-${look.width}`);
    },
    60_000,
  );
});
