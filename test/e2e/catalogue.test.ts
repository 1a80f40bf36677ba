/** Slots whose models are in `models.toml`, which is edited while the service runs: with a real service, a real model server, and a Hub on this machine. */
import { rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES, encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile, type VirtualFile } from '../support/hub/virtual-file.ts';
import { chatText, condition, isAnswering, startService, type Service } from '../support/service.ts';

const fox = bufferFile(Buffer.from(encodeDemoModel('demo-fox')));
const owl = bufferFile(Buffer.from(encodeDemoModel('demo-owl')));
const entry = (id: string, name: string, { sizeBytes, sha256 }: VirtualFile): string =>
  `[[models]]\nid = "${id}"\nkind = "chat"\nlicense = "mit"\n[[models.files]]\nrepo = "o/r"\nfile = "${name}"\nsize = ${sizeBytes}\nsha256 = "${sha256}"\n`;
const STEADY = entry('steady', 'fox.gguf', fox);
const slotOf = (model: string) => `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${model}"\n`;

let hub: FakeHub;
let service: Service;
beforeAll(async () => {
  const files = new Map([
    ['fox.gguf', fox],
    ['owl.gguf', owl],
  ]);
  hub = await startFakeHub({ repos: [{ name: 'o/r', commit: 'c'.repeat(40), files }] });
  service = await startService({ runtime: 'process', environment: { HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent' } });
}, 120_000);
afterAll(async () => {
  await service.dispose();
  await hub.close();
}, 60_000);

/** As an editor does: to a temporary file that is then renamed. */
async function save(text: string): Promise<void> {
  const file = path.join(service.configDir, 'models.toml');
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

const run = (...args: string[]) => svcctl([...args, '--server', service.url]);
const sayBy = async (model: string): Promise<string> => await chatText(await service.chat({ model }));

test('an entry is pulled by the slot that names it; an edit swaps the model of its slot, and disturbs no other one', async () => {
  await service.save('primary', slotOf('steady'));
  await service.save('second', slotOf('changing'));
  // The slots are there before their models: they become known without a restart.
  const stalled = await service.until(
    'second',
    'stalled',
    (seen) => seen?.status.conditions.some(({ reason }) => reason === 'ModelMissing') === true,
  );
  expect(stalled.status.conditions.map(({ message }) => message).join()).toContain('or use an id from the catalogue');
  await save(STEADY + entry('changing', 'fox.gguf', fox));
  for (const name of ['primary', 'second']) await service.until(name, 'ready', isAnswering);
  expect([await sayBy('primary'), await sayBy('second')]).toEqual([DEMO_SENTENCES['demo-fox'], DEMO_SENTENCES['demo-fox']]);
  const before = await service.slot('primary');

  // A mistake in an entry changes nothing for its slot, and is reported.
  await save(STEADY + entry('changing', 'owl.gguf', owl).replace('size = ', 'size = -'));
  await service.until('primary', 'the problem in the log', () => service.output().includes('models.1.files.0.size'));
  const mistake = expect.stringContaining('models.1.files.0.size');
  const warned = await service.until('second', 'the problem in its condition', (seen) => condition(seen, 'SpecValid')?.status === 'False');
  expect(condition(warned, 'SpecValid')).toMatchObject({ message: mistake });
  expect(condition(await service.slot('primary'), 'SpecValid')).toMatchObject({ status: 'True' });
  expect(await run('model', 'pull', 'changing')).toMatchObject({ code: 1, err: mistake });
  expect(await svcctl(['doctor'], { env: service.environment })).toMatchObject({ code: 1, out: mistake });
  expect(await sayBy('second')).toBe(DEMO_SENTENCES['demo-fox']);

  // Other content is another model: it is pulled and swapped in, while the old one answers.
  await save(STEADY + entry('changing', 'owl.gguf', owl));
  for (let say = ''; say !== DEMO_SENTENCES['demo-owl']; say = await sayBy('second'))
    expect(['', DEMO_SENTENCES['demo-fox']]).toContain(say);
  const after = await service.slot('primary');
  expect(after?.status).toMatchObject({ restarts: before?.status.restarts, endpoint: before?.status.endpoint });
  expect(await sayBy('primary')).toBe(DEMO_SENTENCES['demo-fox']);
  expect(hub.log.every(({ path: each }) => each.includes('/resolve/') || each.startsWith('/o/r/'))).toBe(true);

  // Without its entry, the slot has no model to start with, and says so; its server goes on.
  await save(STEADY);
  await service.until(
    'second',
    'the missing model',
    (seen) => seen?.status.conditions.some(({ reason }) => reason === 'ModelMissing') === true,
  );
  expect(await sayBy('second')).toBe(DEMO_SENTENCES['demo-owl']);
}, 120_000);

test('an entry that was never valid is named where its slot looks for the model', async () => {
  await save(STEADY + entry('crooked', 'fox.gguf', fox).replace('kind = "chat"', 'kind = "chatter"'));
  await service.save('third', slotOf('crooked'));
  const seen = await service.until(
    'third',
    'the mistake',
    (slot) => condition(slot, 'SpecValid')?.message.includes('models.1.kind') === true,
  );
  expect(condition(seen, 'Ready')?.message).toContain('"models.toml" has a mistake that concerns "crooked": ');
  expect(await run('model', 'pull', 'crooked')).toMatchObject({ code: 1, err: expect.stringContaining('models.1.kind') });
  await service.remove('third');
  await save(STEADY);
}, 60_000);

test('svcctl lists, shows and verifies such a model, and does not remove it while a slot uses it', async () => {
  expect((await run('model', 'list', '--present', '-o', 'name')).out.split('\n')).toContain('model/steady');
  const { out } = await run('model', 'show', 'steady');
  expect(out).toContain(`sha256 ${fox.sha256}`);
  expect(out).toContain('Present     yes');
  expect(out).toMatch(/^ {2}Weights {5}76480; stored as F32$/m);
  expect(out).toContain('Context     4096 tokens');
  const [, file = ''] = /(catalogue\/steady\/[0-9a-f]{12}\/fox\.gguf)/.exec(out) ?? [];
  const verified = await svcctl(['model', 'verify', 'steady', '--store', service.modelsDir], {
    env: { SVC_CONFIG_DIR: service.configDir },
  });
  expect(verified).toMatchObject({ code: 0, out: `model/steady ${file}: correct, sha256 ${fox.sha256}\n` });
  expect(await run('model', 'rm', 'steady')).toMatchObject({
    code: 1,
    err: expect.stringContaining('is used by the slot "primary"'),
  });
  expect(await run('model', 'pull', 'sdxl-turbo')).toMatchObject({ code: 1, err: expect.stringContaining('sai-nc-community') });
  expect(await run('model', 'pull', 'stedy')).toMatchObject({ code: 1, err: expect.stringContaining('did you mean "steady"?') });
}, 60_000);
