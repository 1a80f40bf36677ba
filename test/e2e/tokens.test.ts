/** The real service with authentication: tokens of `svcctl`, the official client, and revocation from the next request on. */
import { spawn } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI, { AuthenticationError, PermissionDeniedError } from 'openai';
import { eventually } from '../support/eventually.ts';
import { ownEnvironment, startService, type Service } from '../support/service.ts';

const SECRET = 'a-secret-of-the-proxy';
let service: Service;

beforeAll(async () => {
  service = await startService({ runtime: 'process', environment: { SVC_AUTH_ENABLED: '1', SVC_PROXY_SECRET: SECRET } });
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
}, 120_000);
afterAll(async () => await service.dispose(), 60_000);

async function svcctl(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, ['src/cli/svcctl.mjs', ...args], {
    env: { ...ownEnvironment(), ...service.environment, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out, err };
}

async function newToken(label: string, scope: string): Promise<string> {
  const { code, out, err } = await svcctl(['token', 'create', '--label', label, '--scope', scope]);
  // Whoever names no directory may mean that of another service.
  const file = join(service.configDir, 'tokens.toml');
  expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining('shown once') });
  expect(err).toContain(`scope "${scope}", in ${file})`);
  expect(out).toMatch(/^svc_[0-9a-f]{8}\.[A-Za-z0-9_-]{43}\n$/);
  return out.trim();
}

