/**
 * Records the picture of the dashboard in the README, `docs/images/dashboard.webp`, from a running service: `npm start`, then in another terminal
 * `node scripts/record-dashboard.ts`, or with the URL of the service. Needs Chromium (SVC_TEST_BROWSER, or one on the PATH).
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { BROWSER } from '../test/support/browser-path.ts';

const [url = 'http://127.0.0.1:8080'] = process.argv.slice(2);
const PICTURE = join(import.meta.dirname, '../docs/images/dashboard.webp');
const VIEW = { width: 1200, height: 880 };
/** Keeps the picture below 200 KB with text that stays legible on dense displays. */
const QUALITY = 80;
/** The cards compute tokens per second from two samples of the metrics. */
const TRAFFIC_MS = 12_000;
const CHAT = { stream: true, stream_options: { include_usage: true }, messages: [{ role: 'user', content: 'Hello' }] };

async function post(path: string, body: object): Promise<void> {
  const answer = await fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`Could not send "POST ${path}" to "${url}": ${await answer.text()}`);
  await answer.arrayBuffer();
}

await Promise.all([post('/v1/audio/speech', { input: 'Hello' }), post('/v1/embeddings', { input: 'Hello' })]);
await post('/api/install/complete', {});
const browser = await chromium.launch({ executablePath: BROWSER, args: ['--disable-gpu'] });
try {
  const page = await browser.newPage({ viewport: VIEW, deviceScaleFactor: 2, reducedMotion: 'reduce' });
  await page.goto(url);
  for (const begin = Date.now(); Date.now() - begin < TRAFFIC_MS;) await post('/v1/chat/completions', CHAT);
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  await writeFile(PICTURE, Buffer.from(data, 'base64'));
} finally {
  await browser.close();
}
