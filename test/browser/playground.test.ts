/**
 * The playground and the checklist of a new installation, with real model servers. Only the image server is a double,
 * in the browser.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';
import { readImageFacts } from '../../src/providers/decide/read-image-facts.ts';
import { accessibilityFaults, LOOKS, picture, setUpBrowser } from './visit.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const CACHED = '/api/images/cache/11111111-2222-4333-8444-555555555555.png';
/** Scripts are strings, because they run in the browser. This one keeps the fields of each form that the page sends, files as `data:` URLs. */
const KEEP_FORMS = `window.forms = [];
const send = window.fetch;
const textOf = (file) => new Promise((resolve) => {
  const reader = Object.assign(new FileReader(), { onload: () => resolve(reader.result) });
  reader.readAsDataURL(file);
});
window.fetch = async (url, init) => {
  if (init?.body instanceof FormData) {
    const form = {};
    for (const [name, value] of init.body) form[name] = typeof value === 'string' ? value : await textOf(value);
    window.forms.push(form);
  }
  return await send(url, init);
};`;
/** The alpha value of a pixel. */
const ALPHA = `async ([url, x, y]) => {
  const image = Object.assign(new Image(), { src: url });
  await image.decode();
  const context = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height }).getContext('2d');
  context.drawImage(image, 0, 0);
  return context.getImageData(x, y, 1, 1).data[3];
}`;
const CLOCK = 'backend = "cpu"\n[model]\ndefault = "demo-clock"\ncontext = 32768\n[lifecycle]\ndrain_timeout = "60s"\n';

