/** What a user must not be misled about: plans that fail, slots that cannot serve a model, broken files, and why a model is rejected. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';
import { accessibilityFaults, LOOKS, picture, setUpBrowser } from './visit.ts';

const PRIMARY = 'backend = "cpu"\n\n[model]\ndefault = "demo-fox"\n';
const EMBED = 'enabled = false\nbackend = "cpu"\n[model]\ndefault = "demo-embed"\n';
const SPEECH = 'load = "on-demand"\n[model]\ndefault = "demo-speaker"\n';
/** Line 3 is not TOML. */
const BROKEN = '# Kept by the repair.\nbackend = "cpu"\n[model\ndefault = "demo-fox"\n';

describeWithBrowser('the dashboard with real slots', () => {
  const visit = setUpBrowser();
  let service: Service;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', speech: true });
    await service.save('primary', PRIMARY);
    await service.save('embed', EMBED);
    await service.save('tts', SPEECH);
    await service.save('wide', 'provider = "gguf"\nenabled = false\nbackend = "cpu"\n[model]\ndefault = "no-such-model"\n');
    await service.save('llama', 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "llama-3.2-3b"\n');
    await service.save('broken', BROKEN);
    await service.until('primary', 'answering', isAnswering);
  }, 180_000);
  afterAll(async () => {
    await service.dispose();
  });

  const open = (hash: string) => visit(`${service.url}/${hash}`);
  const rowOf = (page: Page, model: string) =>
    page.locator('.model-row').filter({ has: page.getByRole('heading', { name: model, exact: true }) });

  test('says first that a plan fails, and does not apply it', async () => {
    const page = await open('');
    await page.locator('[data-slot=wide]').getByRole('button', { name: 'Load', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('alert').waitFor();
    expect(await dialog.locator('.plan > *').first().getAttribute('role')).toBe('alert');
    expect(await dialog.getByRole('alert').textContent()).toContain('no-such-model');
    expect(await dialog.getByRole('button', { name: 'Apply' }).isDisabled()).toBe(true);
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'plan-that-fails');
  }, 60_000);

  test('offers slots that can serve a model, the built-in one first, and models that a slot can serve', async () => {
    const page = await open('#/models');
    await rowOf(page, 'demo-embed').waitFor();
    const targets = async (model: string): Promise<readonly string[]> => {
      const group = rowOf(page, model).locator('.load-into');
      const options = await group.locator('option').allTextContents();
      return options.length > 0 ? options : await group.getByRole('button').allTextContents();
    };
    expect((await targets('demo-embed'))[0]).toBe('embed');
    expect(await targets('demo-embed')).not.toContain('primary');
    expect(await targets('demo-speaker')).toEqual(['Load into tts']);
    expect((await targets('demo-owl'))[0]).toBe('primary');
    expect(await targets('demo-owl')).not.toContain('embed');
    await page.goto(`${service.url}/#/models/embed`);
    await page.getByRole('heading', { name: 'Change model: embed' }).waitFor();
    await rowOf(page, 'demo-embed').waitFor();
    expect(await rowOf(page, 'demo-owl').count()).toBe(0);
    expect(await rowOf(page, 'demo-speaker').count()).toBe(0);
  }, 60_000);

  test('goes to the slot after a change from another page', async () => {
    const page = await open('#/models/primary');
    await rowOf(page, 'demo-owl').getByRole('button', { name: 'Load into primary' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
    await page.waitForURL(/#\/slots\/primary\/timeline$/);
    await service.until('primary', 'the owl', (slot) => isAnswering(slot) && slot?.status.model === 'demo-owl');
    await page.locator('.last-change').getByText('The last change took').waitFor();
    expect(await page.locator('.last-change li').count()).toBeGreaterThan(0);
    await picture(page, 'last-change');
    expect(await accessibilityFaults(page)).toEqual([]);
  }, 60_000);

  test('opens a broken file with its text and the mistake at its line, and repairs it with its comments', async () => {
    const page = await open('');
    await page.locator('[data-slot=broken] h2 a').click();
    const editor = page.getByRole('textbox', { name: 'Slot as TOML' });
    await editor.waitFor();
    expect(await editor.textContent()).toContain('# Kept by the repair.');
    await page.getByText('Line 3:').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'broken-file');
    await editor.click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.press('Delete');
    await page.keyboard.insertText(BROKEN.replace('[model', 'provider = "gguf"\nenabled = false\n[model]'));
    const apply = page.getByRole('button', { name: 'Apply' });
    await page.locator('.plan').waitFor();
    await apply.click();
    await page.waitForURL(/#\/slots\/broken\/timeline$/);
    await service.until('broken', 'valid', (slot) => slot?.status.conditions.every(({ reason }) => reason !== 'SpecInvalid') === true);
    expect(await readFile(join(service.configDir, 'slots/broken.toml'), 'utf8')).toContain('# Kept by the repair.');
  }, 60_000);

  test('takes what is typed into a form at once, with the plan and Apply in view', async () => {
    const page = await visit(`${service.url}/#/slots/embed/edit`, LOOKS[2]);
    await page.getByLabel('Priority').pressSequentially('7');
    await page.locator('.plan').waitFor();
    const apply = page.getByRole('button', { name: 'Apply' });
    expect(await page.evaluate('document.activeElement?.closest("label")?.textContent.startsWith("Priority")')).toBe(true);
    const box = await apply.boundingBox();
    expect((box?.y ?? 1e6) + (box?.height ?? 0)).toBeLessThanOrEqual(740);
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'edit-narrow');
    await apply.click();
    await page.waitForURL(/#\/slots\/embed\/timeline$/);
    expect(await readFile(join(service.configDir, 'slots/embed.toml'), 'utf8')).toContain('priority = 7');
  }, 60_000);

  test('accepts a licence in the alarm about it', async () => {
    const page = await open('');
    const card = page.locator('[data-slot=llama]');
    await card.getByRole('button', { name: 'Accept licence of llama-3.2-3b' }).click();
    await card.getByText('LicenseNotAccepted').waitFor({ state: 'detached' });
    const { status } = await service.until('llama', 'not for its licence', (slot) =>
      (slot?.status.conditions ?? []).every(({ reason }) => reason !== 'LicenseNotAccepted'),
    );
    expect(status.model).toBe('llama-3.2-3b');
  }, 60_000);

  test('shows a slot that loads on demand as at rest, and tells an alarm once', async () => {
    const page = await open('');
    await page.locator('[data-slot=tts] .badge strong', { hasText: 'at rest' }).waitFor();
    expect(await page.locator('[data-slot=tts].alarmed').count()).toBe(0);
    await service.save('loud', 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "no-such-model"\n');
    const card = page.locator('[data-slot=loud].alarmed');
    await card.waitFor();
    const alarm = (await card.locator('.alarm').textContent()) ?? '';
    const last = await card.locator('.last').allTextContents();
    for (const text of last.filter((each) => each !== '')) expect(alarm).not.toContain(text);
    await card.getByRole('link', { name: 'Explain' }).click();
    await page.locator('.tree .why').first().waitFor();
    const causes = await page.locator('.tree .why').allTextContents();
    expect(causes.length).toBeGreaterThan(0);
    expect(causes).toEqual([...new Set(causes)]);
    await service.remove('loud');
  }, 60_000);

  test('shows a slot from its file to the memory of its process, and follows its change', async () => {
    await service.until('primary', 'answering', isAnswering);
    const page = await visit(`${service.url}/#/slots/primary/explain`, { width: 1360 });
    const rows = page.locator('.tree li');
    await page.locator('.tree').getByText('process').waitFor();
    expect(await rows.count()).toBe(5);
    expect(await rows.first().textContent()).toMatch(
      /^declaration slots\/primary\.toml valid generation \d+revision \d+ in force .*workload svc-slot-primary/,
    );
    expect(await rows.nth(3).textContent()).toMatch(/^process \d+\s+device host admitted backend cpu · reserved .* · measured /);
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'tree-1360');
    await service.save('primary', PRIMARY.replace('backend', 'priority = 3\nbackend').replace('demo-fox', 'demo-mouse'));
    const broken = page.locator('.tree li', { hasText: /^revision/ }).filter({ hasText: 'ModelMissing' });
    await broken.first().waitFor();
    await picture(page, 'tree-problem');
    await service.save('primary', PRIMARY);
    await broken.first().waitFor({ state: 'detached' });
    await service.until('primary', 'answering', isAnswering);
  }, 60_000);

  test('draws why a new model was rejected, against the former one', async () => {
    const cases = [
      { request: { messages: [{ role: 'user', content: 'Who jumps?' }], max_tokens: 24 }, expect: { contains: 'fox' }, required: true },
      { request: { messages: [{ role: 'user', content: 'Say it' }], max_tokens: 24 }, expect: { matches: '\\w' } },
    ];
    await mkdir(join(service.configDir, 'checks'), { recursive: true });
    await writeFile(join(service.configDir, 'checks/fox.jsonl'), cases.map((each) => `${JSON.stringify(each)}\n`).join(''));
    const save = async (model: string) =>
      await service.save(
        'judged',
        `backend = "cpu"\n[model]\ndefault = "${model}"\n[rollout]\ncheck = "checks/fox.jsonl"\ncompare = true\npass = 0.75\n`,
      );
    await save('demo-fox');
    await service.until('judged', 'answering', isAnswering);
    await save('demo-owl');
    await service.until('judged', 'rolled back', (slot) => slot?.status.conditions.some(({ reason }) => reason === 'RolledBack') === true);
    const page = await visit(`${service.url}/#/slots/judged/history`, LOOKS[1]);
    const verdict = page.getByRole('region', { name: 'New model rejected' });
    await verdict.getByText('New model: 1 of 2 cases passed, 100 % needed').waitFor();
    await verdict.getByText('Former model: 2 of 2 cases passed').waitFor();
    expect(await verdict.getByRole('row', { name: '1 (required)' }).textContent()).toContain('Who jumps?contains "fox"');
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'verdict-dark-1280');
    await page.setViewportSize({ width: 390, height: 740 });
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
    await picture(page, 'verdict-dark-390');
    await page.setViewportSize({ width: 1920, height: 900 });
    await page.emulateMedia({ colorScheme: 'light' });
    await picture(page, 'verdict-1920');
    await page.setViewportSize({ width: 390, height: 740 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.evaluate(`location.hash = '#/slots/judged/explain'`);
    await page
      .locator('.tree li', { hasText: /^revision \d+ rolled back/ })
      .getByText('RolledBack')
      .first()
      .waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
    await picture(page, 'tree-dark-390');
    await service.remove('judged');
  }, 60_000);

  test('draws formulas and tasks, follows the answer, and keeps the conversation over pages and reloads', async () => {
    const page = await open('#/playground');
    const event = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
    const usage = { prompt_tokens: 30, completion_tokens: 12, prompt_tokens_details: { cached_tokens: 20 } };
    const text = `- [x] done\n- [ ] open\n\nThe area is $\\pi r^2$ and costs $5, or $6.\n\n$$\\frac{1}{2}$$\n\n${'A line.\n\n'.repeat(60)}`;
    const body = `${event(text)}data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`;
    await page.route('**/v1/chat/completions', (route) => route.fulfill({ contentType: 'text/event-stream', body }));
    await page.getByLabel('Message').fill('Draw');
    await page.getByRole('button', { name: 'Send' }).click();
    const answer = page.locator('.message.assistant');
    await answer.locator('math').nth(1).waitFor();
    expect(await answer.locator('mfrac').count()).toBe(1);
    expect(await answer.locator('math').count()).toBe(2);
    expect(await answer.textContent()).toContain('costs $5, or $6.');
    expect(await answer.locator('input[type=checkbox]').evaluateAll((boxes) => boxes.map((box) => Reflect.get(box, 'checked')))).toEqual([
      true,
      false,
    ]);
    expect(await answer.textContent()).toContain('12 tokens');
    expect(await answer.textContent()).toContain('30 prompt tokens, 20 cached');
    expect(await page.evaluate('scrollY > 0')).toBe(true);
    expect(await accessibilityFaults(page)).toEqual([]);
    await picture(page, 'chat-formulas');
    await page.getByRole('link', { name: 'Hardware' }).click();
    await page.getByRole('heading', { name: 'Hardware' }).waitFor();
    await page.getByRole('link', { name: 'Playground' }).click();
    await answer.locator('math').first().waitFor();
    await page.reload();
    await answer.locator('math').first().waitFor();
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.reload();
    await page.getByRole('button', { name: 'New chat' }).waitFor();
    expect(await answer.count()).toBe(0);
  }, 60_000);

  test('sends a tool call back whole, with the result that the user enters', async () => {
    const page = await open('#/playground');
    const asked: { messages: unknown[] }[] = [];
    const call = (part: object) => `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, ...part }] } }] })}\n\n`;
    await page.route('**/v1/chat/completions', async (route) => {
      asked.push(JSON.parse(route.request().postData() ?? ''));
      const calls =
        call({ id: 'call_1', function: { name: 'weather', arguments: '{"city":' } }) + call({ function: { arguments: '"Rome"}' } });
      const said = `data: ${JSON.stringify({ choices: [{ delta: { content: 'Sunny' } }] })}\n\n`;
      await route.fulfill({ contentType: 'text/event-stream', body: `${asked.length === 1 ? calls : said}data: [DONE]\n\n` });
    });
    await page.getByLabel('Message').fill('Weather?');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByLabel('Result of weather').fill('22 degrees');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Send results' }).click();
    await page.locator('.message.assistant', { hasText: 'Sunny' }).waitFor();
    expect(asked[1]?.messages).toEqual([
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '22 degrees' },
    ]);
  }, 60_000);
});
