/** One number is the same on each page, on the card and in "svcctl", and a model that can never fit is not said to wait. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { svcctl } from '../cli/run-svcctl.ts';
import { formatSize } from '../../src/schema/words/quantities.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';
import { picture, setUpBrowser } from './visit.ts';

const ALARM = /can never fit: it needs 900 GiB, and the whole budget is 8\.0 GiB/;

describeWithBrowser('numbers of the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', environment: { SVC_MEMORY_BUDGET: '8Gi' } });
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n[resources]\nmemory = "700Mi"\n');
    await service.save('huge', 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n[resources]\nmemory = "900Gi"\n');
    await service.until('primary', 'answering', isAnswering);
    await service.until('huge', 'refused', (slot) => slot?.status.conditions.some(({ message }) => ALARM.test(message)) === true);
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
  });

  const open = (hash: string) => visit(`${service.url}/${hash}`);

  test('the memory of a slot is what the service answers, on card, table, hardware page, explanation and in svcctl', async () => {
    const { status }: { readonly status: { readonly memory_bytes: number } } = JSON.parse(
      await (await fetch(`${service.url}/api/slots/primary`)).text(),
    );
    const memory = formatSize(status.memory_bytes);
    expect(memory).toBe('700 MiB');
    const listed = await svcctl(['get', 'slots', '-o', 'wide', '--server', service.url]);
    expect(listed.out.split('\n').find((line) => line.startsWith('primary '))).toContain(` ${memory} `);
    const page = await open('#/slots');
    await page.locator('[data-slot=primary]').getByText(memory).first().waitFor();
    await page.evaluate("location.hash = '#/slots?view=table'");
    expect(await page.getByRole('row', { name: 'primary' }).textContent()).toContain(memory);
    await page.evaluate("location.hash = '#/hardware'");
    await page
      .getByRole('listitem')
      .filter({ hasText: `primary ${memory}` })
      .first()
      .waitFor();
    expect(await page.locator('main').textContent()).not.toMatch(/wait/i);
  }, 60_000);

  test('a slot that can never fit says so on its card, in its explanation and in svcctl, and nowhere that it waits', async () => {
    const explained = await svcctl(['explain', 'huge', '--server', service.url]);
    expect(explained.out).toMatch(ALARM);
    const page = await open('#/slots');
    const card = page.locator('[data-slot=huge]');
    await card.getByText(ALARM).first().waitFor();
    expect(await card.textContent()).not.toMatch(/wait/i);
    await picture(page, 'never-fits');
    await page.evaluate("location.hash = '#/slots/huge/explain'");
    const drawer = page.getByRole('dialog');
    await drawer.getByText(ALARM).first().waitFor();
    expect(await drawer.textContent()).not.toMatch(/wait/i);
  }, 60_000);
});
