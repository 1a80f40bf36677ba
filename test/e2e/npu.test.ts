/** The NPU as a user has it on a host without containers: the whole service, a stand-in for FastFlowLM as its program, and a recording in the place of the hardware. */
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile, cp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Service } from '../../src/main.ts';
import { probeForm, PROBE_FORM_TYPE } from '../../src/providers/decide/judge-status.ts';
import { PROVIDERS } from '../../src/providers/registry.ts';
import { eventually } from '../support/eventually.ts';
import type { RecordedMachine } from '../support/hardware/recorded-machines.ts';
import { startServiceHere } from '../support/service-here.ts';

const PATIENCE_MS = 60_000;
let dir = '';
let url = '';
let service: Service | undefined;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-npu-'));
  for (const each of ['config/slots', 'models', 'bin']) await mkdir(path.join(dir, each), { recursive: true });
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  await rm(dir, { recursive: true, force: true });
});

async function start(machine: RecordedMachine, installed?: readonly string[]): Promise<void> {
  // The program keeps what it was asked for beside itself.
  await cp('test/support/flm', path.join(dir, 'flm'), { recursive: true });
  await symlink(path.resolve('node_modules'), path.join(dir, 'node_modules'));
  await symlink(path.join(dir, 'flm/flm.mjs'), path.join(dir, 'bin/flm'));
  if (installed !== undefined) await writeFile(path.join(dir, 'flm/installed.txt'), installed.join('\n'));
  service = await startServiceHere({ dir, providers: PROVIDERS, machine });
  url = service.url;
}

const slot = async (model: string): Promise<void> =>
  writeFile(path.join(dir, 'config/slots/npu.toml'), `provider = "npu"\n\n[model]\ndefault = "${model}"\n`);

async function get(where: string) {
  const answer = await fetch(url + where);
  return JSON.parse(await answer.text());
}

async function condition(type: string) {
  const { status } = await get('/api/slots/npu');
  return status?.conditions.find((each: { readonly type: string }) => each.type === type);
}

async function untilTrue(type: string): Promise<{ readonly reason: string; readonly message: string }> {
  let last = '';
  const holds = async (): Promise<boolean> => {
    last = JSON.stringify((await get('/api/slots/npu')).status);
    return (await condition(type))?.status === 'True';
  };
  await eventually(`the slot is ${type}`, holds, PATIENCE_MS).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${last}`);
  });
  return condition(type);
}

const notes = async (): Promise<readonly string[]> =>
  (await readFile(path.join(dir, 'flm/notes.txt'), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');

async function ask(where: string, body: object) {
  const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'npu', ...body }) };
  return JSON.parse(await (await fetch(url + where, options)).text());
}

test('one slot serves chats, embeddings and transcriptions at once, and its models are those that its program lists', async () => {
  await slot('llama3.2:1b');
  await start('strix-halo-128gb');
  await untilTrue('Ready');
  const transcribe = async () => {
    const body = new Uint8Array(probeForm('npu'));
    return (await fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', headers: { 'content-type': PROBE_FORM_TYPE }, body })).json();
  };
  const [said, embedded, heard] = await Promise.all([
    ask('/v1/chat/completions', { messages: [{ role: 'user', content: 'hello' }] }),
    ask('/v1/embeddings', { input: 'four' }),
    transcribe(),
  ]);
  expect(said).toMatchObject({ model: 'llama3.2:1b', choices: [{ message: { content: 'You said: hello' } }] });
  expect(embedded).toMatchObject({ data: [{ embedding: [4, 0.5, -0.25] }] });
  expect(heard).toMatchObject({ text: expect.stringMatching(/^Heard \d+ bytes\.$/) });
  const { status } = await get('/api/slots/npu');
  expect(status).toMatchObject({ provider: 'npu', backend: 'npu', capabilities: ['chat', 'embedding', 'transcription'] });
  const { models } = await get('/api/models');
  expect(models).toContainEqual(expect.objectContaining({ id: 'llama3.2:1b', provider: 'npu', present: true, selectable: true }));
  expect(models).toContainEqual(
    expect.objectContaining({
      id: 'qwen3:4b',
      provider: 'npu',
      present: false,
      selectable: false,
      reason: expect.stringMatching(/^The weights of .*; fetch them with/),
    }),
  );
  expect((await get('/api/providers')).providers).toContainEqual(expect.objectContaining({ kind: 'npu', available: true }));
  await service?.stop();
  service = undefined;
  // Nothing was downloaded, and nothing crashed.
  expect(await notes()).toEqual([expect.stringMatching(/^serve llama3\.2:1b .*--asr 1 --embed 1/)]);
});

test('a model whose weights are not there is not started, as the program would download it', async () => {
  await slot('qwen3:4b');
  await start('strix-halo-128gb');
  expect(await untilTrue('Stalled')).toMatchObject({
    reason: 'ModelMissing',
    message: expect.stringMatching(/; fetch them with "flm pull qwen3:4b"/),
  });
  await slot('lama3.2:1b');
  await eventually(
    'another reason',
    async () => /did you mean "llama3.2:1b"/.test((await condition('Stalled'))?.message ?? ''),
    PATIENCE_MS,
  );
  expect(await notes()).toEqual([]);
});

test('on a machine without an NPU, the slot says so, and no models of it are offered', async () => {
  await slot('llama3.2:1b');
  await start('w7900');
  expect(await untilTrue('Stalled')).toMatchObject({
    reason: 'DeviceMissing',
    message: expect.stringMatching(/^Backend "npu" is not available here, because this machine has no NPU; /),
  });
  expect((await get('/api/models')).models.filter(({ provider }: { readonly provider: string }) => provider === 'npu')).toEqual([]);
  expect((await get('/api/providers')).providers).toContainEqual(
    expect.objectContaining({
      kind: 'npu',
      available: false,
      reason: expect.stringMatching(/^"npu" is not available, because this machine has no NPU; /),
    }),
  );
  expect(await notes()).toEqual([]);
});
