/** A small server as a declared engine of the whole service: what users see when it works, and when its definition is wrong. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Service } from '../../../src/main.ts';
import { PROVIDERS } from '../../../src/providers/registry.ts';
import { eventually } from '../../support/eventually.ts';
import { startServiceHere } from '../../support/service-here.ts';

const PATIENCE_MS = 60_000;
const DEFINITION = {
  serves: 'serves = ["chat"]',
  backends: 'backends = ["cpu"]',
  command:
    'command = ["small-server", "--model", "{model}", "--host", "{host}", "--port", "{port}", "--as", "secret-name", "--ctx", "{context?}"]',
  models: 'models = { format = "any-file" }',
  name: 'model_name = "secret-name"',
  health: 'health = { path = "/health" }',
  paths: 'paths = { "/v1/chat/completions" = "/talk" }',
  flags: 'safe_flags = ["--ctx"]',
};
let dir = '';
let service: Service | undefined;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-small-'));
  for (const each of ['config/slots', 'config/engines', 'models', 'bin']) await mkdir(path.join(dir, each), { recursive: true });
  await writeFile(path.join(dir, 'models/words.bin'), new Uint8Array(1000));
  await symlink(path.resolve(import.meta.dirname, 'small-server.mjs'), path.join(dir, 'bin/small-server'));
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  await rm(dir, { recursive: true, force: true });
});

const define = async (change: Partial<typeof DEFINITION> = {}, name = 'small'): Promise<void> =>
  await writeFile(path.join(dir, `config/engines/${name}.toml`), `${Object.values({ ...DEFINITION, ...change }).join('\n')}\n`);
const slot = async (more = '', name = 'primary', engine = 'small'): Promise<void> =>
  await writeFile(path.join(dir, `config/slots/${name}.toml`), `provider = "${engine}"\n[model]\ndefault = "words.bin"\n${more}`);
const start = async (): Promise<void> => {
  service = await startServiceHere({ dir, providers: PROVIDERS });
};
const get = async (where: string) => JSON.parse(await (await fetch(`${service?.url}${where}`)).text());

async function until(
  name: string,
  type: string,
  status: string,
  message = /./,
): Promise<{ readonly reason: string; readonly message: string }> {
  let last: { readonly status: string; readonly reason: string; readonly message: string } | undefined;
  await eventually(
    `${name} ${type}=${status}`,
    async () => {
      const { conditions } = (await get(`/api/slots/${name}`)).status ?? { conditions: [] };
      last = conditions.find((each: { readonly type: string }) => each.type === type);
      return last?.status === status && message.test(last.message);
    },
    PATIENCE_MS,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(last)}`);
  });
  return last ?? { reason: '', message: '' };
}
const chat = async (body: object = {}) =>
  await fetch(`${service?.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'primary', messages: [{ role: 'user', content: 'Hello' }], ...body }),
  });

test('answers under its own path and the name that its server knows, whole and as a stream', async () => {
  await define();
  await slot('context = 4096\n');
  await start();
  await until('primary', 'Ready', 'True');
  expect(await (await chat()).json()).toMatchObject({ choices: [{ message: { content: 'Hello at 4096 length' } }] });
  expect(await (await chat({ stream: true })).text()).toMatch(/^data: .*Hello at 4096 length.*\n\ndata: \[DONE\]\n\n$/s);
  expect((await get('/api/slots/primary')).status).toMatchObject({ provider: 'small', backend: 'cpu', capabilities: ['chat'] });
  const embeddings = await fetch(`${service?.url}/v1/embeddings`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'primary', input: 'x' }),
  });
  expect(embeddings.status).toBe(400);
}, 120_000);

test('the API may set only arguments that the definition calls safe, and writes no definition', async () => {
  await define();
  await slot();
  await start();
  await until('primary', 'Ready', 'True');
  const edit = async (args: readonly string[]) =>
    await fetch(`${service?.url}/api/slots/primary`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ spec: { model: { args } } }),
    });
  const refused = await edit(['--preload', 'x.so']);
  expect(refused.status).toBe(422);
  expect(await refused.text()).toContain('The API may not set the argument');
  expect((await edit(['--ctx', '7'])).status).toBe(200);
  await eventually('the new server answers', async () => (await (await chat()).text()).includes('at 7 length'), PATIENCE_MS);
  expect((await fetch(`${service?.url}/api/engines`, { method: 'PUT', body: '{}' })).status).toBe(404);
}, 120_000);

test('a program that is not there stalls only its slot, and says where it is named', async () => {
  await define();
  await define({ command: DEFINITION.command.replace('small-server', 'no-such-server') }, 'absent');
  await slot();
  await slot('', 'second', 'absent');
  await start();
  await until('primary', 'Ready', 'True');
  const { message } = await until('second', 'Stalled', 'True');
  expect(message).toContain(
    'Program "no-such-server" is not on this machine; install the engine "absent", or correct "command" in "engines/absent.toml"',
  );
  const { providers } = await get('/api/providers');
  expect(providers).toContainEqual(
    expect.objectContaining({ kind: 'absent', available: false, reason: expect.stringContaining('no-such-server') }),
  );
}, 120_000);

test('a path of health that answers with a web page keeps the slot from becoming ready, with the fix', async () => {
  await define({ health: 'health = { path = "/page" }' });
  await slot();
  await start();
  await until('primary', 'Ready', 'False', /"\/page" answers with a web page: set "health.path" of the engine/);
}, 120_000);

test('an unknown engine is a condition of the slot, and the file of the slot is valid', async () => {
  await slot('', 'primary', 'smal');
  await start();
  const stalled = await until('primary', 'Stalled', 'True');
  expect(stalled).toMatchObject({ reason: 'ProviderMissing', message: expect.stringContaining('There is no engine named "smal"') });
  await until('primary', 'SpecValid', 'True');
  await define({}, 'smal');
  await until('primary', 'Ready', 'True');
}, 120_000);

test('a slot that names an engine which was never valid shows the mistake of its file', async () => {
  await define({ command: 'command = ["small-server", "{model}", "{host}"]' });
  await slot();
  await start();
  await until('primary', 'SpecValid', 'False', /small\.toml:3:1: command: Pass "\{port\}" to the server/);
  await until('primary', 'Stalled', 'True', /There is no engine named "small"/);
}, 120_000);

test('a backend that the engine lacks and a model of another format are refused with the fix', async () => {
  await define({ models: 'models = { format = "safetensors-directory" }' });
  await slot();
  await start();
  const { message } = await until('primary', 'Stalled', 'True');
  expect(message).toContain('"words.bin" is no model of provider "small", which loads "safetensors-directory"; choose another model');
  await define({}, 'other');
  await writeFile(path.join(dir, 'config/slots/second.toml'), 'provider = "other"\nbackend = "cuda"\n[model]\ndefault = "words.bin"\n');
  await until('second', 'Stalled', 'True', /The engine "other" does not compute with "cuda"; set "backend" to "cpu"/);
}, 120_000);

test('an engine that fetches its models gets the name, and the store is not asked for it', async () => {
  await define({
    models: 'models = { format = "name" }',
    command: DEFINITION.command.replace('"--as", "secret-name"', '"--as", "{model}"'),
    name: 'model_name = "{model_id}"',
  });
  await writeFile(
    path.join(dir, 'config/slots/primary.toml'),
    'provider = "small"\n[model]\ndefault = "org/some-model"\n[resources]\nmemory = "64Mi"\n',
  );
  await start();
  await until('primary', 'Ready', 'True');
  expect(await (await chat()).json()).toMatchObject({ choices: [{ message: { content: 'Hello at any length' } }] });
}, 120_000);

test('sleeps while its slot is idle, says so, and answers the request that wakes it', async () => {
  const sleep =
    'sleep = { enter = "POST /nap", leave = "POST /wake", state = "GET /naps" }\ndrain = { in_flight_metric = "small:running" }\n';
  await define({ flags: `safe_flags = ["--ctx"]\n${sleep}` });
  await slot('[lifecycle]\nidle_timeout = "2s"\n');
  await start();
  await until('primary', 'Sleeping', 'True');
  const { status } = await get('/api/slots/primary');
  expect([status.state, status.restarts, status.endpoint ?? null]).toEqual(['idle', 0, null]);
  expect(await (await chat()).json()).toMatchObject({ choices: [{ message: { content: 'Hello at any length' } }] });
  await until('primary', 'Sleeping', 'False');
  await until('primary', 'Sleeping', 'True');
  expect((await get('/api/slots/primary')).status.restarts).toBe(0);
}, 120_000);
