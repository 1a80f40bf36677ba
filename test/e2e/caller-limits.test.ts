/** Limits of tokens on the real service with three processes: official clients, floods, edits while requests run. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import Anthropic from '@anthropic-ai/sdk';
import { ChatOpenAI } from '@langchain/openai';
import OpenAI, { PermissionDeniedError, RateLimitError } from 'openai';
import { eventually } from '../support/eventually.ts';
import { ownEnvironment, startService, type Service } from '../support/service.ts';

let service: Service;

beforeAll(async () => {
  service = await startService({
    runtime: 'process',
    environment: { SVC_AUTH_ENABLED: '1', SVC_PROXY_SECRET: 'a-secret-of-the-proxy', SVC_WORKERS: '3' },
  });
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\naliases = ["gpt"]\n');
  const token = await newToken('first', []);
  await eventually('the model answers', async () => (await chat(token.secret)).status === 200, 60_000);
}, 120_000);
afterAll(async () => await service?.dispose(), 60_000);

async function svcctl(...args: readonly string[]) {
  const child = spawn(process.execPath, ['src/cli/svcctl.mjs', ...args], {
    env: { ...ownEnvironment(), ...service.environment },
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

async function newToken(label: string, limits: readonly string[]) {
  const { code, out, err } = await svcctl('token', 'create', '--label', label, ...limits);
  expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining('shown once') });
  const secret = out.trim();
  return { secret, id: secret.slice(4, 12) };
}

const BODY = { model: 'primary', max_tokens: 1, messages: [{ role: 'user' as const, content: 'Hello' }] };
const chat = async (token: string, more: object = {}) =>
  await fetch(`${service.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...BODY, ...more }),
  });
const openai = (apiKey: string, maxRetries = 0): OpenAI => new OpenAI({ apiKey, baseURL: `${service.url}/v1`, maxRetries });

test('the official clients get typed errors, and what the headers say', async () => {
  const { secret } = await newToken('clients', ['--requests-per-minute', '1']);
  await openai(secret).chat.completions.create(BODY);
  const refused: unknown = await openai(secret)
    .chat.completions.create(BODY)
    .catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(RateLimitError);
  expect(refused).toMatchObject({ status: 429, code: 'limit.requests' });
  if (!(refused instanceof RateLimitError)) throw new Error('no answer');
  expect(Number(refused.headers.get('retry-after'))).toBe(Math.ceil(Number(refused.headers.get('retry-after-ms')) / 1000));
  const anthropic = new Anthropic({ apiKey: secret, baseURL: service.url, maxRetries: 0 });
  await expect(anthropic.messages.create(BODY)).rejects.toThrow(Anthropic.RateLimitError);
  const langchain = new ChatOpenAI({ apiKey: secret, model: 'primary', maxRetries: 0, configuration: { baseURL: `${service.url}/v1` } });
  await expect(langchain.invoke('Hello')).rejects.toMatchObject({ status: 429 });
}, 120_000);

test('a client that waits as it is told is answered', async () => {
  const { secret } = await newToken('patient', ['--max-in-flight', '1']);
  // Its head comes with its first token.
  const long = await chat(secret, { max_tokens: 1000, ignore_eos: true, stream: true });
  expect([long.status, (await chat(secret)).status]).toEqual([200, 429]);
  const answer = await openai(secret, 8).chat.completions.create(BODY);
  expect(answer.choices).toHaveLength(1);
  expect(await long.text()).toContain('[DONE]');
}, 120_000);

test('32 connections over three processes never get more than the limit, and no less', async () => {
  const { secret } = await newToken('flood', ['--requests-per-minute', '300']);
  const startedAt = performance.now();
  let admitted = 0;
  let refused = 0;
  const client = async (): Promise<void> => {
    while (performance.now() - startedAt < 30_000) {
      const { status, headers } = await chat(secret);
      if (status === 200) admitted += 1;
      else if (status === 429) refused += 1;
      else throw new Error(`status ${status}`);
      // A client that ignores what it is told, but not a busy loop.
      if (status === 429 && headers.has('retry-after')) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  await Promise.all(Array.from({ length: 32 }, client));
  // All of it within one minute.
  expect({ admitted, isRefused: refused > 0 }).toEqual({ admitted: 300, isRefused: true });
}, 120_000);

test('tokens of streams and other answers count; an edit counts from the next request on', async () => {
  const { secret, id } = await newToken('tokens', ['--tokens-per-minute', '2000']);
  const left = async (more: object = {}): Promise<number> => {
    const answer = await chat(secret, more);
    await answer.text();
    return Number(answer.headers.get('x-ratelimit-remaining-tokens') ?? -1);
  };
  const first = await left();
  await left({ stream: true, stream_options: { include_usage: true }, max_tokens: 50 });
  expect(first).toBeGreaterThan(1900);
  await eventually('the tokens of the stream count', async () => (await left()) < first - 50, 5000);
  const edited = await svcctl('token', 'edit', id, '--tokens-per-minute', '10', '--label', 'few');
  expect(edited).toEqual({ code: 0, err: '', out: `token/${id} changed: it never expires; tokens_per_minute = 10\n` });
  const refused = await chat(secret);
  expect([refused.status, await refused.json()]).toMatchObject([429, { error: { code: 'limit.tokens' } }]);
  expect((await svcctl('token', 'edit', id, '--tokens-per-minute', 'none')).out).toContain('no limits');
  expect(await left()).toBe(-1);
  expect((await svcctl('token', 'list')).out).toMatch(new RegExp(`^${id} .*none +few$`, 'm'));
}, 60_000);

test('models: others do not exist, in lists and in requests', async () => {
  const { secret } = await newToken('models', ['--models', 'gpt', '--max-output-tokens', '2']);
  const models = await openai(secret).models.list();
  expect(models.data.map(({ id }) => id)).toEqual(['gpt']);
  await expect(openai(secret).chat.completions.create(BODY)).rejects.toThrow(PermissionDeniedError);
  const answer = await openai(secret).chat.completions.create({ ...BODY, model: 'gpt', max_tokens: 400 });
  expect(answer).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 2 } });
}, 60_000);

test('a token that is revoked while it streams ends its stream, and its counts harm nobody', async () => {
  const { secret, id } = await newToken('leaver', ['--max-in-flight', '1']);
  const stream = await chat(secret, { stream: true, max_tokens: 300 });
  expect((await svcctl('token', 'revoke', id)).code).toBe(0);
  expect((await chat(secret)).status).toBe(401);
  expect(await stream.text()).toContain('[DONE]');
}, 60_000);

test('callers without a token have tables in the same file; a mistake there changes nothing', async () => {
  const file = join(service.configDir, 'tokens.toml');
  const before = await readFile(file, 'utf8');
  const ask = async (email: string) =>
    await fetch(`${service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'x-forwarded-email': email, 'x-svc-proxy-secret': 'a-secret-of-the-proxy', 'content-type': 'application/json' },
      body: JSON.stringify(BODY),
    });
  await writeFile(file, `[callers."*@example.com"]\nrequests_per_minute = 1\n\n${before}`, { mode: 0o600 });
  const statuses: number[] = [];
  for (const email of ['anna@example.com', 'Anna@example.com', 'ben@example.com', 'carl@other.test', 'carl@other.test'])
    statuses.push((await ask(email)).status);
  expect(statuses).toEqual([200, 429, 200, 200, 200]);
  await writeFile(file, `[callers."*@example.com"]\nrequests_per_minute = 0\n\n${before}`, { mode: 0o600 });
  expect((await ask('anna@example.com')).status).toBe(429);
  expect(service.output()).toContain('callers.*@example.com.requests_per_minute');
}, 60_000);

test.each([
  [['--requests-per-minute', 'many'], 'Invalid value of --requests-per-minute'],
  [['--requests-per-minute', '0'], 'Invalid value of --requests-per-minute'],
  [['--max-in-flight', '1.5'], 'Invalid value of --max-in-flight'],
  [['--models', ''], 'Invalid value of --models'],
])('svcctl token create %j is a mistake of usage', async (args, message) => {
  expect(await svcctl('token', 'create', '--label', 'x', ...args)).toMatchObject({ code: 64, err: expect.stringContaining(message) });
});