describeWithBrowser('the playground of the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', speech: true });
    await service.save('primary', CLOCK);
    await service.save('embed', 'backend = "cpu"\n[model]\ndefault = "demo-embed"\n');
    await service.save('tts', 'load = "on-demand"\n[model]\ndefault = "demo-speaker"\n');
    await service.save('stt', 'load = "on-demand"\n[model]\ndefault = "demo-listener"\n');
    await service.save('img', 'enabled = false\n[model]\ndefault = "flux-schnell"\n');
    await service.until('primary', 'answering', isAnswering);
  }, 180_000);
  afterAll(async () => {
    await service.dispose();
  });

  const open = (hash: string) => visit(`${service.url}/${hash}`);

  test('ends the checklist with a test prompt, and hides it', async () => {
    const page = await open('');
    const steps = page.getByRole('region', { name: 'Getting started' });
    await steps.getByRole('button', { name: 'Send a test prompt' }).click();
    await steps.locator('blockquote').waitFor();
    await picture(page, 'first-steps');
    await steps.getByRole('button', { name: 'Finish' }).click();
    await steps.waitFor({ state: 'detached' });
    expect(await (await fetch(`${service.url}/api/install/state`)).json()).toMatchObject({ complete: true });
  }, 60_000);

  test('completes a response while the model of its slot changes, and uses the new model next', async () => {
    const page = await open('#/playground');
    await page.getByLabel('Message').fill('What time is it?');
    await page.getByRole('button', { name: 'Send' }).click();
    const answer = page.locator('.message.assistant .markdown').first();
    await answer.getByText('tick').waitFor();
    const patch = { spec: { model: { default: 'demo-owl' } } };
    const headers = { 'content-type': 'application/json' };
    await fetch(`${service.url}/api/slots/primary`, { method: 'PATCH', headers, body: JSON.stringify(patch) });
    await page.locator('.slot-bar code', { hasText: 'demo-owl' }).waitFor();
    const before = (await answer.textContent())?.length ?? 0;
    await eventually('the answer grows', async () => ((await answer.textContent())?.length ?? 0) > before);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopped', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.getByLabel('Message').fill('Who are you?');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.message.assistant', { hasText: 'owl' }).waitFor();
  }, 90_000);

  test('loads a fitting model from the picker, and shows each state', async () => {
    const page = await open('#/models/primary');
    const row = page.locator('.model-row').filter({ has: page.getByRole('heading', { name: 'demo-fox' }) });
    await row.getByText('Fits now.').waitFor();
    await row.getByRole('button', { name: 'Load into primary' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.locator('.plan li').first().waitFor();
    await dialog.getByRole('button', { name: 'Apply' }).click();
    // There the change can be watched.
    await page.waitForURL(/#\/slots\/primary\/timeline$/);
    await page.getByRole('dialog', { name: 'primary' }).getByRole('button', { name: 'Close' }).click();
    const card = page.locator('[data-slot=primary]');
    await card.locator('.model', { hasText: 'demo-fox' }).waitFor();
    await card.locator('.badge strong', { hasText: /^(ready|idle)$/ }).waitFor();
    await page.getByRole('link', { name: 'Activity' }).click();
    await page.locator('.entries li', { hasText: 'demo-fox' }).first().waitFor();
  }, 90_000);

  test('generates speech, and transcribes a file and the microphone', async () => {
    const page = await open('#/playground/speak');
    await page.getByRole('button', { name: 'Generate speech' }).click();
    const sound = page.getByLabel('Speech', { exact: true }).locator('visible=true');
    await sound.waitFor({ timeout: 60_000 });
    const body = JSON.stringify({ model: 'tts', input: 'Hello there', response_format: 'wav' });
    const headers = { 'content-type': 'application/json' };
    const wave = Buffer.from(await (await fetch(`${service.url}/v1/audio/speech`, { method: 'POST', headers, body })).arrayBuffer());
    expect(wave.subarray(0, 4).toString()).toBe('RIFF');
    await picture(page, 'playground-speak-done');

    await page.getByRole('combobox', { name: /^Voice/ }).selectOption({ index: 1 });
    await page.getByRole('combobox', { name: /^Mix with/ }).selectOption({ index: 1 });
    await page.getByLabel('Its share in %').fill('30');
    const [asked] = await Promise.all([
      page.waitForRequest(/\/v1\/audio\/speech$/),
      page.getByRole('button', { name: 'Generate speech' }).click(),
    ]);
    expect(asked.postDataJSON()).toMatchObject({ voice: expect.stringMatching(/^.+\(70\)\+.+\(30\)$/) });
    // The demo model is none of Kokoro, whose mixes `test/toolboxes/speech/kokoro` hears.
    await page.getByText('only models of Kokoro mix voices').first().waitFor();

    await page.getByRole('link', { name: 'Speech to text' }).click();
    await page.getByLabel('Audio file').setInputFiles({ name: 'hello.wav', mimeType: 'audio/wav', buffer: wave });
    await page.getByRole('button', { name: 'Transcribe', exact: true }).click();
    await page.getByRole('heading', { name: 'Transcript', exact: true }).waitFor({ timeout: 60_000 });
    const heard = await page.locator('.result .plain').textContent();
    expect(heard?.length).toBeGreaterThan(0);

    await page.getByRole('button', { name: 'Record', exact: true }).click();
    await page.getByText('Recording…', { exact: true }).waitFor();
    await page.waitForTimeout(700);
    await page.getByRole('button', { name: 'Stop recording' }).click();
    await page.getByLabel('recording.wav').waitFor();
    const [sent] = await Promise.all([
      page.waitForResponse(/transcriptions$/),
      page.getByRole('button', { name: 'Transcribe', exact: true }).click(),
    ]);
    expect(sent.status()).toBe(200);
  }, 180_000);

  test('compares texts, shows code samples, and lists a failed request', async () => {
    const page = await open('#/playground/similarity');
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.locator('.matrix').waitFor();
    const cells = await page.locator('.matrix tbody td').allTextContents();
    expect([cells.length, cells[0], cells[4], cells[8]]).toEqual([9, '1.00', '1.00', '1.00']);
    await page.getByText('View code').click();
    await page.getByRole('button', { name: 'Python' }).click();
    expect(await page.locator('.snippets pre').textContent()).toContain('client.embeddings.create(');
    await service.chat({ model: 'nobody' });
    await page.getByRole('link', { name: 'Activity' }).click();
    await page.getByRole('link', { name: 'Requests', exact: true }).click();
    await page.locator('tbody tr', { hasText: '404' }).waitFor();
  }, 60_000);

  test('streams an image with previews, and keeps the gallery after a reload', async () => {
    const page = await open('#/playground/images');
    const event = (name: string) =>
      `data: ${JSON.stringify({ type: `image_generation.${name}`, b64_json: PIXEL, output_format: 'png' })}\n\n`;
    const asked: unknown[] = [];
    await page.route('**/v1/images/generations', async (route) => {
      const body: { stream?: boolean } = JSON.parse(route.request().postData() ?? '');
      asked.push(body);
      if (body.stream === true)
        await route.fulfill({ contentType: 'text/event-stream', body: event('partial_image') + event('completed') });
      else await route.fulfill({ json: { created: 1, data: [{ url: CACHED }] } });
    });
    await page.route(`**${CACHED}`, (route) => route.fulfill({ contentType: 'image/png', body: Buffer.from(PIXEL, 'base64') }));
    await page.getByLabel('Prompt', { exact: true }).fill('A fox');
    await page.getByLabel('Seed').fill('7');
    await page.getByLabel('Steps').fill('4');
    await page.getByLabel('Size').selectOption('512x512');
    await page.getByRole('button', { name: 'Generate' }).click();
    await page.locator('.drawn figure img').waitFor();
    await page.getByLabel('Output').selectOption('gallery');
    await page.getByRole('button', { name: 'Generate' }).click();
    await page.locator('.gallery img').waitFor();
    const wishes = { model: 'img', prompt: 'A fox', size: '512x512', seed: 7, steps: 4 };
    expect(asked).toEqual([
      { ...wishes, stream: true, partial_images: 3 },
      { ...wishes, response_format: 'url' },
    ]);
    await page.reload();
    await page.locator('.gallery img').waitFor();
    await picture(page, 'playground-images-done');
  }, 60_000);

  test('edits a part of an image, and takes settings over from the gallery', async () => {
    const page = await visit(`${service.url}/#/playground/images`, { prepare: (opened) => opened.addInitScript(KEEP_FORMS) });
    const body = `data: ${JSON.stringify({ type: 'image_edit.completed', b64_json: PIXEL, output_format: 'png' })}\n\n`;
    await page.route('**/v1/images/edits', async (route) => {
      const isKept = (await page.evaluate('window.forms.at(-1).response_format')) === 'url';
      await route.fulfill(isKept ? { json: { created: 1, data: [{ url: CACHED }] } } : { contentType: 'text/event-stream', body });
    });
    await page.route(`**${CACHED}`, (route) => route.fulfill({ contentType: 'image/png', body: Buffer.from(PIXEL, 'base64') }));
    const lastForm = (): Promise<Record<string, string>> => page.evaluate('window.forms.at(-1)');
    const drawn = await page.evaluate<string>(`(() => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 400, height: 200 });
      const context = canvas.getContext('2d');
      context.fillStyle = 'steelblue';
      context.fillRect(0, 0, 400, 200);
      return canvas.toDataURL().split(',')[1];
    })()`);
    await page.getByLabel('Prompt', { exact: true }).fill('A red hat');
    await page.getByLabel('Negative prompt').fill('a cap');
    const source = page.getByLabel('Edit an image (optional)');
    await source.setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('no image') });
    await page.getByRole('alert').getByText('cannot read this image').waitFor();
    await source.setInputFiles({ name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from(drawn, 'base64') });
    const canvas = page.locator('.mask-editor canvas').last();
    const box = await canvas.boundingBox();
    if (box === null) throw new Error('The image is not shown');
    await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
    await page.getByText('View code').click();
    expect(await page.locator('.snippets pre').textContent()).toContain('-F mask=@mask.png');
    for (const look of LOOKS) {
      await page.emulateMedia({ colorScheme: look.theme });
      await page.setViewportSize(look);
      // What the header covers while the page is scrolled is not too small.
      await page.evaluate('scrollTo(0, 0)');
      await picture(page, `image-edit-${look.theme}-${look.width}`);
      if ((look.theme === 'light') === (look.width === 1280)) expect(await accessibilityFaults(page)).toEqual([]);
    }
    await page.setViewportSize(LOOKS[0]);
    await page.getByRole('button', { name: 'Edit image' }).click();
    await page.locator('.drawn figure img').waitFor();
    const { image = '', mask = '', ...fields } = await lastForm();
    expect(fields).toEqual({ model: 'img', prompt: 'A red hat', negative_prompt: 'a cap', stream: 'true', partial_images: '3' });
    for (const url of [image, mask])
      expect(readImageFacts(Buffer.from(url.split(',')[1] ?? '', 'base64'))).toMatchObject({
        format: 'png',
        width: 400,
        height: 200,
        hasAlpha: true,
      });
    const alpha = async (x: number, y: number): Promise<unknown> => await page.evaluate(`(${ALPHA})(${JSON.stringify([mask, x, y])})`);
    expect([await alpha(100, 100), await alpha(150, 100), await alpha(300, 100), await alpha(150, 10)]).toEqual([0, 0, 255, 255]);

    await page.getByRole('button', { name: 'Clear mask' }).click();
    await page.getByLabel('Seed').fill('7');
    await page.getByLabel('Output').selectOption('gallery');
    await page.getByRole('button', { name: 'Edit image' }).click();
    await page.locator('.gallery img').waitFor();
    expect(Object.keys(await lastForm())).toEqual(['model', 'prompt', 'negative_prompt', 'seed', 'response_format', 'image']);
    await page.getByRole('button', { name: 'Generate a new image instead' }).click();
    for (const label of ['Prompt', 'Negative prompt', 'Seed']) await page.getByLabel(label, { exact: true }).fill('');
    await page.reload();
    await page.getByRole('button', { name: 'Use again' }).click();
    expect(await page.evaluate('document.activeElement.value')).toBe('A red hat');
    expect(await page.getByLabel('Negative prompt').inputValue()).toBe('a cap');
    expect(await page.getByLabel('Seed').inputValue()).toBe('7');
    await page.locator('.gallery').getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('button', { name: 'Edit image' }).click();
    await page.locator('.drawn').getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('button', { name: 'Clear mask' }).waitFor();
    expect(await lastForm()).toMatchObject({ seed: '7', image: expect.stringContaining('data:image/png') });
  }, 60_000);

  test('keeps form and text of an edit in sync', async () => {
    const page = await open('#/slots/embed/edit');
    const editor = page.getByRole('textbox', { name: 'Slot as TOML' });
    await editor.waitFor();
    await page.getByLabel('Context').fill('3');
    await page.getByLabel('Priority').fill('5');
    await page.getByLabel('Priority').press('Tab');
    await editor.getByText('priority').waitFor();
    await page.getByText('Use at least 64').waitFor();
    expect(await page.getByLabel('Context').getAttribute('aria-invalid')).toBe('true');
    await page.getByLabel('Context').fill('');
    await page.getByLabel('Context').blur();
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.waitForURL(/#\/slots\/embed\/timeline$/);
    const stored: unknown = await (await fetch(`${service.url}/api/slots/embed`)).json();
    expect(stored).toMatchObject({ spec: { priority: 5 } });
  }, 60_000);
});
