/** A machine without a network: whoever waits for a model of the catalogue learns of it within seconds, wherever they look. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { condition, startService, type Service } from '../support/service.ts';

/** No name server knows it (RFC 6761). */
const HUB = 'https://hub.invalid';
/** It took 31 s. */
const WITHIN_MS = 25_000;
const DNS = /getaddrinfo (?:ENOTFOUND|EAI_AGAIN) hub\.invalid/;

let service: Service;
beforeAll(async () => {
  service = await startService({ runtime: 'process', environment: { HF_ENDPOINT: HUB, HF_HOME: '/nonexistent', NO_PROXY: '*' } });
}, 120_000);
afterAll(async () => await service.dispose(), 60_000);

const run = (...args: string[]) => svcctl([...args, '--server', service.url]);

test('a slot, the list of downloads and the client who waits name the error of DNS', async () => {
  const began = performance.now();
  await service.save('primary', 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "bge-m3"\n');
  const failed = await service.until('primary', 'the failure', (slot) => DNS.test(condition(slot, 'Ready')?.message ?? ''), WITHIN_MS);
  expect(condition(failed, 'Ready')).toMatchObject({ reason: 'ModelPullFailed', message: expect.stringContaining('check the network') });
  // During the next attempt, the failure of the last one is not told.
  await eventually('the cause in "get slots"', async () => DNS.test((await run('get', 'slots')).out), WITHIN_MS);
  await eventually('the cause in "get pulls"', async () => DNS.test((await run('get', 'pulls')).out), WITHIN_MS);
  let answer: { pulls: readonly { failed: boolean }[] } = { pulls: [] };
  const hasFailed = async (): Promise<boolean> => {
    answer = JSON.parse(await (await fetch(`${service.url}/api/pulls`)).text());
    return answer.pulls.some(({ failed: each }) => each);
  };
  await eventually('the cause in the answer', hasFailed, WITHIN_MS);
  expect(answer).toMatchObject({ pulls: [{ slot: 'primary', model: 'bge-m3', failed: true, message: expect.stringMatching(DNS) }] });
  const pulled = await run('model', 'pull', 'qwen3-1.7b');
  expect(pulled).toMatchObject({ code: 1, err: expect.stringMatching(DNS) });
  expect(performance.now() - began).toBeLessThan(WITHIN_MS);
}, 60_000);

test('a client is told why and when to come again, not left waiting for the time limit of parking', async () => {
  const began = performance.now();
  const answer = await service.chat({ model: 'primary' });
  const body: unknown = await answer.json();
  expect({ status: answer.status, body }).toMatchObject({ status: 503, body: { error: { message: expect.stringMatching(DNS) } } });
  expect(performance.now() - began).toBeLessThan(WITHIN_MS);
}, 60_000);
