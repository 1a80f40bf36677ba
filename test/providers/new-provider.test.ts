/**
 * A new provider needs a folder, a line in the registry and its name in the kinds: the service runs with one more provider in the registry, and everything else knows it. A
 * sixth kind compiles, builds its image and answers.
 */
import { execFile, spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Service } from '../../src/main.ts';
import { PROVIDERS } from '../../src/providers/registry.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import type { RecordedMachine } from '../support/hardware/recorded-machines.ts';
import { ownEnvironment } from '../support/service.ts';
import { startServiceHere } from '../support/service-here.ts';
import { toy, TOY_SERVER } from '../support/toy-provider/toy.ts';
import { copyWithSixthKind } from './sixth-kind.ts';

const PATIENCE_MS = 60_000;
const WEIGHTS_BYTES = 100_000;
let dir = '';
let url = '';
let service: Service | undefined;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-toy-'));
  for (const each of ['config/slots', 'models/parrot', 'bin']) await mkdir(path.join(dir, each), { recursive: true });
  await writeFile(path.join(dir, 'models/parrot/toy.json'), JSON.stringify({ phrase: 'Polly wants a model', weightsBytes: WEIGHTS_BYTES }));
  await writeFile(path.join(dir, 'models/parrot/weights.bin'), new Uint8Array(WEIGHTS_BYTES));
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  await rm(dir, { recursive: true, force: true });
});

async function start(installed: boolean, recorded?: RecordedMachine): Promise<void> {
  if (installed) await symlink(TOY_SERVER, path.join(dir, 'bin/toy-server'));
  service = await startServiceHere({ dir, providers: { ...PROVIDERS, [toy.kind]: toy }, machine: recorded });
  url = service.url;
}

const slot = async (model = 'parrot', provider: string = toy.kind): Promise<void> =>
  writeFile(path.join(dir, 'config/slots/primary.toml'), `provider = "${provider}"\n\n[model]\ndefault = "${model}"\n`);

async function get(where: string) {
  const answer = await fetch(url + where);
  return JSON.parse(await answer.text());
}

const conditionOf = async (type: string) =>
  (await get('/api/slots/primary')).status?.conditions.find((each: { readonly type: string }) => each.type === type);

async function untilStalled(message: RegExp): Promise<string> {
  let last = '';
  await eventually(
    'the slot stalls',
    async () => {
      const stalled = await conditionOf('Stalled');
      last = JSON.stringify(stalled);
      return stalled?.status === 'True' && message.test(stalled.message);
    },
    PATIENCE_MS,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${last}`);
  });
  return (await conditionOf('Stalled')).reason;
}

test('a slot of a new provider becomes ready and answers through the gateway, and the lists know its models', async () => {
  await slot();
  await start(true);
  await eventually('the slot is ready', async () => (await conditionOf('Ready'))?.status === 'True', PATIENCE_MS);
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'What do you want?' }] }),
  });
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'Polly wants a model' } }] });
  const embed = async (body: object) =>
    fetch(`${url}/v1/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'primary', ...body }),
    });
  expect(await (await embed({ input: 'four' })).json()).toMatchObject({ data: [{ embedding: [4, 0.5] }] });
  const refused = await embed({ input: 5 });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { message: 'Set "input" to a text', code: 'request.invalid', param: 'input' } });
  expect((await get('/api/slots/primary')).status).toMatchObject({ provider: 'npu', backend: 'npu', capabilities: ['chat', 'embedding'] });
  expect((await get('/api/models')).models).toContainEqual(
    expect.objectContaining({ id: 'parrot', provider: 'npu', family: 'toy', present: true }),
  );
  expect((await get('/api/providers')).providers).toContainEqual(
    expect.objectContaining({
      kind: 'npu',
      available: true,
      reason: expect.stringMatching(/^Runs as a process on this machine with "npu": ".*\/toy-server"$/),
      availability: [{ backend: 'npu', available: true, reason: '' }],
    }),
  );
});

