/** Two slots of which only one fits into memory: whose request has taken the memory of whom, with real servers and two callers. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { ownEnvironment, startService, type Service } from '../support/service.ts';

let service: Service;
let alice: string;
let bob: string;

beforeAll(async () => {
  service = await startService({ runtime: 'process', environment: { SVC_AUTH_ENABLED: '1', SVC_MEMORY_BUDGET: '600Mi' } });
  const slot = (model: string) => `backend = "cpu"\nload = "on-demand"\n[model]\ndefault = "${model}"\n[resources]\nmemory = "400Mi"\n`;
  await service.save('primary', slot('demo-fox'));
  await service.save('coder', `provider = "gguf"\n${slot('demo-owl')}`);
  [alice, bob] = [await newToken('alice'), await newToken('bob')];
}, 120_000);
afterAll(async () => await service?.dispose(), 60_000);

/** As root, through the socket of the service. */
async function svcctl(...args: readonly string[]): Promise<string> {
  const env = { ...ownEnvironment(), ...service.environment };
  const child = spawn(process.execPath, ['src/cli/svcctl.mjs', ...args], { env, stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000 });
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  const [code]: unknown[] = await once(child, 'close');
  if (code !== 0) throw new Error(`"svcctl ${args.join(' ')}" ended with ${String(code)}`);
  return out;
}
const newToken = async (label: string): Promise<string> => (await svcctl('token', 'create', '--label', label)).trim();

async function ask(token: string, model: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model, max_tokens: 4, messages: [{ role: 'user', content: 'Hello' }] });
  const answer = await fetch(`${service.url}/v1/chat/completions`, { method: 'POST', headers, body });
  await answer.text();
  return answer.status;
}

test('explain names the caller whose request loads a slot, and the one whose request has taken its memory', async () => {
  await eventually('alice is answered', async () => (await ask(alice, 'primary')) === 200, 60_000);
  expect(await ask(bob, 'coder')).toBe(200);
  const displaced = await svcctl('explain', 'primary');
  expect(displaced).toContain('gave way to slot "coder", asked for by caller "bob"');
  expect(await ask(alice, 'primary')).toBe(200);
  expect(await svcctl('explain', 'coder')).toContain('gave way to slot "primary", asked for by caller "alice"');
}, 120_000);

test('usage counts one load for each request that waited, and one eviction for each slot that had to leave', async () => {
  const { usage } = JSON.parse(await svcctl('usage', '--by', 'token', '-o', 'json'));
  const counts = usage.map(({ label, loads, evictions }: Record<string, unknown>) => [label, loads, evictions]);
  expect(counts.toSorted()).toEqual([
    ['alice', 2, 1],
    ['bob', 1, 1],
  ]);
}, 60_000);
