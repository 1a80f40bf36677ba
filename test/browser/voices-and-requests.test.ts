/** Recorded voices and live transcripts in the playground with the real speech engine, and the requests that were made, as they end. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DEMO_TRANSCRIPT } from '../../toolboxes/demo/demo-listener.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { isAnswering, servingProcess, startService, type Service } from '../support/service.ts';
import { encodeCloner } from '../support/speech/cloner-model.ts';
import { toneFile } from '../toolboxes/speech/sounds.ts';
import { accessibilityFaults, picture, setUpBrowser } from './visit.ts';

/** A microphone that hums. */
const HUM = `navigator.mediaDevices.getUserMedia = async () => {
  const context = new AudioContext();
  const target = context.createMediaStreamDestination();
  const tone = new OscillatorNode(context, { frequency: 300 });
  tone.connect(target);
  tone.start();
  return target.stream;
};`;
const DENY = `navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('Denied', 'NotAllowedError'));`;

describeWithBrowser('voices and requests in the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', speech: true });
    const model = path.join(service.modelsDir, 'cloner');
    await mkdir(model);
    for (const [name, bytes] of Object.entries(encodeCloner())) await writeFile(path.join(model, name), bytes);
    await service.save('tts', '[model]\ndefault = "cloner"\n');
    await service.save('stt', 'load = "on-demand"\n[model]\ndefault = "demo-listener"\n');
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-owl"\n');
    await service.until('tts', 'answering', isAnswering);
    await service.until('primary', 'answering', isAnswering);
  }, 180_000);
  afterAll(async () => {
    await service.dispose();
  });

  const open = (hash: string) => visit(`${service.url}/${hash}`);

  test('a voice is recorded, spoken with and deleted', async () => {
    const page = await open('#/playground/speak');
    await page.getByText('Recorded voices', { exact: true }).click();
    await page.getByText('No recorded voices for this model.').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('low');
    await page.getByLabel('Audio file').setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('no sound') });
    await page.getByRole('button', { name: 'Save voice' }).click();
    await page.getByRole('alert').waitFor();
    await page
      .getByLabel('Audio file')
      .setInputFiles({ name: 'a.wav', mimeType: 'audio/wav', buffer: toneFile({ hertz: 300, seconds: 2 }) });
    await page.getByLabel('What is said in the recording (optional)').fill('A tone');
    await page.getByRole('button', { name: 'Save voice' }).click();
    await page.getByText('Voice "low" saved').waitFor();
    await page.getByRole('combobox', { name: /^Voice/ }).selectOption('low');
    const [spoken] = await Promise.all([
      page.waitForResponse(/\/v1\/audio\/speech$/),
      page.getByRole('button', { name: 'Generate speech' }).click(),
    ]);
    expect(spoken.status()).toBe(200);
    expect(JSON.parse(spoken.request().postData() ?? '')).toMatchObject({ model: 'tts', voice: 'low' });
    // What the header covers while the page is scrolled is not too small.
    await page.evaluate('scrollTo(0, 0)');
    await picture(page, 'playground-voices');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Delete voice "low"' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('No recorded voices for this model.').waitFor();
    const { voices }: { voices: unknown[] } = JSON.parse(await (await fetch(`${service.url}/v1/audio/voices`)).text());
    expect(voices).toEqual([]);
  }, 120_000);

  test('transcribes while one speaks, and says why it cannot', async () => {
    // On a busy machine, samples arrive after the microphone was stopped.
    const late = 'MediaStreamTrack.prototype.stop = () => {}; AudioContext.prototype.close = async () => {};';
    const page = await visit(`${service.url}/#/playground/transcribe`, { prepare: (opened) => opened.addInitScript(`${HUM};${late}`) });
    const start = page.getByRole('button', { name: 'Transcribe live' });
    const live = page.getByRole('region', { name: 'Live transcript' });
    await page.getByLabel('Language').fill('en');
    await start.click();
    await live.getByText('Listening…').waitFor();
    await page.waitForTimeout(1500);
    await picture(page, 'live-listening');
    expect(await accessibilityFaults(page)).toEqual([]);
    await live.getByRole('button', { name: 'Stop' }).click();
    await live.getByText(DEMO_TRANSCRIPT).waitFor({ timeout: 60_000 });
    await start.waitFor();
    expect(await live.getByRole('alert').count()).toBe(0);
    await picture(page, 'live-done');

    await page.routeWebSocket(/realtime/, (socket) => socket.onMessage(() => void socket.close({ code: 1011 })));
    await start.click();
    await live.getByRole('alert').getByText('needs a WebSocket').waitFor();
    await page.evaluate(DENY);
    await start.click();
    await live.getByRole('alert').getByText('Microphone access denied').waitFor();
    await start.waitFor();
  }, 120_000);

  test('requests appear as they end, can be filtered, and leave as CSV', async () => {
    const page = await open('#/activity/requests');
    await page.getByText('Nothing in flight').waitFor();
    await service.chat({ model: 'primary', messages: [{ role: 'user', content: 'Who are you?' }] });
    await service.chat({ model: 'nobody' });
    const rows = page.locator('tbody tr');
    await rows.filter({ hasText: 'model.not_found' }).waitFor();
    await rows.filter({ hasText: 'primary' }).first().waitFor();
    await page
      .locator('.latencies')
      .getByText(/p50 .* p95 .* p99/)
      .first()
      .waitFor();
    await picture(page, 'activity-requests');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByLabel('Show').selectOption('failed');
    await rows.filter({ hasText: 'primary' }).first().waitFor({ state: 'detached' });
    await page.getByLabel('Search requests').fill('nothing like this');
    await page.getByText('No requests match').waitFor();
    await page.getByLabel('Search requests').fill('not_found');
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download CSV' }).click()]);
    expect(file.suggestedFilename()).toBe('requests.csv');
    const lines = (await readFile(await file.path(), 'utf8')).trim().split('\r\n');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^at,id,caller,slot,route,status,code,/);
    expect(lines[1]).toContain(',404,model.not_found,');
  }, 60_000);

  test('a request in flight is listed and cancelled, and its client learns why', async () => {
    const server = (await servingProcess(service)) ?? 0;
    const page = await open('#/activity/requests');
    await page.getByText('Nothing in flight').waitFor();
    process.kill(server, 'SIGSTOP');
    try {
      const asked = service.chat({ model: 'primary', messages: [{ role: 'user', content: 'Will you answer?' }] });
      const running = page.getByRole('region', { name: 'Requests in flight' });
      await running.getByText('computing').waitFor();
      await picture(page, 'activity-requests-in-flight');
      expect(await accessibilityFaults(page)).toEqual([]);
      await running.getByRole('button', { name: /^Cancel request / }).click();
      const answer = await asked;
      expect([answer.status, JSON.parse(await answer.text()).error.code]).toEqual([409, 'request.cancelled']);
      await running.waitFor({ state: 'detached' });
      await page.locator('tbody tr').filter({ hasText: 'request.cancelled' }).waitFor();
    } finally {
      process.kill(server, 'SIGCONT');
    }
  }, 60_000);

  test('usage over time is drawn for the chosen range and measure', async () => {
    const page = await open('#/activity/usage');
    const chart = page.getByRole('img', { name: /^Requests, highest [1-9]/ });
    await chart.waitFor({ timeout: 90_000 });
    expect(await chart.locator('g').count()).toBe(24);
    await page.getByLabel('Chart').selectOption('output_tokens');
    await page.getByRole('img', { name: /^Output tokens, highest [1-9]/ }).waitFor();
    await page.getByLabel('Range').selectOption('720');
    await eventually('a bar for each day', async () => (await page.locator('.usage-chart g').count()) > 28);
    await picture(page, 'activity-usage-chart');
    expect(await accessibilityFaults(page)).toEqual([]);
  }, 120_000);
});
