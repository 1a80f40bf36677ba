/** The views of the dashboard that are photographed: the address of each, and what is done there first. */
import type { Page } from 'playwright-core';

export interface View {
  readonly name: string;
  readonly hash: string;
  /** Brings the page into the state that is shown. */
  readonly prepare?: (page: Page) => Promise<unknown>;
  /** Whole pages, unless something covers the window. */
  readonly isWindow?: true;
  readonly cleanUp?: (page: Page) => Promise<unknown>;
}

const drawer = (slot: string, tab: string): View => ({ name: `slot-${slot}-${tab}`, hash: `slots/${slot}/${tab}`, isWindow: true });
const closeDialog = (page: Page): Promise<unknown> => page.keyboard.press('Escape');
const planIsShown = (page: Page): Promise<unknown> => page.getByRole('dialog').locator('.plan li').first().waitFor();

async function chat(page: Page): Promise<void> {
  if ((await page.locator('.message.assistant').count()) > 0) return;
  await page.locator('.slot-bar select').selectOption('primary');
  await page.getByLabel('Message').fill('Who are you?');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('.message.assistant').waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
}

async function openPlan(page: Page): Promise<void> {
  const card = page.locator('[data-slot=agent]');
  await card.scrollIntoViewIfNeeded();
  await card.getByRole('button', { name: 'Load', exact: true }).click();
  await planIsShown(page);
}

async function openNewSlot(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'New slot…' }).click();
  await page.getByRole('dialog').waitFor();
}

async function searchHub(page: Page): Promise<void> {
  await page.getByLabel('Search models').fill('owl');
  await page.getByRole('button', { name: 'Search the Hub for "owl"' }).click();
  await page.locator('.model-row', { hasText: 'downloads' }).first().waitFor();
}

export const VIEWS: readonly View[] = [
  { name: 'slots', hash: 'slots' },
  { name: 'table', hash: 'slots?view=table' },
  { name: 'plan', hash: 'slots', prepare: openPlan, cleanUp: closeDialog, isWindow: true },
  { name: 'new-slot', hash: 'slots', prepare: openNewSlot, cleanUp: closeDialog, isWindow: true },
  ...['explain', 'timeline', 'logs', 'history', 'edit'].map((tab) => drawer('primary', tab)),
  drawer('vision', 'explain'),
  drawer('coder', 'timeline'),
  { name: 'models', hash: 'models' },
  { name: 'hub', hash: 'models', prepare: searchHub, cleanUp: (page) => page.getByLabel('Search models').fill('') },
  { name: 'chat', hash: 'playground', prepare: chat },
  ...['compare', 'images', 'speak', 'similarity'].map((part) => ({ name: `playground-${part}`, hash: `playground/${part}` })),
  { name: 'activity', hash: 'activity', isWindow: true },
  ...['requests', 'usage', 'changes', 'logs'].map((part) => ({ name: part, hash: `activity/${part}`, isWindow: true as const })),
  { name: 'hardware', hash: 'hardware' },
  { name: 'settings', hash: 'settings' },
];
