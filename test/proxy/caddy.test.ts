/** The whole authenticated way: Caddy with the configuration of the installer, the service, and a slot with a model. */
import { get } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { OpenAI } from 'openai';
import { chromium } from 'playwright-core';
import { fetch as undiciFetch } from 'undici';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { buildDashboard } from '../browser/dashboard.ts';
import { BROWSER } from '../support/browser-path.ts';
import { openPage } from '../support/open-page.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { describeWithCaddy } from '../support/require/require-caddy.ts';
import { BASIC, HOSTNAME, PASSWORD, PROXY_SECRET, startProxyWorld, USER, type ProxyWorld } from './proxy-world.ts';

const CHAT = JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], max_tokens: 40 });
const JSON_TYPE = ['Content-Type', 'application/json'];
const WRONG = `Basic ${Buffer.from(`${USER}:wrong`).toString('base64')}`;

describeWithCaddy('The proxy', ({ program }) => {
  let world: ProxyWorld;
  beforeAll(async () => {
    // The service reads it when it starts.
    if (BROWSER !== '') buildDashboard();
    world = await startProxyWorld(program);
  }, 180_000);
  afterAll(async () => await world.close(), 30_000);

  test('asks for a password at "/", over HTTPS with a certificate of its own authority', async () => {
    const answer = await world.send(`${world.origin}/`);
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toMatch(/^Basic /);
    expect((await world.send(`${world.origin}/`, ['Authorization', WRONG])).status).toBe(401);
    expect((await world.send(`${world.origin}/`, ['Authorization', BASIC])).status).not.toBe(401);
  });

  test('sends HTTP to HTTPS', async () => {
    const location = await new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port: world.httpPort, path: '/api/slots', headers: { host: HOSTNAME } }, (res) => {
        res.resume();
        resolve([res.statusCode, res.headers.location]);
      }).on('error', reject);
    });
    expect(location).toEqual([308, expect.stringMatching(/^https:\/\/svc-test\.local(?::\d+)?\/api\/slots$/)]);
  });

  test('makes whoever knows the password an administrator, on every route', async () => {
    expect((await world.send(`${world.origin}/api/slots`, ['Authorization', BASIC])).status).toBe(200);
    expect((await world.send(`${world.origin}/api/auth/tokens`, ['Authorization', BASIC])).status).toBe(200);
    const answer = await world.send(`${world.origin}/v1/chat/completions`, [...JSON_TYPE, 'Authorization', BASIC], CHAT);
    expect(answer.body).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
  });

  test('verifies a password also where none is asked for', async () => {
    for (const path of ['/api/status', '/v1/models', '/v1/chat/completions']) {
      expect([path, (await world.send(`${world.origin}${path}`, ['Authorization', WRONG])).status]).toEqual([path, 401]);
    }
    expect((await world.send(`${world.origin}/api/status`, ['Authorization', BASIC])).status).toBe(200);
  });

  test('passes tokens on to the service, on every route, and asks for no password', async () => {
    const token = world.createToken('all');
    const readOnly = world.createToken('read-only');
    const send = async (path: string, headers: readonly string[], body?: string) => {
      const { status, headers: answered, body: text } = await world.send(`${world.origin}${path}`, [...JSON_TYPE, ...headers], body);
      const { error } = body === undefined || status === 200 ? { error: undefined } : JSON.parse(text);
      return [status, error?.code, answered['www-authenticate']];
    };
    expect(await send('/v1/chat/completions', ['Authorization', `Bearer ${token}`], CHAT)).toEqual([200, undefined, undefined]);
    expect(await send('/v1/chat/completions', ['x-api-key', token], CHAT)).toEqual([200, undefined, undefined]);
    expect(await send('/api/slots', ['authorization', `bearer ${token}`])).toEqual([200, undefined, undefined]);
    expect(await send('/v1/chat/completions', ['Authorization', `Bearer ${readOnly}`], CHAT)).toEqual([403, 'auth.scope', undefined]);
    expect(await send('/v1/chat/completions', ['Authorization', 'Bearer svc_00000000.x'], CHAT)).toEqual([
      401,
      'auth.invalid',
      expect.stringMatching(/^Bearer/),
    ]);
    expect(await send('/v1/chat/completions', [], CHAT)).toEqual([401, 'auth.required', expect.stringMatching(/^Bearer/)]);
  });

  test.each([
    ['as the proxy writes it', ['X-Forwarded-Email', USER]],
    ['in other capitals', ['x-forwarded-EMAIL', USER]],
    ['twice', ['X-Forwarded-Email', USER, 'X-Forwarded-Email', USER]],
    ['with underscores', ['X_Forwarded_Email', USER]],
    ['with the secret of the proxy', ['X-Forwarded-Email', USER, 'X-Svc-Proxy-Secret', PROXY_SECRET]],
    ['announced as belonging to the connection', ['X-Forwarded-Email', USER, 'Connection', 'X-Forwarded-Email, X-Svc-Proxy-Secret']],
  ])('a forged X-Forwarded-Email, %s, gets nothing', async (_how, headers) => {
    const body = await world.send(`${world.origin}/v1/chat/completions`, [...JSON_TYPE, ...headers], CHAT);
    expect([body.status, JSON.parse(body.body).error.code]).toEqual([401, 'auth.required']);
    expect((await world.send(`${world.origin}/api/slots`, headers)).status).toBe(401);
    const bearer = ['Authorization', 'Bearer svc_00000000.x'];
    expect((await world.send(`${world.origin}/api/slots`, [...headers, ...bearer])).status).toBe(401);
    const before = world.chat.received.size;
    expect((await world.send(`${world.chatOrigin}/api/me`, headers)).status).toBe(303);
    expect(world.chat.received.size).toBe(before);
  });

  test('the signed link of an image is judged by the service; nothing else below "/api" passes without a password', async () => {
    const asked = async (path: string) => {
      const { status, headers } = await world.send(`${world.origin}${path}`, []);
      return [status, String(headers['www-authenticate']).split(' ')[0]];
    };
    const image = '/api/images/cache/11111111-2222-4333-8444-555555555555.png';
    expect(await asked(`${image}?expires=1&signature=x`)).toEqual([401, 'Bearer']);
    expect(await asked(image)).toEqual([401, 'Basic']);
    expect(await asked('/api/slots?signature=x')).toEqual([401, 'Basic']);
  });

  test('the "openai" package works with a token', async () => {
    const client = openai(world);
    const answer = await client.chat.completions.create({ model: 'primary', messages: [{ role: 'user', content: 'Hello' }] });
    expect(answer.choices[0]?.message.content).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
  });

  test('events of a stream arrive one by one, and the service notices when the client leaves', async () => {
    const stream = await openai(world).chat.completions.create({
      model: 'clock',
      messages: [{ role: 'user', content: 'Hello' }],
      stream: true,
    });
    let events = 0;
    // The model never ends, so events that are held back would not arrive at all.
    for await (const _event of stream) {
      events += 1;
      if (events === 5) break;
    }
    expect(events).toBe(5);
    const inFlight = async () => {
      const { body } = await world.send(`${world.origin}/api/status`);
      const { slots }: { slots: { name: string; in_flight: number }[] } = JSON.parse(body);
      return slots.find(({ name }) => name === 'clock')?.in_flight;
    };
    while ((await inFlight()) !== 0) await new Promise((resolve) => setTimeout(resolve, 50));
  });

  test('the chat page has an origin of its own, which nobody enters without having logged in', async () => {
    expect((await world.send(`${world.origin}/chat/`)).status).toBe(401);
    const entered = await world.send(`${world.origin}/chat/`, ['Authorization', BASIC]);
    expect([entered.status, entered.headers.location]).toEqual([303, `${world.chatOrigin}/`]);
    const cookie = entered.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const inside = await world.send(`${world.chatOrigin}/api/me`, [
      'Cookie',
      `a=1; ${cookie}; b=2`,
      'X-Forwarded-Email',
      'mallory@evil.test',
    ]);
    expect([inside.status, inside.body]).toEqual([200, `${USER}@localhost`]);
    expect(world.chat.received.get('/api/me')?.cookie).toBe('a=1; __Host-svc-chat=-; b=2');
    const outside = await world.send(`${world.chatOrigin}/api/me`, ['Cookie', `${cookie}x`]);
    expect([outside.status, outside.headers.location]).toEqual([303, `${world.origin}/chat/`]);
  });

  test('a session of the chat page is a token of its user: every login has its own, which is listed, and ends when it is revoked', async () => {
    const tokens = async (): Promise<readonly { id: string; label: string; scope: string }[]> =>
      JSON.parse((await world.send(`${world.origin}/api/auth/tokens`, ['Authorization', BASIC])).body).tokens;
    const logIn = async (): Promise<string> =>
      (await world.send(`${world.origin}/chat/`, ['Authorization', BASIC])).headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const statusOf = async (cookie: string): Promise<number> => (await world.send(`${world.chatOrigin}/api/me`, ['Cookie', cookie])).status;
    const [one, other] = [await logIn(), await logIn()];
    expect(one).not.toBe(other);
    expect([await statusOf(one), await statusOf(other)]).toEqual([200, 200]);
    const id = /svc_([0-9a-f]{8})\./.exec(one)?.[1] ?? '';
    expect((await tokens()).find((token) => token.id === id)).toMatchObject({ label: `chat session of ${USER}`, scope: 'v1-only' });
    world.revokeToken(id);
    expect([await statusOf(one), await statusOf(other)]).toEqual([303, 200]);
    // The token of a program is no session.
    for (const scope of ['admin', 'v1-only', 'read-only'])
      expect([scope, await statusOf(`__Host-svc-chat=${world.createToken(scope)}`)]).toEqual([scope, 303]);
    for (let time = 0; time < 20; time++) await logIn();
    const sessions = (await tokens()).filter(({ label }) => label.startsWith('chat session of '));
    expect(sessions).toHaveLength(20);
    expect(await statusOf(other)).toBe(303);
  }, 60_000);

  test('what the chat page is sent arrives whole, and its answer too', async () => {
    const entered = await world.send(`${world.origin}/chat/`, ['Authorization', BASIC]);
    const cookie = entered.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const body = JSON.stringify({ text: 'x'.repeat(100_000) });
    const headers = ['Cookie', cookie, 'Origin', world.chatOrigin, 'Authorization', 'Bearer of-the-page', ...JSON_TYPE];
    const answer = await world.send(`${world.chatOrigin}/api/echo`, headers, body);
    expect([answer.status, answer.body === body]).toEqual([200, true]);
  });

  describeWithBrowser('in a browser', () => {
    test('the dashboard shows slots as they change, changes them, and chats, all with the one login', async () => {
      const browser = await launchBrowser();
      try {
        const page = await (await browser.newContext(signedIn(world))).newPage();
        const refused: string[] = [];
        page.on('response', (answer) => void (answer.status() >= 400 && refused.push(`${answer.status()} ${answer.url()}`)));
        await openPage(page, `${world.origin}/`);
        await page.getByText('Live', { exact: true }).waitFor();
        const clock = page.locator('[data-slot=clock]');
        await clock.getByRole('button', { name: 'Unload', exact: true }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
        await clock.locator('.badge strong', { hasText: 'offline' }).waitFor();
        await page.getByRole('link', { name: 'Playground' }).click();
        await page.locator('select').first().selectOption('primary');
        await page.getByLabel('Message').fill('Hello');
        await page.getByRole('button', { name: 'Send' }).click();
        await page.locator('.message.assistant .markdown', { hasText: DEMO_SENTENCES['demo-fox'].slice(0, 12) }).waitFor();
        expect(refused).toEqual([]);
      } finally {
        await browser.close();
      }
    }, 60_000);

    test('the dashboard does not open with a wrong password, and shows nothing', async () => {
      const browser = await launchBrowser();
      try {
        const page = await (await browser.newContext(signedIn(world, 'wrong'))).newPage();
        await expect(openPage(page, `${world.origin}/`)).rejects.toThrow(/ERR_INVALID_AUTH_CREDENTIALS|ERR_HTTP_RESPONSE_CODE_FAILURE/);
      } finally {
        await browser.close();
      }
    }, 60_000);

    test('a page of another origin gets nothing, although the browser sends the password by itself', async () => {
      const browser = await launchBrowser();
      try {
        const page = await (await browser.newContext(signedIn(world))).newPage();
        await openPage(page, `${world.origin}/chat/`);
        const statusOf = async (script: string, path: string): Promise<unknown> => {
          const answered = page.waitForResponse((response) => response.url() === `${world.origin}${path}`);
          await page.evaluate(script);
          return (await answered).status();
        };
        const post = (path: string, body: string) =>
          `void fetch('${world.origin}${path}', { method: 'POST', mode: 'no-cors', credentials: 'include', body: ${body} }).catch(() => 0)`;
        // Without the password, the proxy itself would answer 401 under "/api".
        const token = `'{"label":"mine","scope":"admin"}'`;
        expect(await statusOf(post('/api/auth/tokens', token), '/api/auth/tokens')).toBe(403);
        expect(await statusOf(post('/v1/images/edits', 'new FormData()'), '/v1/images/edits')).toBe(403);
      } finally {
        await browser.close();
      }
      const tokens = await world.send(`${world.origin}/api/auth/tokens`, ['Authorization', BASIC]);
      expect([tokens.status, tokens.body.includes('mine')]).toEqual([200, false]);
    }, 60_000);

    test('"/chat/" leads to the chat page with its script, its API and its WebSocket, without a second login', async () => {
      world.chat.received.clear();
      const browser = await launchBrowser();
      try {
        const page = await (await browser.newContext(signedIn(world))).newPage();
        await openPage(page, `${world.origin}/chat/`);
        expect(page.url()).toBe(`${world.chatOrigin}/`);
        // No script may be compiled from a text here, as `waitForFunction` would.
        await page.locator('#user', { hasText: /./ }).waitFor();
        await page.locator('#socket', { hasText: /./ }).waitFor();
        expect(await page.textContent('#user')).toBe(`${USER}@localhost`);
        expect(await page.textContent('#socket')).toBe(`socket of ${USER}@localhost`);
        // The bookmark of somebody who has closed the browser since.
        const later = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
        await expect(openPage(later, `${world.chatOrigin}/`)).rejects.toThrow('ERR_INVALID_AUTH_CREDENTIALS');
      } finally {
        await browser.close();
      }
      for (const path of ['/', '/_app/app.js', '/api/me', '/ws']) {
        const headers = world.chat.received.get(path);
        expect([path, headers?.['x-forwarded-email'], headers?.authorization]).toEqual([path, `${USER}@localhost`, undefined]);
        expect(headers?.cookie ?? '').not.toContain('svc_');
      }
    }, 60_000);
  });
});

const launchBrowser = () =>
  chromium.launch({
    executablePath: BROWSER,
    args: ['--no-sandbox', '--disable-gpu', `--host-resolver-rules=MAP ${HOSTNAME} 127.0.0.1`],
  });

const signedIn = ({ origin }: ProxyWorld, password = PASSWORD) => ({
  ignoreHTTPSErrors: true,
  httpCredentials: { username: USER, password, origin },
});

function openai(world: ProxyWorld): OpenAI {
  const fetchHere = async (url: unknown, init: object = {}) => await undiciFetch(String(url), { ...init, dispatcher: world.agent });
  const fetch: typeof globalThis.fetch = Object.assign(fetchHere);
  return new OpenAI({ baseURL: `${world.origin}/v1`, apiKey: world.createToken('v1-only'), fetch, maxRetries: 0 });
}