const get = async (path: string, headers: Readonly<Record<string, string>> = {}): Promise<number> =>
  (await fetch(`${service.url}${path}`, { headers })).status;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('A service with authentication', () => {
  test('answers the official client with a token, and its errors are those of the client', async () => {
    const token = await newToken('laptop', 'v1-only');
    const client = new OpenAI({ apiKey: token, baseURL: `${service.url}/v1`, maxRetries: 3 });
    const chat = async (from = client) =>
      await from.chat.completions.create({ model: 'primary', max_tokens: 3, messages: [{ role: 'user', content: 'Hello' }] });
    await eventually('the model answers', async () => (await chat().catch(() => undefined)) !== undefined, 60_000);
    const stranger = new OpenAI({ apiKey: `svc_00000000.${'A'.repeat(43)}`, baseURL: `${service.url}/v1`, maxRetries: 0 });
    await expect(chat(stranger)).rejects.toThrow(AuthenticationError);
    const reader = new OpenAI({ apiKey: await newToken('dashboard', 'read-only'), baseURL: `${service.url}/v1`, maxRetries: 0 });
    await expect(chat(reader)).rejects.toThrow(PermissionDeniedError);
    expect(await get('/api/slots', bearer(token))).toBe(403);
    expect(await get('/api/slots')).toBe(401);
    expect(await get('/v1/models')).toBe(200);
    // As Azure's clients send it, and as people who forget the scheme do.
    for (const headers of [{ 'api-key': token }, { authorization: token }]) expect(await get('/v1/models/primary', headers)).toBe(200);
    expect(await get('/v1/models/primary', { 'api-key': 'svc_0' })).toBe(401);
  }, 120_000);

  test('refuses a token from the first request after its revocation on, however that is done', async () => {
    const admin = await newToken('admin', 'admin');
    const create = async (): Promise<{ readonly id: string; readonly token: string }> => {
      const response = await fetch(`${service.url}/api/auth/tokens`, {
        method: 'POST',
        headers: { ...bearer(admin), 'content-type': 'application/json' },
        body: JSON.stringify({ label: 'short', scope: 'all' }),
      });
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
      const { id, token } = Object(await response.json());
      return { id: String(id), token: String(token) };
    };
    const file = join(service.configDir, 'tokens.toml');
    const ways: readonly ((id: string) => Promise<unknown>)[] = [
      async (id) => await fetch(`${service.url}/api/auth/tokens/${id}`, { method: 'DELETE', headers: bearer(admin) }),
      async (id) => await svcctl(['token', 'revoke', id]),
      async (id) => await writeFile(file, (await readFile(file, 'utf8')).replace(new RegExp(`\\[tokens\\.${id}\\][^[]*`), '')),
    ];
    for (const revoke of ways) {
      const { id, token } = await create();
      for (let time = 0; time < 3; time += 1) expect(await get('/api/slots', bearer(token))).toBe(200);
      await revoke(id);
      expect(await get('/api/slots', bearer(token))).toBe(401);
    }
    expect(await get('/api/slots', bearer(admin))).toBe(200);
  }, 120_000);

  test('refuses a token from its end on, which svcctl and the API set', async () => {
    const file = join(service.configDir, 'tokens.toml');
    const { code, out } = await svcctl(['token', 'create', '--label', 'guest', '--scope', 'all', '--expires', '30d']);
    const [token, id] = [out.trim(), /^svc_([0-9a-f]{8})/.exec(out)?.[1] ?? ''];
    expect([code, await get('/api/slots', bearer(token))]).toEqual([0, 200]);
    const end = /^expires_at = "(.*)"$/m.exec(await readFile(file, 'utf8'))?.[1] ?? '';
    expect((Date.parse(end) - Date.now()) / 86_400_000).toBeCloseTo(30, 1);
    expect((await svcctl(['token', 'list'])).out).toMatch(new RegExp(`^${id} .*${end}`, 'm'));
    await writeFile(file, (await readFile(file, 'utf8')).replace(end, new Date(Date.now() - 1000).toISOString()));
    const refused = await fetch(`${service.url}/api/slots`, { headers: bearer(token) });
    expect([refused.status, await refused.json()]).toMatchObject([401, { error: { code: 'auth.expired' } }]);
    for (const wrong of ['yesterday', '2001-01-01', '0s', '99999999d'])
      expect(await svcctl(['token', 'create', '--label', 'x', '--expires', wrong])).toMatchObject({
        code: 64,
        err: expect.stringContaining(`Invalid end "${wrong}"`),
      });
  }, 60_000);

  test('believes the e-mail address of a proxy that proves itself, and nobody else', async () => {
    const email = { 'x-forwarded-email': 'anna' };
    expect(await get('/api/slots', email)).toBe(401);
    expect(await get('/api/slots', { ...email, 'x-svc-proxy-secret': 'wrong' })).toBe(401);
    expect(await get('/api/slots', { ...email, 'x-svc-proxy-secret': SECRET })).toBe(200);
    expect(await get('/api/slots', { ...email, 'x-svc-proxy-secret': SECRET, authorization: 'Bearer nonsense' })).toBe(401);
    expect(await get('/api/slots', { ...email, 'x-svc-proxy-secret': SECRET, authorization: 'Basic YTpi' })).toBe(200);
  });

  test('is managed without a token through its socket by root and by its own user, and by nobody else', async () => {
    const socketPath = join(service.environment['SVC_STATE_DIR'] ?? '', 'api.sock');
    expect((await stat(socketPath)).mode & 0o777).toBe(0o600);
    const statusOf = async (headers: Readonly<Record<string, string>> = {}): Promise<number | undefined> =>
      await new Promise((resolve, reject) => {
        const sent = request({ socketPath, path: '/api/auth/tokens', headers }, (response) => resolve(response.resume().statusCode));
        sent.on('error', reject);
        sent.end();
      });
    expect(await statusOf()).toBe(200);
    // What a token may do is its own matter, also here.
    expect(await statusOf(bearer('nonsense'))).toBe(401);
    expect(await statusOf(bearer(await newToken('reader', 'read-only')))).toBe(403);
    // Pages of other sites cannot reach a socket, but a proxy might pass them on.
    expect(await statusOf({ origin: 'https://evil.example' })).toBe(403);
    expect(await get('/api/auth/tokens')).toBe(401);
    const restarted = await svcctl(['slot', 'restart', 'primary']);
    expect(restarted).toMatchObject({ code: 0 });
    expect(service.output()).toMatch(/"who":"local","scope":"admin"/);
    expect(await svcctl(['get', 'slots', '--server', service.url])).toMatchObject({ code: 1 });
  }, 120_000);

  test('records who changes what, and shows values of environment variables to administrators alone', async () => {
    const [admin, reader] = [await newToken('anna', 'admin'), await newToken('reader', 'read-only')];
    const response = await fetch(`${service.url}/api/slots/primary`, {
      method: 'PATCH',
      headers: { ...bearer(admin), 'content-type': 'application/json', 'x-request-id': 'edit-1' },
      body: JSON.stringify({ spec: { priority: 3, env: { LANG: 'hunter2' } } }),
    });
    expect(response.status).toBe(200);
    const seenBy = async (path: string, token: string): Promise<string> =>
      await (await fetch(`${service.url}${path}`, { headers: bearer(token) })).text();
    for (const path of ['/api/slots', '/api/slots/primary']) {
      expect(await seenBy(path, admin)).toContain('"env":{"LANG":"hunter2"}');
      expect(await seenBy(path, reader)).toContain('"env":{"LANG":"(hidden)"}');
    }
    const sentence = '"anna" edited the slot "primary": set priority to 3, set env.LANG to "(hidden)"';
    const timeline = async (): Promise<string> => await seenBy('/api/slots/primary/timeline', reader);
    await eventually('the timeline has the edit', async () => (await timeline()).includes(JSON.stringify(sentence)));
    expect(await timeline()).not.toContain('hunter2');
    const line =
      service
        .output()
        .split('\n')
        .find((text) => text.includes(JSON.stringify(sentence))) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({ audit: true, who: 'anna', scope: 'admin', address: '127.0.0.1', slot: 'primary' });
    const listed = await seenBy('/api/audit?by=anna', admin);
    const id = admin.slice(4, 12);
    expect(JSON.parse(listed)).toMatchObject({ changes: [{ who: 'anna', caller: `token:${id}`, slot: 'primary', request_id: 'edit-1' }] });
    expect(listed).not.toContain('hunter2');
    expect(await readFile(join(service.dir, 'state', 'audit', 'changes.jsonl'), 'utf8')).toContain('"request_id":"edit-1"');
    expect(service.output()).toContain('The tokens have changed: added');
    expect(service.output()).not.toContain('hunter2');
  }, 120_000);

  test('is used by svcctl with a token from the environment, and keeps secrets out of its log', async () => {
    const token = await newToken('svcctl', 'admin');
    expect(await svcctl(['get', 'slots', '--server', service.url])).toMatchObject({
      code: 1,
      err: expect.stringContaining('auth.required'),
    });
    expect(await svcctl(['get', 'slots', '--server', service.url], { SVC_TOKEN: token })).toMatchObject({ code: 0 });
    const listed = await svcctl(['token', 'list', '--server', service.url], { SVCCTL_TOKEN: token });
    expect(listed.out).toMatch(/^ID +SCOPE +CREATED +EXPIRES +LAST USED +LIMITS +LABEL\n/);
    expect(listed.out).toContain('laptop');
    const secret = token.slice(token.indexOf('.') + 1);
    for (const text of [listed.out, service.output(), await readFile(join(service.configDir, 'tokens.toml'), 'utf8')])
      expect(text).not.toContain(secret);
  }, 120_000);
});
