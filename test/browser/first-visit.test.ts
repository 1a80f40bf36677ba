/**
 * What somebody does who opens the page for the first time: from no slot to a chat with a model found by search, a second
 * slot, a compared answer, a token with a limit, and a rollout that is undone. Clicks are counted.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Locator } from 'playwright-core';
import { DEMO_SENTENCES, encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile } from '../support/hub/virtual-file.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';
import { picture, setUpBrowser } from './visit.ts';

const MOST_CLICKS = 25;
const owl = bufferFile(Buffer.from(encodeDemoModel('demo-owl')));
const REPO = { commit: 'c'.repeat(40), license: 'mit', task: 'text-generation', files: new Map([['owl-Q4_K_M.gguf', owl]]) };
const FOUND = 'hf:o/owl:Q4_K_M';

describeWithBrowser('a first visit', () => {
  const visit = setUpBrowser();
  let hub: FakeHub;
  let service: Service;
  beforeAll(async () => {
    hub = await startFakeHub({ repos: [{ ...REPO, name: 'o/owl', downloads: 7 }] });
    service = await startService({ runtime: 'process', environment: { HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent' } });
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    await hub.close();
  });

  test('needs no documentation and few clicks', async () => {
    const page = await visit(`${service.url}/`);
    const done: string[] = [];
    const click = async (target: Locator, what: string): Promise<void> => {
      await target.click();
      done.push(what);
    };
    const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
    const link = (name: string) => page.getByRole('link', { name, exact: true });
    const dialog = page.getByRole('dialog');
    const apply = async (): Promise<void> => {
      await dialog.locator('.plan li').first().waitFor();
      await click(dialog.getByRole('button', { name: 'Apply' }), 'Apply');
      await page.waitForURL(/#\/slots\/[^/]+\/timeline$/);
    };

    await click(link('Models'), 'Models');
    await page.getByLabel('Search models').fill('owl');
    await click(button('Search the Hub for "owl"'), 'Search the Hub');
    const row = page.locator('.model-row').filter({ has: page.getByRole('heading', { name: FOUND }) });
    await click(row.getByRole('button', { name: 'New slot…' }), 'New slot');
    await apply();
    await service.until('primary', 'answering', isAnswering, 60_000);

    await click(dialog.getByRole('button', { name: 'Close' }), 'Close');
    await click(link('Playground'), 'Playground');
    await page.getByLabel('Message').fill('Who are you?');
    await page.getByLabel('Message').press('Enter');
    await page.locator('.message.assistant', { hasText: DEMO_SENTENCES['demo-owl'] }).waitFor();

    await click(link('Models'), 'Models');
    const fox = page.locator('.model-row').filter({ has: page.getByRole('heading', { name: 'demo-fox', exact: true }) });
    await click(fox.getByRole('button', { name: 'New slot…' }), 'New slot');
    await apply();
    await service.until('chat', 'answering', isAnswering, 60_000);
    await click(dialog.getByRole('button', { name: 'Close' }), 'Close');
    await click(link('Playground'), 'Playground');
    await click(link('Side by side'), 'Side by side');
    await page.getByLabel('Message').fill('Who are you?');
    await click(button('Ask all'), 'Ask all');
    const better = page.getByRole('region', { name: 'chat', exact: true });
    await better.getByText(DEMO_SENTENCES['demo-fox']).waitFor();
    await click(better.getByRole('button', { name: 'This answer is better' }), 'This answer is better');

    await click(link('Settings'), 'Settings');
    await click(button('Create token'), 'Create token');
    await dialog.getByLabel('Label').fill('laptop');
    await click(dialog.getByText('Limits', { exact: false }).first(), 'Limits');
    await dialog.getByLabel('Requests per minute').fill('60');
    await click(dialog.getByRole('button', { name: 'Create token' }), 'Create token');
    await click(button('Done'), 'Done');

    await click(link('Models'), 'Models');
    await click(fox.getByRole('button', { name: 'Load into', exact: true }), 'Load into');
    await apply();
    await service.until('primary', 'changed', (slot) => isAnswering(slot) && slot?.status.model === 'demo-fox', 60_000);
    await click(dialog.getByRole('link', { name: 'History' }), 'History');
    await click(dialog.getByRole('button', { name: 'Undo to 1' }), 'Undo');
    await dialog.locator('.plan').waitFor();
    await click(dialog.getByRole('button', { name: 'Apply' }), 'Apply');
    await service.until('primary', 'undone', (slot) => isAnswering(slot) && slot?.status.model === FOUND, 60_000);
    await picture(page, 'first-visit-end');
    process.stdout.write(`Clicks of a first visit: ${done.length}\n`);
    expect(done.length).toBeLessThanOrEqual(MOST_CLICKS);
  }, 240_000);
});
