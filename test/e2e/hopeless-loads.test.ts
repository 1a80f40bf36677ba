/** A request for a slot that cannot load is told why while it waits, not at the end of `SVC_PARK_TIMEOUT`. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startFakeHub, type FakeHub } from '../support/hub/fake-hub.ts';
import { bufferFile } from '../support/hub/virtual-file.ts';
import { describeWithMounts, mountSmallDisk, type SmallDisk } from '../support/require/require-mounts.ts';
import { startService, type Service } from '../support/service.ts';

let service: Service;

beforeAll(async () => {
  // Nothing listens there, as on a machine without a network.
  service = await startService({ runtime: 'process', environment: { HF_ENDPOINT: `http://127.0.0.1:${await freePort()}` } });
}, 120_000);
afterAll(async () => await service.dispose(), 60_000);

async function failureOf(model: string, at: Service = service) {
  await eventually('the slot is on the board', async () => (await fetch(`${at.url}/v1/models/${model}`)).ok);
  const answer = await at.chat({ model });
  return { status: answer.status, ...Object(JSON.parse(await answer.text())).error };
}

test('an argument that the server does not know', async () => {
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\nargs = ["--old-flag"]\n');
  const failure = await failureOf('primary');
  expect(failure).toMatchObject({ status: 503, code: 'slot.stalled' });
  expect(failure.message).toContain('The server refuses its arguments; correct "model.args" of the slot; last log line: "(hidden)"');
  expect(JSON.stringify((await service.slot('primary'))?.status.conditions)).toMatch(/last log line: .*--old-flag/);
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
  const isStalled = (slot: Awaited<ReturnType<typeof service.slot>>): boolean =>
    slot?.status.conditions.some(({ type, status }) => type === 'Stalled' && status === 'True') !== false;
  await service.until('primary', 'edited', (slot) => !isStalled(slot));
  expect((await service.chat()).status).toBe(200);
}, 90_000);

test('a model that cannot be fetched', async () => {
  await service.save('far', 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "hf:owner/repo:Q4_K_M"\n');
  const failure = await failureOf('far');
  expect(failure).toMatchObject({ status: 503, code: 'slot.loading' });
  expect(failure.message).toMatch(/Slot "far" cannot load: .*check the network/);
}, 90_000);

/** Downloads leave 256 MiB free. */
const ROOM_MIB = 600;
const hubSlot = (repo: string) => `provider = "gguf"\nbackend = "cpu"\nload = "on-demand"\n[model]\ndefault = "hf:o/${repo}:Q4_K_M"\n`;

describeWithMounts('With a hub that answers, and a small disk', () => {
  let hub: FakeHub;
  let disk: SmallDisk;
  let here: Service;
  beforeAll(async () => {
    disk = mountSmallDisk(ROOM_MIB);
    const fox = Buffer.from(encodeDemoModel('demo-fox'));
    const repo = (name: string, content: Buffer) => ({
      name: `o/${name}`,
      license: 'apache-2.0',
      commit: 'c'.repeat(40),
      files: new Map([['m-Q4_K_M.gguf', bufferFile(content)]]),
    });
    hub = await startFakeHub({
      repos: [
        { ...repo('gated', fox), gated: 'manual', token: 'hf_of_somebody_else' },
        repo('large', Buffer.concat([fox, Buffer.alloc(24_000_000)])),
      ],
    });
    const environment = { HF_ENDPOINT: hub.url, HF_HOME: '/nonexistent', SVC_MODELS_DIR: disk.path };
    here = await startService({ runtime: 'process', environment });
  }, 120_000);
  afterAll(async () => {
    await here.dispose();
    await hub.close();
    disk.dispose();
  }, 60_000);

  test('a request for a gated model is told how to get access', async () => {
    await here.save('gated', hubSlot('gated'));
    const failure = await failureOf('gated', here);
    expect(failure).toMatchObject({ status: 503, code: 'slot.stalled' });
    expect(failure.message).toMatch(/Slot "gated" is stalled: .*gated.*HF_TOKEN/);
  }, 90_000);

  test('a request for a model that the disk has no room for is told so, and one that comes after there is room is answered', async () => {
    disk.resize(8);
    await here.save('large', hubSlot('large'));
    const failure = await failureOf('large', here);
    expect(failure).toMatchObject({ status: 503, code: 'slot.stalled' });
    expect(failure.message).toMatch(/Slot "large" is stalled: .*(?:room|free)/);
    disk.resize(ROOM_MIB);
    await fetch(`${here.url}/api/slots/large/restart`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
    await eventually('it answers', async () => (await here.chat({ model: 'large' })).status === 200, 60_000);
  }, 120_000);
});
