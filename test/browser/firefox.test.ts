/** The main paths of the dashboard in Firefox, with Puppeteer: Playwright needs its own build of Firefox. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { launch, type Browser, type Page } from 'puppeteer-core';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithFirefox, FIREFOX } from '../support/require/require-firefox.ts';
import { buildDashboard } from './dashboard.ts';

const PRIMARY = SlotName.parse('primary');
const WATCH_POLICY = `addEventListener('securitypolicyviolation', (event) => (window.violations ??= []).push(event.violatedDirective + ' ' + event.blockedURI));`;

describeWithFirefox('the dashboard in Firefox', () => {
  let world: World;
  let browser: Browser;
  let page: Page;
  const faults: string[] = [];

  beforeAll(async () => {
    buildDashboard();
    world = await startWorld({ dashboard: 'dashboard/dist' });
    browser = await launch({ browser: 'firefox', executablePath: FIREFOX });
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    await world.close();
  });
  beforeEach(async () => {
    world.save(PRIMARY, 'enabled = false\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    world.logs.set(PRIMARY, ['server listens', 'model loaded']);
    await world.idle();
    faults.length = 0;
    page = await browser.newPage();
    page.setDefaultTimeout(30_000);
    page.on('pageerror', (error) => void faults.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    await page.evaluateOnNewDocument(WATCH_POLICY);
  });
  afterEach(async () => {
    expect(await page.evaluate('window.violations ?? []')).toEqual([]);
    expect(faults).toEqual([]);
    await page.close();
  });

  const open = async (hash: string): Promise<void> => void (await page.goto(`${world.url}/${hash}`));
  const read = async (selector: string): Promise<string> =>
    String(await page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ''`));

  const editorText = async (): Promise<string> =>
    String(await page.evaluate(`document.querySelector('.toml')?.shadowRoot?.querySelector('.cm-content')?.textContent ?? ''`));

  test('shows the plan of a load, loads the slot, and shows live events', async () => {
    await open('');
    await page.locator('[data-slot=primary] .buttons .main').click();
    await page.locator('dialog .plan li').wait();
    await page.locator('dialog footer .main').click();
    await eventually(
      'the card says that the slot is ready',
      async () => (await read('[data-slot=primary] .badge strong')) === 'ready',
      30_000,
    );
    world.feed.add({ at: Date.now(), slot: PRIMARY, kind: 'action', message: 'Something happened', cause: 'test' });
    await eventually('the card shows the event', async () => (await read('[data-slot=primary] .last')) === 'Something happened', 30_000);
  }, 120_000);

  test('shows the log and the text of a slot', async () => {
    await open('#/slots/primary/logs');
    await eventually('the log is shown', async () => (await read('.log')).includes('model loaded'), 30_000);
    await page.locator('dialog .tabs a[href$="/edit"]').click();
    // The editor is in a shadow root. Text typed there must reach the plan.
    await page.locator('.toml >>> .cm-content').click();
    // The key must precede the first table, wherever the click has put the cursor.
    await page.keyboard.down('Control');
    await page.keyboard.press('Home');
    await page.keyboard.up('Control');
    await page.keyboard.type('priority = 7\n');
    await page.locator('dialog .plan').wait();
    await eventually('the editor has the text', async () => (await editorText()).includes('demo-fox'), 30_000);
    expect(await editorText()).toContain('priority = 7');
  }, 120_000);

  test('creates a token that is shown once, and revokes it', async () => {
    await open('#/settings');
    await page.locator('main button.main').click();
    await page.locator('dialog input[autocomplete=off]').fill('laptop');
    await page.locator('dialog button[type=submit]').click();
    await page.locator('dialog input.secret').wait();
    expect(await page.evaluate(`document.querySelector('dialog input.secret').value`)).toMatch(/^svc_/);
    await page.locator('dialog footer .main').click();
    await page.locator('button[aria-label="Revoke laptop"]').click();
    await page.locator('dialog button.danger').click();
    await eventually('the token is gone', async () => (await read('main')).includes('No tokens yet'), 30_000);
  }, 120_000);
});