test('a model that is not complete, or of another provider, holds the slot up with a reason', async () => {
  await truncate(path.join(dir, 'models/parrot/weights.bin'), 10);
  await slot();
  await start(false);
  expect(await untilStalled(/"weights.bin" of "parrot" is incomplete: it has 10 of 100000 bytes/)).toBe('ModelMissing');
  await writeFile(path.join(dir, 'models/parrot/weights.bin'), new Uint8Array(WEIGHTS_BYTES));
  await slot('parrot', 'gguf');
  expect(await untilStalled(/^"parrot" is no model of provider "gguf"; set "provider" to "npu", or choose another model$/)).toBe(
    'ModelUnusable',
  );
});

test('a program that is missing holds the slot up, and says what to install', async () => {
  await slot();
  await start(false, 'strix-halo-128gb');
  expect(await untilStalled(/^Install "toy-server", and put it on the PATH of the service: it is not on this machine$/)).toBe(
    'ProgramMissing',
  );
  const { providers } = await get('/api/providers');
  const listed = providers.find((each: { readonly kind: string }) => each.kind === 'npu');
  expect(listed).toMatchObject({ available: false, reason: expect.stringMatching(/^Install "toy-server", and put it on the PATH/) });
});

test('a machine without the device says so, in the slot and in the list', async () => {
  await slot();
  await start(true, 'server-without-gpu');
  expect(await untilStalled(/^Backend "npu" is not available here, because this machine has no NPU; /)).toBe('DeviceMissing');
  expect((await get('/api/providers')).providers).toContainEqual(
    expect.objectContaining({
      kind: 'npu',
      available: false,
      reason: '"npu" is not available, because this machine has no NPU; make a device available',
    }),
  );
});

test('a sixth kind is a folder and four lines outside it: it compiles, builds its image and answers', async () => {
  const copy = path.join(dir, 'copy');
  expect(await copyWithSixthKind(copy)).toBe(4);
  const run = promisify(execFile);
  await writeFile(
    path.join(copy, 'tsconfig.src.json'),
    JSON.stringify({ extends: './tsconfig.json', include: ['src/main.ts', 'src/cli/svcctl.ts'] }),
  );
  await run(process.execPath, ['node_modules/typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.src.json'], { cwd: copy });

  const podman = path.join(dir, 'bin/podman');
  await writeFile(podman, `#!/bin/sh\necho "$@" > ${dir}/call\nprintf 'sha256:${'b'.repeat(64)}' > "$3"\n`);
  await chmod(podman, 0o755);
  await symlink(path.join(copy, 'src/providers/toy/toy-server.mjs'), path.join(dir, 'bin/toy-server'));
  const port = await freePort();
  const env = {
    ...ownEnvironment(),
    PATH: `${path.join(dir, 'bin')}:${process.env['PATH'] ?? ''}`,
    SVC_LISTEN: `127.0.0.1:${port}`,
    SVC_RUNTIME: 'process',
    SVC_ON_EXIT: 'stop',
    SVC_CONFIG_DIR: path.join(dir, 'config'),
    SVC_STATE_DIR: path.join(dir, 'state'),
    SVC_MODELS_DIR: path.join(dir, 'models'),
  };
  const program = path.join(copy, 'src/cli/svcctl.mjs');
  await run(process.execPath, [program, 'toolbox', 'build', 'toy'], { env });
  expect(await readFile(path.join(dir, 'call'), 'utf8')).toMatch(/--tag localhost\/svc-toolbox-toy-npu:v1 \S+\/toolboxes\/toy\n$/);
  expect(await readFile(path.join(dir, 'config/toolboxes.toml'), 'utf8')).toContain(
    '[toy.npu]\nimage = "localhost/svc-toolbox-toy-npu:v1"',
  );

  await slot('parrot', 'toy');
  const child = spawn(process.execPath, [program, 'serve'], { env, stdio: 'ignore' });
  const closed = new Promise((resolve) => child.once('close', resolve));
  try {
    const ask = async () =>
      fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ messages: [{ role: 'user', content: 'What do you want?' }] }),
      }).then(async (answer) => answer.text());
    await eventually('the sixth kind answers', async () => (await ask().catch(() => '')).includes('Polly wants a model'), PATIENCE_MS);
  } finally {
    child.kill('SIGTERM');
    await closed;
  }
}, 180_000);
