/** Presets, and paths of the real llama-server that are no part of OpenAI's API. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodman } from '../support/require/require-podman.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';

const slotWith = (tokens: number): string =>
  `backend = "cpu"\n[model]\ndefault = "demo-fox"\n[model.presets.short]\nforce = { max_tokens = ${tokens} }\naliases = ["brief"]\n`;

describeWithPodman('the real llama-server', () => {
  let service: Service;
  beforeAll(async () => {
    const environment = { SVC_UPSTREAM: 'on', PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}` };
    service = await startService({ runtime: 'process', environment });
    await service.save('primary', slotWith(2));
    await service.until('primary', 'ready', isAnswering);
  }, 180_000);
  afterAll(async () => await service.dispose(), 60_000);

  const post = async (path: string, body: object): Promise<Response> =>
    fetch(`${service.url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

  test('tokenizes, fills in, describes itself, and answers on its other paths', async () => {
    const { tokens }: { tokens: number[] } = JSON.parse(await (await post('/v1/tokenize', { content: 'The quick brown fox' })).text());
    expect(tokens.length).toBeGreaterThan(0);
    expect(await (await post('/v1/detokenize', { model: 'demo-fox', tokens })).json()).toEqual({
      content: expect.stringContaining('quick brown fox'),
    });
    // The demo model has no tokens for it, which only its server can know.
    const filled = await post('/infill', { input_prefix: 'The ', input_suffix: ' fox', n_predict: 2 });
    expect(await filled.text()).toMatch(/"content"|infill|FIM/i);
    expect(await (await fetch(`${service.url}/props?model=primary`)).json()).toMatchObject({
      default_generation_settings: expect.anything(),
    });
    expect((await post('/v1/score', { model: 'primary' })).status).toBe(400);
    expect(await (await fetch(`${service.url}/upstream/primary/health`)).json()).toMatchObject({ status: 'ok' });
    expect(await (await post('/upstream/primary/tokenize', { content: 'fox' })).json()).toMatchObject({ tokens: expect.any(Array) });
    expect((await fetch(`${service.url}/upstream/primary/no-such-path`)).status).toBe(404);
  }, 60_000);

  test('follows a preset, whose edit restarts nothing', async () => {
    const tokensOf = async (): Promise<unknown> => {
      const reply: { usage: { completion_tokens: number } } = JSON.parse(
        await (await post('/v1/chat/completions', { model: 'brief', max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] })).text(),
      );
      return reply.usage.completion_tokens;
    };
    expect(await tokensOf()).toBe(2);
    const before = await service.slot('primary');
    await service.save('primary', slotWith(3));
    await expect(retried(async () => (await tokensOf()) === 3)).resolves.toBe(true);
    const after = await service.until('primary', 'ready', isAnswering);
    expect([after.status.endpoint, after.status.restarts]).toEqual([before?.status.endpoint, before?.status.restarts]);
  }, 60_000);
});

async function retried(holds: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await holds()) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}
