/** `svcctl eval` with real models: slots that are loaded by it, embeddings that compare answers, and a service that asks for tokens. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { svcctl, type Ran } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { startService, type Service } from '../support/service.ts';

let service: Service;
let file: string;
const run = async (args: readonly string[], env: Readonly<Record<string, string>> = service.environment): Promise<Ran> =>
  await svcctl(args, { env });

beforeAll(async () => {
  service = await startService({ runtime: 'process', environment: { SVC_AUTH_ENABLED: '1' } });
  const slots = { primary: 'demo-fox', small: 'demo-owl', embed: 'demo-embed' };
  for (const [name, model] of Object.entries(slots))
    await service.save(name, `backend = "cpu"\nprovider = "gguf"\nload = "on-demand"\n[model]\ndefault = "${model}"\n`);
  await eventually('the slots exist', async () => (await run(['get', 'slots', '-o', 'name'])).out.split('\n').length === 4, 50_000);
  const sentence = DEMO_SENTENCES['demo-fox'];
  const messages = [{ role: 'user', content: 'Hello' }];
  const cases = [
    { request: { messages }, expect: { contains: sentence, matches: '^\\W*\\w' }, required: true },
    { request: { messages }, expect: { similar: { to: sentence, at_least: 0.99 } } },
    { request: { path: '/v1/completions', prompt: 'Hello', max_tokens: 2 }, expect: { matches: '\\w' } },
  ];
  file = join(service.dir, 'checks.jsonl');
  await writeFile(file, cases.map((each) => JSON.stringify(each)).join('\n'));
}, 120_000);
afterAll(async () => await service.dispose(), 60_000);

test('a model is loaded, asked and compared with another one', async () => {
  const ran = await run(['eval', 'primary', '-f', file, '--compare', 'demo-owl', '-o', 'json']);
  expect(ran).toMatchObject({ code: 0, err: expect.stringContaining('Asking "demo-owl" through the service') });
  const { evaluations } = JSON.parse(ran.out);
  expect(evaluations).toMatchObject([
    { model: 'primary', accepted: true, cases: 3, passed: 3, misses: [] },
    { model: 'demo-owl', accepted: false, cases: 3, because: expect.stringContaining('Case 1 did not pass, and is required') },
  ]);
  for (const { first_token_p95_ms: first, tokens_per_second: speed, total_ms: total } of evaluations) {
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThanOrEqual(total);
    expect(speed).toBeGreaterThan(0);
  }
  expect(evaluations[1].misses[0]).toMatchObject({ case: 1, required: true, question: 'Hello', answer: DEMO_SENTENCES['demo-owl'] });
}, 120_000);

test('embeddings are evaluated, with a token that may use models only', async () => {
  const token = (await run(['token', 'create', '--label', 'checks'])).out.trim();
  const embeddings = join(service.dir, 'embeddings.jsonl');
  await writeFile(embeddings, '{"request": {"path": "/v1/embeddings", "input": ["a", "b"]}, "expect": {"dimension": 64}}\n');
  const args = ['eval', 'embed', '-f', embeddings, '--server', service.url];
  expect(await run(args, { SVCCTL_TOKEN: token })).toMatchObject({ code: 0, out: expect.stringMatching(/Passed +1 of 1 \(100 %\)/) });
  expect(await run(args, { SVCCTL_TOKEN: 'svc_wrong' })).toMatchObject({ code: 1, out: expect.stringContaining('status 401') });
}, 120_000);
