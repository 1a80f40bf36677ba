/** A web page that records with MediaRecorder in a real Chromium, as chat pages do, and plays generated speech. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { chromium, type Browser, type Page } from 'playwright-core';
import { DEMO_TRANSCRIPT } from '../../toolboxes/demo/demo-listener.ts';
import { BROWSER } from '../support/browser-path.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { describeWithFfmpeg } from '../support/require/require-ffmpeg.ts';
import { condition, startService, type Service } from '../support/service.ts';

const SLOT = (model: string) => `load = "on-demand"\n[model]\ndefault = "${model}"\n`;
/** Pages may play sound without a click, and `getUserMedia` returns a device that beeps once a second. */
const FLAGS = [
  '--disable-gpu',
  '--autoplay-policy=no-user-gesture-required',
  '--use-fake-ui-for-media-stream',
  '--use-fake-device-for-media-stream',
];

/** Scripts are strings, because they run in the browser. */
const RECORD = `async (type) => {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(stream, { mimeType: type });
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const stopped = new Promise((resolve) => (recorder.onstop = resolve));
  recorder.start(250);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  recorder.stop();
  await stopped;
  stream.getTracks().forEach((track) => track.stop());
  const form = new FormData();
  form.append('file', new Blob(parts, { type: recorder.mimeType }), 'recording');
  form.append('model', 'stt');
  form.append('response_format', 'verbose_json');
  const answer = await fetch('/v1/audio/transcriptions', { method: 'POST', body: form });
  return { status: answer.status, type: recorder.mimeType, ...(await answer.json()) };
}`;

const PLAY = `async (format) => {
  const body = JSON.stringify({ model: 'tts', input: 'Hello there', response_format: format });
  const answer = await fetch('/v1/audio/speech', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const audio = new Audio(URL.createObjectURL(await answer.blob()));
  const ended = new Promise((resolve, reject) => {
    audio.onended = resolve;
    audio.onerror = () => reject(new Error(audio.error.message));
  });
  await audio.play();
  await ended;
  return audio.currentTime;
}`;

describeWithFfmpeg('a service with speech', () => {
  describeWithBrowser('and a browser', () => {
    let service: Service;
    let browser: Browser;
    let page: Page;

    beforeAll(async () => {
      service = await startService({ runtime: 'process', speech: true });
      await service.save('stt', SLOT('demo-listener'));
      await service.save('tts', SLOT('demo-speaker'));
      await service.until('tts', 'looked at', (seen) => condition(seen, 'SpecValid')?.status === 'True');
      browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
      page = await (await browser.newContext()).newPage();
      // Any page of the service will do: browsers permit the microphone on localhost.
      await page.goto(`${service.url}/v1/models`);
    }, 180_000);
    afterAll(async () => {
      await browser.close();
      await service.dispose();
    }, 60_000);

    test.each(['audio/webm;codecs=opus', 'audio/mp4'])(
      'transcribes a MediaRecorder recording of type %s',
      async (type) => {
        const answer: unknown = await page.evaluate(`(${RECORD})(${JSON.stringify(type)})`);
        expect(answer).toMatchObject({
          status: 200,
          type: expect.stringContaining(type.split(';', 1)[0] ?? ''),
          duration: expect.any(Number),
        });
        expect(JSON.stringify(answer)).toContain(DEMO_TRANSCRIPT);
      },
      120_000,
    );

    test.each(['mp3', 'opus', 'flac', 'wav'])(
      'speaks %s that the browser plays to its end',
      async (format) => {
        expect(await page.evaluate(`(${PLAY})(${JSON.stringify(format)})`)).toBeGreaterThan(0.5);
      },
      120_000,
    );
  });
});
