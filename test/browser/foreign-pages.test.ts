/**
 * What pages of other sites can do to a service in a real browser. Scripts are strings, because they run in the
 * browser.
 */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { CHAT, chatBody } from '../gateway/support/client.ts';
import { publish } from '../gateway/support/board-fixture.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { PRIMARY, startBrowserWorld, TEXT, type BrowserWorld } from './browser-world.ts';

const EVIL_SLOT = JSON.stringify({
  slots: [{ name: 'primary', spec: { backend: 'cpu', model: { default: 'demo-owl' }, env: { A: 'b' } } }],
});
const JSON_POST = `method: 'POST', headers: { 'content-type': 'application/json' }`;

describeWithBrowser('a service and a browser', () => {
  let world: BrowserWorld;
  let service = '';
  let page: Page;

  beforeAll(async () => {
    world = await startBrowserWorld();
    service = `http://127.0.0.1:${world.gateway.port}`;
  }, 60_000);
  afterAll(() => world.close());
  afterEach(async () => {
    await page.context().close();
    world.arrived.length = 0;
    world.manage.slots.texts.set(PRIMARY, TEXT);
  });

  /** Fetches in the page. Resolves with the status, or the name of the error; `0` is an opaque response. */
  const fetchIn = (url: string, options = ''): Promise<unknown> =>
    page.evaluate(
      `fetch(${JSON.stringify(url)}, {${options}}).then(async (answer) => (await answer.text(), answer.status), (error) => error.name)`,
    );
  const arrives = (request: string) => eventually(`${request} arrives`, () => world.arrived.includes(request));
  const slot = () => world.manage.slots.texts.get(PRIMARY);

  test('lets no fetch without CORS change anything, with and without a media type', async () => {
    page = await world.open(world.evil);
    for (const body of [JSON.stringify(EVIL_SLOT), `new Blob([${JSON.stringify(EVIL_SLOT)}])`]) {
      world.arrived.length = 0;
      expect(await fetchIn(`${service}/api/apply`, `method: 'POST', mode: 'no-cors', body: ${body}`)).toBe(0);
      await arrives('POST /api/apply');
      expect(slot()).toBe(TEXT);
    }
    await fetchIn(`${service}/api/slots/primary/unload`, `method: 'POST', mode: 'no-cors'`);
    await arrives('POST /api/slots/primary/unload');
    expect(slot()).toBe(TEXT);
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
    'lets no form of type %s change anything',
    async (type) => {
      page = await world.open(world.evil);
      const [before, after] = EVIL_SLOT.split('"A":"b"');
      const answered = page.waitForEvent('framenavigated');
      await page.evaluate(`(() => {
      const form = document.createElement('form');
      Object.assign(form, { method: 'POST', enctype: '${type}', action: '${service}/api/apply' });
      const field = document.createElement('input');
      Object.assign(field, { name: ${JSON.stringify(`${before}"A":"`)}, value: ${JSON.stringify(`"${after}`)} });
      form.append(field);
      document.body.append(form);
      form.submit();
    })()`);
      await arrives('POST /api/apply');
      await answered;
      expect(await page.textContent('body')).toContain('request.cross_site');
      expect(slot()).toBe(TEXT);
    },
  );

  test('lets no other site send JSON, read slots or use the models', async () => {
    page = await world.open(world.evil);
    const before = world.upstream.seen.length;
    expect(await fetchIn(`${service}/api/apply`, `${JSON_POST}, body: ${JSON.stringify(EVIL_SLOT)}`)).toBe('TypeError');
    expect(await fetchIn(`${service}${CHAT}`, `${JSON_POST}, body: ${JSON.stringify(chatBody())}`)).toBe('TypeError');
    expect(await fetchIn(`${service}/api/slots`)).toBe('TypeError');
    expect(await fetchIn(`${service}/v1/models`)).toBe('TypeError');
    expect(world.arrived).not.toContain('POST /api/apply');
    expect(world.arrived).not.toContain(`POST ${CHAT}`);
    expect(world.upstream.seen.length).toBe(before);
    expect(slot()).toBe(TEXT);
  });

  test('does not let a page use it after DNS rebinding, even if the page claims to be svcctl', async () => {
    // The health route accepts any host name. The page is now same-origin with the service.
    page = await world.open(`${world.rebound}/api/health/system`);
    const before = world.upstream.seen.length;
    for (const mark of ['', `, 'sec-svc-client': 'svcctl'`]) {
      const headers = `headers: { 'content-type': 'application/json'${mark} }`;
      expect(await fetchIn('/api/slots', `headers: { accept: 'application/json'${mark} }`)).toBe(403);
      expect(await fetchIn('/api/apply', `method: 'POST', ${headers}, body: ${JSON.stringify(EVIL_SLOT)}`)).toBe(403);
      expect(await fetchIn(CHAT, `method: 'POST', ${headers}, body: ${JSON.stringify(chatBody())}`)).toBe(403);
    }
    expect(world.upstream.seen.length).toBe(before);
    expect(slot()).toBe(TEXT);
  });

  test('lets a page of an allowed origin stream a chat and read each event as it arrives', async () => {
    page = await world.open(world.chat);
    await page.exposeFunction('finishStream', () => world.finishStream());
    const seen: unknown = await page.evaluate(`(async () => {
      const body = ${JSON.stringify(chatBody({ stream: true }))};
      const headers = { 'content-type': 'application/json', authorization: 'Bearer none', 'x-stainless-os': 'Browser' };
      const answer = await fetch('${service}${CHAT}', { method: 'POST', headers, body });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const first = (await reader.read()).value;
      await finishStream();
      let rest = '';
      for (let part = await reader.read(); !part.done; part = await reader.read()) rest += part.value;
      return { status: answer.status, id: answer.headers.get('x-request-id') !== null, first, rest };
    })()`);
    expect(seen).toEqual({ status: 200, id: true, first: 'data: first\n\n', rest: 'data: [DONE]\n\n' });
  });

  test('lets a page of an allowed origin list models and read errors, and nothing else', async () => {
    page = await world.open(world.chat);
    expect(await fetchIn(`${service}/v1/models`)).toBe(200);
    expect(await fetchIn(`${service}${CHAT}`, `${JSON_POST}, body: ${JSON.stringify(chatBody({ model: 'zzz' }))}`)).toBe(404);
    expect(await fetchIn(`${service}/api/slots`)).toBe('TypeError');
    await fetchIn(`${service}/api/slots/primary/unload`, `method: 'POST', mode: 'no-cors'`);
    await arrives('POST /api/slots/primary/unload');
    expect(slot()).toBe(TEXT);
  });

  test('lets pages of the service and of an allowed origin open a realtime session with the key in a subprotocol, and no other page', async () => {
    const targets = [{ workload: 'w', port: world.upstream.port }];
    publish(world.gateway.board, { name: 'primary', targets }, { name: 'stt', capabilities: ['transcription'], targets });
    const connect = (address: string): Promise<unknown> =>
      page.evaluate(`new Promise((resolve) => {
        const socket = new WebSocket('${address}/v1/realtime?intent=transcription', ['realtime', 'openai-insecure-api-key.any']);
        socket.onmessage = ({ data }) => { socket.close(); resolve(socket.protocol + ' ' + JSON.parse(data).type); };
        socket.onerror = () => resolve('refused');
      })`);
    const own = `ws://127.0.0.1:${world.gateway.port}`;
    const found = [];
    for (const url of [`${service}/api/status`, world.chat, world.evil]) {
      page = await world.open(url);
      found.push(await connect(own));
      await page.context().close();
    }
    page = await world.open(`${world.rebound}/api/health/system`);
    found.push(await connect(world.rebound.replace('http', 'ws')));
    expect(found).toEqual(['realtime session.created', 'realtime session.created', 'refused', 'refused']);
  });

  test.each(['127.0.0.1', 'localhost'])('lets its own pages read and change slots, under "%s"', async (host) => {
    page = await world.open(`http://${host}:${world.gateway.port}/api/status`);
    expect(await fetchIn('/api/slots')).toBe(200);
    expect(await fetchIn('/api/slots/primary/unload', `method: 'POST'`)).toBe(202);
    expect(slot()).toContain('enabled = false');
    expect(await fetchIn(CHAT, `${JSON_POST}, body: ${JSON.stringify(chatBody())}`)).toBe(200);
  });

  test('can be reached by a link on another page, but not shown in a frame of it', async () => {
    page = await world.open(world.evil);
    await page.setContent(`<a href="${service}/api/status">Status</a><iframe src="${service}/api/status"></iframe>`);
    await arrives('GET /api/status');
    const frame = page.frameLocator('iframe').locator('body');
    await eventually('the frame shows the refusal', async () => (await frame.textContent())?.includes('request.cross_site') === true);
    await Promise.all([page.waitForURL(`${service}/api/status`), page.click('a')]);
    expect(await page.textContent('body')).toContain('"auth_enabled":false');
  });
});
