/** From a name to a chat: a search of a Hub on this machine, in the dashboard of a real service. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES, encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile } from '../support/hub/virtual-file.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { chatText, isAnswering, startService, type Service } from '../support/service.ts';
import { accessibilityFaults, LOOKS, picture, setUpBrowser } from './visit.ts';

const owl = bufferFile(Buffer.from(encodeDemoModel('demo-owl')));
const REPO = { commit: 'c'.repeat(40), license: 'mit', task: 'text-generation' };
const FILES = new Map(['Q4_K_M', 'Q8_0'].map((name) => [`owl-${name}.gguf`, owl]));

describeWithBrowser('a search of the Hub in the dashboard', () => {
  const visit = setUpBrowser();
  let hub: FakeHub;
  let service: Service;
  beforeAll(async () => {
    const many = Array.from({ length: 12 }, (_, index) => ({ ...REPO, name: `o/owl-${index}`, downloads: index, files: FILES }));
    const large = { ...REPO, name: 'o/owl-large', downloads: 9000, license: 'llama3.2', gated: 'manual' as const, files: FILES };
    hub = await startFakeHub({ repos: [...many, large, { ...REPO, name: 'o/embeds', task: 'feature-extraction', files: FILES }] });
    service = await startService({ runtime: 'process', environment: { HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent' } });
    await service.save('primary', 'enabled = false\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n');
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    await hub.close();
  });

  test('finds a model, names its quantisations, and loads one of them into a slot', async () => {
    const page = await visit(`${service.url}/#/models`);
    await page.getByLabel('Search models').fill('owl');
    expect(hub.log).toEqual([]);
    await page.getByRole('button', { name: 'Search the Hub for "owl"' }).click();
    const rows = page.locator('.model-row').filter({ hasText: 'downloads' });
    await rows.first().getByRole('link', { name: 'o/owl-large' }).waitFor();
    for (const tag of ['9,000 downloads', 'gated', 'Licence: llama3.2']) await rows.first().getByText(tag).waitFor();
    expect(await rows.count()).toBe(10);
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'hub-search');
    await page.getByRole('button', { name: 'More results' }).click();
    await rows.nth(12).waitFor();
    const row = rows.filter({ hasText: 'o/owl-7' });
    await row.getByLabel('Quantisation').selectOption('hf:o/owl-7:Q8_0');
    await row.getByRole('heading', { name: 'hf:o/owl-7:Q8_0' }).waitFor();
    await row.getByRole('button', { name: 'Load into primary' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.locator('.plan li').first().waitFor();
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await service.until('primary', 'ready', (slot) => isAnswering(slot) && slot?.status.model === 'hf:o/owl-7:Q8_0');
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-owl']);
  }, 90_000);

  test('takes the address of a model, and that of a file with its hash', async () => {
    const page = await visit(`${service.url}/#/models`);
    await page.getByLabel('Search models').fill('https://huggingface.co/o/owl-3/blob/main/owl-Q8_0.gguf');
    const row = page.locator('.model-row').filter({ has: page.getByRole('heading', { name: 'hf:o/owl-3/owl-Q8_0.gguf' }) });
    await row.getByRole('button', { name: 'Load into primary' }).waitFor();
    await page.getByLabel('Search models').fill(`${hub.url}/o/owl-4/resolve/main/owl-Q4_K_M.gguf`);
    await page.getByRole('heading', { name: 'From this address' }).waitFor();
    const name = page.getByLabel('Name in the model store');
    expect(await name.inputValue()).toBe('owl-Q4_K_M.gguf');
    await name.fill('own/owl.gguf');
    await page.getByLabel('SHA-256').fill('0'.repeat(64));
    await page.getByRole('button', { name: 'Download', exact: true }).first().click();
    await page.getByText('Downloading "own/owl.gguf"').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    const failed = async () => await (await fetch(`${service.url}/api/pulls`)).text();
    await eventually('the file with another hash is refused', async () => /"failed":true/.test(await failed()), 30_000);
    expect(await failed()).toMatch(/hash|SHA-256/i);
  }, 90_000);

  test('"Change model" of a slot offers what it can serve only', async () => {
    const page = await visit(`${service.url}/#/models/primary`);
    await page.getByLabel('Search models').fill('o/');
    await page.getByRole('button', { name: 'Search the Hub for "o/"' }).click();
    await page.getByRole('link', { name: 'o/owl-large' }).waitFor();
    expect(await page.getByRole('link', { name: 'o/embeds' }).count()).toBe(0);
  }, 60_000);

  test('says what is wrong if the Hub refuses, and that nothing was found', async () => {
    const page = await visit(`${service.url}/#/models`);
    await page.getByLabel('Search models').fill('nothing');
    await page.getByRole('button', { name: /^Search the Hub/ }).click();
    await page.getByRole('status').filter({ hasText: 'No models match' }).waitFor();
    hub.fault = () => ({ status: 401 });
    await page.getByLabel('Search models').fill('limited');
    await page.getByRole('button', { name: /^Search the Hub/ }).click();
    await page.getByRole('alert').filter({ hasText: 'requires a token for searches' }).waitFor();
  }, 60_000);

  test.each(LOOKS)(
    'is legible in %o',
    async (look) => {
      hub.fault = () => undefined;
      const page = await visit(`${service.url}/#/models`, look);
      await page.getByLabel('Search models').fill('owl');
      await page.getByRole('button', { name: /^Search the Hub/ }).click();
      await page.getByRole('link', { name: 'o/owl-large' }).waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      await picture(page, `hub-search-${look.theme}-${look.width}`);
    },
    60_000,
  );
});
