/** Work in the chat: settings, presets, edited and repeated questions, export; and two models side by side. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';
import { accessibilityFaults, LOOKS, picture, setUpBrowser } from './visit.ts';

const SLOT = (model: string) => `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${model}"\n`;

interface AskedBody {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

describeWithBrowser('the chat of the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
    await service.save('primary', SLOT('demo-owl'));
    await service.save('second', SLOT('demo-fox'));
    await service.until('primary', 'answering', isAnswering);
    await service.until('second', 'answering', isAnswering);
  }, 180_000);
  afterAll(async () => {
    await service.dispose();
  });

  test('asks with a system prompt and sampling, edits and repeats questions, and exports what was said', async () => {
    const page = await visit(`${service.url}/#/playground`);
    const asked: AskedBody[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/chat/completions')) asked.push(JSON.parse(request.postData() ?? ''));
    });
    const answers = page.locator('.message.assistant');
    const answered = async (count: number): Promise<void> => {
      await answers
        .nth(count - 1)
        .getByRole('button', { name: 'Regenerate' })
        .waitFor();
      expect(await answers.count()).toBe(count);
    };
    await page.getByText('System prompt and sampling').click();
    await page.getByLabel('System prompt', { exact: true }).fill('You are an owl');
    await page.getByLabel('Temperature').fill('0.5');
    await page.getByLabel('Max. tokens').fill('40');
    await page.getByLabel('Save as preset').fill('Owl');
    await page.getByRole('button', { name: 'Save preset' }).click();
    await page.getByLabel('Message').fill('First question');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await answered(1);
    expect(asked[0]).toMatchObject({
      temperature: 0.5,
      max_tokens: 40,
      messages: [{ role: 'system', content: 'You are an owl' }, { role: 'user' }],
    });

    await page.getByLabel('Message').fill('Second question');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await answered(2);
    await answers.nth(1).getByRole('button', { name: 'Regenerate' }).click();
    await eventually('the question is asked again', () => asked.length === 3);
    await answered(2);
    expect(asked[2]).toEqual(asked[1]);
    await answers.nth(1).getByRole('status', { name: 'Version 2 of 2' }).waitFor();
    await answers.nth(1).getByRole('button', { name: 'Previous version' }).click();
    await answers.nth(1).getByRole('status', { name: 'Version 1 of 2' }).waitFor();
    expect(await answers.nth(1).getByRole('button', { name: 'Previous version' }).isDisabled()).toBe(true);

    const first = page.locator('.message.user').first();
    await first.getByRole('button', { name: 'Edit' }).click();
    await first.getByRole('textbox', { name: 'Edit' }).fill('Another question');
    await picture(page, 'chat-edit');
    expect(await accessibilityFaults(page)).toEqual([]);
    await first.getByRole('button', { name: 'Send again' }).click();
    await answered(1);
    const sent = (): unknown => asked.at(-1)?.messages.flatMap(({ role, content }) => (role === 'assistant' ? [] : [content]));
    expect(sent()).toEqual(['You are an owl', 'Another question']);

    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export' }).click()]);
    const text = await readFile(await file.path(), 'utf8');
    expect(text).toBe(`## System\n\nYou are an owl\n\n## User\n\nAnother question\n\n## Assistant\n\n${DEMO_SENTENCES['demo-owl']}\n`);

    await page.reload();
    await first.getByRole('status', { name: 'Version 2 of 2' }).waitFor();
    await picture(page, 'chat-versions');
    expect(await accessibilityFaults(page)).toEqual([]);
    await first.getByRole('button', { name: 'Previous version' }).click();
    await answers.nth(1).getByRole('status', { name: 'Version 1 of 2' }).waitFor();
    await page.reload();
    await page.getByText('Second question', { exact: true }).waitFor();
    await page.getByLabel('Message').fill('Third question');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await answered(3);
    expect(sent()).toEqual(['You are an owl', 'First question', 'Second question', 'Third question']);
    await first.getByRole('button', { name: 'Next version' }).click();
    await page.getByText('Third question', { exact: true }).waitFor({ state: 'detached' });
    expect(await answers.count()).toBe(1);

    await page.getByText('System prompt and sampling').click();
    expect(await page.getByLabel('Temperature').inputValue()).toBe('0.5');
    await page.getByRole('combobox', { name: /^Preset/ }).selectOption('Owl');
    await page.getByRole('combobox', { name: /^Preset/ }).selectOption('');
    expect(await page.getByLabel('System prompt', { exact: true }).inputValue()).toBe('');
  }, 120_000);

  test('asks two models side by side, and counts which one was better', async () => {
    const page = await visit(`${service.url}/#/playground/compare`);
    await page.getByLabel('Message').fill('Who are you?');
    await page.getByRole('button', { name: 'Ask all' }).click();
    const [owl, fox] = [page.getByRole('region', { name: 'primary' }), page.getByRole('region', { name: 'second' })];
    await owl.getByText(DEMO_SENTENCES['demo-owl']).waitFor();
    await fox.getByText(DEMO_SENTENCES['demo-fox']).waitFor();
    await fox.getByRole('button', { name: 'This answer is better' }).click();
    await fox.getByText('You chose this answer').waitFor();
    expect(await page.getByRole('button', { name: 'This answer is better' }).count()).toBe(0);
    expect(await page.getByRole('row', { name: 'demo-fox' }).textContent()).toBe('demo-fox11');
    expect(await page.getByRole('row', { name: 'demo-owl' }).textContent()).toBe('demo-owl01');
    expect(await accessibilityFaults(page)).toEqual([]);
    // The same answers to another question are judged anew.
    await page.getByRole('button', { name: 'Ask all' }).click();
    await fox.getByRole('button', { name: 'This answer is better' }).click();
    expect(await page.getByRole('row', { name: 'demo-fox' }).textContent()).toBe('demo-fox22');
    await page.getByRole('checkbox', { name: /^second/ }).uncheck();
    expect(await page.getByRole('button', { name: 'Ask all' }).isDisabled()).toBe(true);
  }, 90_000);

  test.each(LOOKS)(
    'is legible side by side in %o',
    async (look) => {
      const page = await visit(`${service.url}/#/playground/compare`, look);
      await page.getByLabel('Message').fill('Who are you?');
      await page.getByRole('button', { name: 'Ask all' }).click();
      await page.getByRole('region', { name: 'second' }).getByRole('button', { name: 'This answer is better' }).waitFor();
      await picture(page, `compare-${look.theme}-${look.width}`);
      expect(await accessibilityFaults(page)).toEqual([]);
    },
    60_000,
  );
});
