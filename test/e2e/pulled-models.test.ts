/** Slots whose models are on the Hub, and `svcctl model`, with a real service, a real model server, and a Hub on this machine. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES, encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { eventually } from '../support/eventually.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile } from '../support/hub/virtual-file.ts';
import { chatText, isAnswering, startService, type Service } from '../support/service.ts';

/** A demo model with zeros behind it, so that it takes a while. */
const padded = (model: 'demo-fox' | 'demo-owl') => bufferFile(Buffer.concat([encodeDemoModel(model), Buffer.alloc(24_000_000)]));
const fox = padded('demo-fox');
const owl = padded('demo-owl');
const repo = (name: string, file: typeof fox, license = 'apache-2.0') => ({
  name,
  license,
  commit: 'c'.repeat(40),
  files: new Map([['m-Q4_K_M.gguf', file]]),
});
const isInvalid = ({ type, status }: { readonly type: string; readonly status: string }): boolean =>
  type === 'SpecValid' && status === 'False';
const slotOf = (model: string) => `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${model}"\n`;

let hub: FakeHub;
let service: Service;
beforeAll(async () => {
  hub = await startFakeHub({
    repos: [repo('o/fox', fox), repo('o/owl', owl), repo('o/llama', owl, 'llama3.2'), repo('o/llama-too', owl, 'llama3.2')],
  });
  service = await startService({
    runtime: 'process',
    environment: { HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent', SVC_PULL_CONNECTIONS: '2' },
  });
}, 120_000);
afterAll(async () => {
  await service.dispose();
  await hub.close();
}, 60_000);

const run = (...args: string[]) => svcctl([...args, '--server', service.url]);
const sentOf = (name: string): number =>
  hub.log.filter(({ path }) => path.includes(`/${name}/`)).reduce((sum, { sentBytes }) => sum + sentBytes, 0);
const pulls = async (): Promise<readonly Readonly<Record<string, unknown>>[]> =>
  JSON.parse((await run('get', 'pulls', '-o', 'json')).out).pulls;

describe('a slot that names a model on the Hub', () => {
  test('pulls it, survives the death of the service meanwhile, and answers; a second slot waits for the same download', async () => {
    hub.bytesPerSecond = 4_000_000;
    await service.save('primary', slotOf('hf:o/fox'));
    await service.save('second', slotOf('hf:o/fox'));
    for (const name of ['primary', 'second']) await service.until(name, 'pulling', (seen) => seen?.status.state === 'pulling');
    await service.until('primary', 'a part of it', () => sentOf('o/fox') > fox.sizeBytes / 3);
    // So slowly that it does not end meanwhile.
    hub.bytesPerSecond = 100_000;
    const listed = await pulls();
    expect(listed.map(({ slot, model }) => [slot, model])).toEqual([
      ['primary', 'hf:o/fox'],
      ['second', 'hf:o/fox'],
    ]);
    expect(listed[0]).toMatchObject({
      what: 'm-Q4_K_M.gguf',
      total_bytes: fox.sizeBytes,
      bytes_per_second: expect.any(Number),
      seconds_left: expect.any(Number),
    });
    await service.kill('SIGKILL');
    hub.bytesPerSecond = undefined;
    await service.start();
    const waited = await run('slot', 'load', 'primary', '--wait', '--timeout', '60s');
    expect(waited).toMatchObject({ code: 0 });
    for (const name of ['primary', 'second']) await service.until(name, 'ready', isAnswering);
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    // One download for both slots, and a kill costs at most 8 MiB for each of the two connections.
    expect(sentOf('o/fox')).toBeLessThan(fox.sizeBytes + 2 * 8 * 2 ** 20);
  }, 120_000);

  test('stops the download when the slot is removed', async () => {
    hub.bytesPerSecond = 1_000_000;
    await service.save('third', slotOf('hf:o/owl'));
    await service.until('third', 'pulling', (seen) => seen?.status.state === 'pulling');
    await service.until('third', 'some bytes', () => sentOf('o/owl') > 0);
    await service.remove('third');
    await eventually('the slot is gone', async () => (await service.slot('third')) === undefined);
    let left = await pulls();
    for (let tries = 0; left.length > 0 && tries < 50; tries += 1) left = await pulls();
    expect(left).toEqual([]);
    expect(sentOf('o/owl')).toBeLessThan(owl.sizeBytes);
  }, 60_000);

  test('says which licence has to be accepted, and how; accepting it frees every slot with this licence', async () => {
    hub.bytesPerSecond = undefined;
    await service.save('third', slotOf('hf:o/llama'));
    await service.save('fourth', slotOf('hf:o/llama-too'));
    const stalled = async (name: string) =>
      service.until(
        name,
        'stalled',
        (seen) => seen?.status.conditions.some(({ type, status }) => type === 'Stalled' && status === 'True') === true,
      );
    await stalled('fourth');
    const slot = await stalled('third');
    expect(slot.status.conditions.find(({ type }) => type === 'Stalled')).toMatchObject({
      reason: 'LicenseNotAccepted',
      message: expect.stringContaining('accept it with "svcctl model pull hf:o/llama --accept-license"'),
    });
    expect(await run('model', 'pull', 'hf:o/llama', '--accept-license')).toMatchObject({ code: 0, out: 'model/hf:o/llama present\n' });
    for (const name of ['third', 'fourth']) await service.until(name, 'ready', isAnswering);
    for (const name of ['third', 'fourth']) await service.remove(name);
    for (const name of ['third', 'fourth']) await eventually('the slot is gone', async () => (await service.slot(name)) === undefined);
  }, 60_000);
});

describe('svcctl model', () => {
  test('pulls, lists and removes models, but none that a slot uses', async () => {
    expect(await run('model', 'pull', 'hf:o/owl:Q4_K_M')).toMatchObject({ code: 0, out: 'model/hf:o/owl:Q4_K_M present\n' });
    expect((await run('model', 'list', '-o', 'name')).out).toContain('model/hf:o/owl:Q4_K_M\n');
    expect(await run('model', 'rm', 'hf:o/fox')).toMatchObject({
      code: 1,
      err: expect.stringContaining('is used by the slot "primary", "second": give it another model first'),
    });
    expect(await run('model', 'rm', 'hf:o/owl:Q4_K_M')).toMatchObject({ code: 0, out: 'model/hf:o/owl:Q4_K_M removed\n' });
    expect((await run('model', 'list', '-o', 'name')).out).not.toContain('hf:o/owl:Q4_K_M');
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
  }, 60_000);

  test('fetches a file from an address only with its hash, and verifies what is there', async () => {
    const url = `${hub.url}/o/owl/resolve/main/m-Q4_K_M.gguf`;
    expect(await run('model', 'pull', url)).toMatchObject({ code: 64, err: expect.stringContaining('--sha256') });
    expect(await run('model', 'pull', url, '--sha256', 'f'.repeat(64))).toMatchObject({ code: 1, err: expect.stringContaining('SHA-256') });
    expect(await run('model', 'pull', url, '--sha256', owl.sha256, '--as', 'own/owl.gguf')).toMatchObject({
      code: 0,
      out: 'model/own/owl.gguf present\n',
    });
    const verified = await svcctl(['model', 'verify', 'own/owl.gguf', 'hf:o/fox', '--store', service.modelsDir]);
    expect(verified.code).toBe(0);
    expect(verified.out).toContain(`model/own/owl.gguf own/owl.gguf: correct, sha256 ${owl.sha256}`);
    expect(verified.out).toContain(`hf/o/fox/m-Q4_K_M/m-Q4_K_M.gguf: correct`);
  }, 60_000);

  test('explains a download that cannot succeed', async () => {
    expect(await run('model', 'pull', 'hf:o/none')).toMatchObject({
      code: 1,
      err: expect.stringContaining('"o/none" does not exist, or requires a token'),
    });
    expect(await run('model', 'pull', 'hf:o/fox:Q8_0')).toMatchObject({
      code: 1,
      err: expect.stringContaining('"o/fox" has no quantisation "Q8_0"; choose one of "Q4_K_M"'),
    });
    expect(await run('model', 'pull', 'nothing')).toMatchObject({ code: 1, err: expect.stringContaining('Nothing provides "nothing"') });
    expect(await run('model', 'rm', 'nothing')).toMatchObject({
      code: 1,
      err: expect.stringContaining('The model store has no "nothing"'),
    });
  }, 60_000);
});

describe('a name that is no name of a model', () => {
  const beside = (): string => path.join(service.modelsDir, '..', 'beside.gguf');
  beforeAll(async () => writeFile(beside(), encodeDemoModel('demo-owl')));

  test.each([
    ['leads out of the store', '../beside.gguf'],
    ['leads out of the store in the middle', 'own/../../beside.gguf'],
    ['leads out of a repository', 'hf:o/fox/../../../beside.gguf'],
    ['is an absolute path', '/etc/passwd'],
    ['has a NUL', 'own/owl.gguf\0.txt'],
    ['has 4 KB', 'a'.repeat(4096)],
  ])(
    'is refused everywhere if it %s, and the old model still answers',
    async (_what, id) => {
      const encoded = encodeURIComponent(id);
      const send = async (method: string, route: string, body?: object) => {
        const headers = { 'content-type': 'application/json' };
        const answer = await fetch(service.url + route, { method, ...(body === undefined ? {} : { headers, body: JSON.stringify(body) }) });
        const { error }: { error?: { message?: string } } = JSON.parse(await answer.text());
        return [answer.status, error?.message];
      };
      const refusals = [
        await send('POST', '/api/slots/primary/load', { model: id }),
        await send('PATCH', '/api/slots/primary', { spec: { model: { default: id } } }),
        await send('POST', `/api/models/${encoded}/pull`, {}),
        await send('GET', `/api/models/${encoded}`),
        await send('DELETE', `/api/models/${encoded}`),
        await send('GET', `/api/fit?model=${encoded}`),
        await send('POST', '/v1/chat/completions', { model: id, messages: [{ role: 'user', content: 'x' }] }),
      ];
      for (const [status] of refusals) expect([400, 404, 422]).toContain(status);
      for (const refused of refusals) expect(refused).toEqual([expect.any(Number), expect.stringMatching(/^[A-Z"]./)]);
      // A file is no door for an attacker, and for a mistake.
      await service.save('primary', slotOf(JSON.stringify(id).slice(1, -1)));
      const slot = await service.until('primary', 'refused', (seen) => seen?.status.conditions.some(isInvalid) === true);
      expect(slot.status.conditions.find(isInvalid)?.message).toMatch(/model/);
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
      await service.save('primary', slotOf('hf:o/fox'));
      await service.until('primary', 'accepted', (seen) => seen?.status.conditions.some(isInvalid) === false);
      expect(await readFile(beside())).toEqual(Buffer.from(encodeDemoModel('demo-owl')));
    },
    60_000,
  );
});

describe('a search of the Hub', () => {
  const search = async (of: Service, query: string) => {
    const answer = await fetch(`${of.url}/api/models/search?${query}`);
    return { status: answer.status, body: JSON.parse(await answer.text()) };
  };

  test('names models that a slot takes, and says what fits and which licence is to be accepted', async () => {
    const { status, body } = await search(service, 'q=o/');
    expect(status).toBe(200);
    const found = new Map(body.models.map((model: { id: string }) => [model.id, model]));
    expect(found.get('o/owl')).toMatchObject({
      license: 'apache-2.0',
      needs_acceptance: false,
      quantisations: [{ uri: 'hf:o/owl:Q4_K_M', files: ['m-Q4_K_M.gguf'], size_bytes: owl.sizeBytes, fits: true, projector: null }],
      problem: null,
    });
    const listed = await run('model', 'search', 'owl', '-o', 'wide');
    expect(listed).toMatchObject({ code: 0, out: expect.stringMatching(/^hf:o\/owl:Q4_K_M +[0-9.]+ MiB +[0-9.]+ MiB +yes +1 /m) });
    const page = await search(service, 'q=o/&limit=1');
    expect(page.body.models).toHaveLength(1);
    expect((await search(service, `q=o/&limit=1&cursor=${encodeURIComponent(page.body.next)}`)).body.models).toHaveLength(1);
  });

  test('is refused where it is switched off, and asks nobody', async () => {
    const quiet = await startService({ runtime: 'process', environment: { HF_ENDPOINT: hub.url, SVC_MODEL_SEARCH: 'off' } });
    const before = hub.log.length;
    expect(await search(quiet, 'q=owl')).toMatchObject({
      status: 422,
      body: { error: { code: 'model.search_unavailable', message: expect.stringContaining('"SVC_MODEL_SEARCH" is "off"') } },
    });
    expect(hub.log).toHaveLength(before);
    await quiet.dispose();
  }, 60_000);
});
