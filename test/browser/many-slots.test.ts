/** The dashboard with many slots that change constantly. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { countCalls } from './count-calls.ts';
import { accessibilityFaults, picture, setUpBrowser } from './visit.ts';

const SLOTS = 200;
const EVENTS = 2000;
/**
 * Strings that identify two functions of the built page: the one that creates a card element, and the one that draws a
 * card.
 */
const CREATES = 'isFirst:';
const DRAWS = '"data-slot":';

describeWithBrowser('the dashboard with two hundred slots', () => {
  const visit = setUpBrowser();
  let world: World;

  beforeAll(async () => {
    world = await startWorld({ dashboard: 'dashboard/dist' });
    for (let index = 0; index < SLOTS; index += 1) {
      world.save(
        SlotName.parse(`slot-${String(index).padStart(3, '0')}`),
        `provider = "gguf"\nbackend = "cpu"\nenabled = ${index % 3 !== 0}\n[model]\ndefault = "demo-fox"\n`,
      );
    }
    await world.idle();
  }, 120_000);
  afterAll(async () => {
    await world.close();
  });

  test('draws each card once while it opens', async () => {
    let calls = async (): Promise<readonly number[]> => [];
    const page = await visit(world.url, { prepare: async (opened) => (calls = await countCalls(opened, [CREATES, DRAWS])) });
    await page.locator('[data-slot=slot-199]').waitFor({ state: 'attached' });
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator('.first-run').waitFor();
    // The first cards are drawn before the others. Some at the edge of the viewport are drawn twice, as their
    // visibility changes.
    const counts = await calls();
    expect(counts).toHaveLength(2);
    for (const count of counts) {
      expect(count).toBeGreaterThanOrEqual(SLOTS);
      expect(count).toBeLessThan(1.2 * SLOTS);
    }
  }, 120_000);

  test('shows a table that is sorted, searched and kept by its address', async () => {
    const page = await visit(world.url);
    await page.getByRole('button', { name: 'Table' }).click();
    const names = page.locator('.slot-table tbody th');
    await names.getByText('slot-000', { exact: true }).waitFor();
    expect(await names.count()).toBe(SLOTS);
    await page.getByRole('columnheader', { name: 'Slot' }).getByRole('link').click();
    await eventually('the last one is first', async () => (await names.first().textContent()) === 'slot-199');
    expect(await page.locator('[aria-sort=descending]').textContent()).toBe('Slot');
    await page.getByLabel('Search slots').pressSequentially('slot-19');
    await eventually('those of the search are left', async () => (await names.count()) === 10);
    await picture(page, 'slot-table');
    await page.reload();
    await names.first().waitFor();
    expect(await names.allTextContents()).toEqual(Array.from({ length: 10 }, (_, index) => `slot-${199 - index}`));
    await names.getByText('slot-195').click();
    await page.getByRole('dialog', { name: 'slot-195' }).waitFor();
    await page.keyboard.press('Escape');
    await page.waitForURL(/#\/slots\?view=table&sort=-name&search=slot-19$/);
    expect(await names.count()).toBe(10);
  }, 60_000);

  test('groups the table and chooses its columns, which the address keeps', async () => {
    const page = await visit(world.url, { width: 1360 });
    await page.evaluate(`location.hash = '#/slots?view=table&search=slot-00'`);
    const groups = page.locator('.slot-table th[scope=rowgroup]');
    await page.getByLabel('Group by').selectOption({ label: 'State' });
    await eventually('two groups', async () => (await groups.allTextContents()).join() === 'offline (4),ready (6)');
    await page.getByText('Columns', { exact: true }).click();
    for (const column of ['Backend', 'Restarts']) await page.getByRole('checkbox', { name: column }).uncheck();
    await page.getByRole('checkbox', { name: 'Provider' }).check();
    expect(await page.getByRole('checkbox', { name: 'Node' }).count()).toBe(0);
    const titles = page.locator('.slot-table thead th');
    const chosen = ['Slot', 'State', 'Alarm', 'Model', 'Provider', 'Memory', 'In flight', 'Pending', 'Tokens/s'];
    await eventually('the columns are chosen', async () => (await titles.allTextContents()).join() === chosen.join());
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'table-groups-1360');
    await page.reload();
    await groups.nth(1).waitFor();
    expect(await titles.allTextContents()).toEqual(chosen);
    expect(page.url()).toContain('group=state&columns=name%2Cstate');
    await page.setViewportSize({ width: 390, height: 740 });
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
    await picture(page, 'table-groups-dark-390');
  }, 60_000);

  test('finds pages, slots and actions by the keyboard alone', async () => {
    const page = await visit(world.url);
    await page.locator('[data-slot=slot-199]').waitFor({ state: 'attached' });
    const typed = page.getByRole('combobox', { name: 'Find a page' });
    const options = page.getByRole('option');
    const find = async (text: string): Promise<void> => {
      await page.keyboard.press('Control+k');
      await typed.waitFor();
      expect(await page.evaluate('document.activeElement.role')).toBe('combobox');
      await page.keyboard.type(text);
    };
    await page.getByRole('button', { name: 'Find Ctrl K' }).click();
    await typed.waitFor();
    await page.keyboard.press('Escape');
    await typed.waitFor({ state: 'detached' });
    await find('007');
    expect(await options.allTextContents()).toEqual(['slot-007 slot', 'Unload slot-007 action', 'Restart slot-007 action']);
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'palette');
    for (const [width, colorScheme] of [
      [390, 'dark'],
      [1920, 'light'],
    ] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
      await picture(page, `palette-${colorScheme}-${width}`);
    }
    await page.keyboard.press('ArrowDown');
    expect(await page.locator('[aria-selected=true]').textContent()).toBe('Unload slot-007 action');
    expect(await typed.getAttribute('aria-activedescendant')).toBe(await page.locator('[aria-selected=true]').getAttribute('id'));
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Unload slot "slot-007"' }).waitFor();
    await page.keyboard.press('Escape');
    await find('slot 100');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'slot-100' }).waitFor();
    await find('theme dark');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
    await find('new slot');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'New slot' }).getByLabel('Purpose').waitFor();
    await page.keyboard.press('Escape');
    await find('nothing like this');
    await page.getByText('Nothing matches').waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('hardw');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Hardware' }).waitFor();
  }, 60_000);

  test('shows all cards, filters them, and redraws only the card of an event', async () => {
    const page = await visit(world.url);
    await page.locator('[data-slot=slot-199]').waitFor({ state: 'attached' });
    expect(await page.locator('.card').count()).toBe(SLOTS);
    await picture(page, 'two-hundred-slots');
    await page.evaluate(`(() => {
      window.drawn = new Set();
      new MutationObserver((records) => records.forEach(({ target }) => {
        const card = (target.nodeType === 1 ? target : target.parentElement).closest('.card');
        if (card?.querySelector('.last')?.contains(target)) window.drawn.add(card.dataset.slot);
      })).observe(document.querySelector('.grid'), { characterData: true, childList: true, subtree: true });
    })()`);
    world.feed.add({ at: Date.now(), slot: SlotName.parse('slot-007'), kind: 'action', message: 'Something happened here', cause: 'test' });
    await page.getByText('Something happened here').waitFor();
    expect(await page.evaluate('[...window.drawn]')).toEqual(['slot-007']);
    for (let index = 0; index < EVENTS; index += 1) {
      const slot = SlotName.parse(`slot-${String(index % SLOTS).padStart(3, '0')}`);
      world.feed.add({ at: Date.now(), slot, kind: 'action', message: `Event ${index}`, cause: 'test' });
    }
    // Off-screen cards are not drawn until they are scrolled into view.
    await page.locator('[data-slot=slot-199]').scrollIntoViewIfNeeded();
    await page.getByText(`Event ${EVENTS - 1}`, { exact: true }).waitFor();
    await page.getByRole('searchbox').fill('slot-042 demo');
    await page.locator('[data-slot=slot-000]').waitFor({ state: 'detached' });
    expect(await page.locator('.card').count()).toBe(1);
  }, 120_000);
});
