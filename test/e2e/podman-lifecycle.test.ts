/** The life of a slot on podman, with the real llama-server in the image built from `toolboxes/gguf/Containerfile`. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { describeWithPodmanSlots, GGUF_TOOLBOX } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, startService, type Service } from '../support/service.ts';
import { startStreamLoop } from '../support/live-cluster/stream-loop.ts';

const slotOf = (model: string, more = '') => `backend = "cpu"\n${more}\n[model]\ndefault = "${model}"\nargs = ["--threads", "1"]\n`;

describeWithPodmanSlots('A slot on podman', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'podman', toolboxes: GGUF_TOOLBOX });
  }, 120_000);
  afterAll(() => service.dispose(), 60_000);

  test('loads its model when its file is saved, and answers chat', async () => {
    await service.save('primary', slotOf('demo-fox'));
    const slot = await service.until('primary', 'ready', isAnswering);
    expect(condition(slot, 'Ready')).toMatchObject({ status: 'True' });
    const answer = await service.chat();
    expect(answer.status).toBe(200);
    expect(await chatText(answer)).toBe(DEMO_SENTENCES['demo-fox']);
  }, 120_000);

  test('streams the same sentence', async () => {
    const loop = startStreamLoop(service, 1);
    while (loop.score.texts.size === 0 && loop.score.failures.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    const score = await loop.end();
    expect(score.failures).toEqual([]);
    expect([...score.texts.keys()]).toEqual([DEMO_SENTENCES['demo-fox']]);
  }, 60_000);

  test.each([
    ['blue-green', 'demo-owl', 'demo-fox'],
    ['drain', 'demo-fox', 'demo-owl'],
  ] as const)(
    'swaps its model by %s without a failed or interrupted request',
    async (swap, model, before) => {
      const loop = startStreamLoop(service, 3);
      await service.save('primary', slotOf(model, `lifecycle.swap = "${swap}"`));
      const deadline = Date.now() + 60_000;
      while (!loop.score.texts.has(DEMO_SENTENCES[model]) && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
      const score = await loop.end();
      expect(score.failures).toEqual([]);
      expect([...score.texts.keys()].sort()).toEqual([DEMO_SENTENCES[before], DEMO_SENTENCES[model]].sort());
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES[model]);
    },
    120_000,
  );

  test('keeps the old model if the new file is invalid, and reports line and column', async () => {
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = \n');
    const slot = await service.until('primary', 'SpecValid=False', (seen) => condition(seen, 'SpecValid')?.status === 'False');
    expect(condition(slot, 'SpecValid')?.message).toMatch(/primary\.toml:3:\d+/);
    expect(isAnswering(slot)).toBe(true);
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    await service.save('primary', slotOf('demo-fox', 'lifecycle.swap = "drain"'));
    await service.until('primary', 'SpecValid=True', (seen) => condition(seen, 'SpecValid')?.status === 'True');
  }, 60_000);

  test('unloads when it is disabled, and rejects requests as not worth a retry', async () => {
    await service.save('primary', slotOf('demo-fox', 'enabled = false'));
    await service.until('primary', 'offline', (seen) => seen?.status.state === 'offline');
    const answer = await service.chat();
    expect(answer.status).toBe(503);
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(JSON.parse(await answer.text())).toMatchObject({ error: { code: 'slot.disabled', origin: 'gateway' } });
  }, 60_000);
});
