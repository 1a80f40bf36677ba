/** A request for a slot that cannot load is told why while it waits, not at the end of `SVC_PARK_TIMEOUT`. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startService, type Service } from '../support/service.ts';

let service: Service;

beforeAll(async () => {
  // Nothing listens there, as on a machine without a network.
  service = await startService({ runtime: 'process', environment: { HF_ENDPOINT: `http://127.0.0.1:${await freePort()}` } });
}, 120_000);
afterAll(async () => await service.dispose(), 60_000);

async function failureOf(model: string) {
  await eventually('the slot is on the board', async () => (await fetch(`${service.url}/v1/models/${model}`)).ok);
  const answer = await service.chat({ model });
  return { status: answer.status, ...Object(JSON.parse(await answer.text())).error };
}

test('an argument that the server does not know', async () => {
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\nargs = ["--old-flag"]\n');
  const failure = await failureOf('primary');
  expect(failure).toMatchObject({ status: 503, code: 'slot.stalled' });
  expect(failure.message).toContain('The server refuses its arguments; correct "model.args" of the slot; last log line: "(hidden)"');
  expect(JSON.stringify((await service.slot('primary'))?.status.conditions)).toMatch(/last log line: .*--old-flag/);
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n');
  await service.until('primary', 'edited', (slot) => slot?.status.state !== 'offline');
  expect((await service.chat()).status).toBe(200);
}, 90_000);

test('a model that cannot be fetched', async () => {
  await service.save('far', 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "hf:owner/repo:Q4_K_M"\n');
  const failure = await failureOf('far');
  expect(failure).toMatchObject({ status: 503, code: 'slot.loading' });
  expect(failure.message).toMatch(/Slot "far" cannot load: .*check the network/);
}, 90_000);
