/** Prompts that the real llama-server has computed outlive it: as a process and in a container. */
import { readdir, rename, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodmanSlots, GGUF_TOOLBOX } from '../support/require/require-podman.ts';
import { isAnswering, pause, startService, type Service } from '../support/service.ts';

const slotOf = (model: string, more = '') => `backend = "cpu"\n${more}\n[model]\ndefault = "${model}"\n`;
const RUNTIMES = {
  process: async () =>
    startService({ runtime: 'process', environment: { PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}` } }),
  podman: async () => startService({ runtime: 'podman', toolboxes: GGUF_TOOLBOX }),
} as const;
/** About as many tokens as words. */
const TEXT = Array.from({ length: 130 }, (_, index) => `the dog runs ${index % 10}`).join(' ');

for (const [runtime, start] of Object.entries(RUNTIMES)) {
  describeWithPodmanSlots(`Kept prompts, with the runtime "${runtime}",`, () => {
    let service: Service;
    beforeAll(async () => {
      service = await start();
    }, 120_000);
    afterAll(() => service?.dispose(), 60_000);

    const directory = (): string => path.join(service.dir, 'state/prompts/primary');
    const files = async (): Promise<readonly string[]> => readdir(directory()).catch(() => []);
    const explain = async (): Promise<string> => (await fetch(`${service.url}/api/slots/primary/explain`)).text();
    const serve = async (model: string, more?: string): Promise<unknown> => {
      await service.save('primary', slotOf(model, more));
      return service.until('primary', `ready with ${model}`, (slot) => isAnswering(slot) && slot?.status.model === model);
    };
    const off = async (): Promise<unknown> => {
      await service.save('primary', slotOf('demo-fox', 'enabled = false'));
      return service.until('primary', 'off', (slot) => slot?.status.state === 'offline');
    };
    /** Returns the answer, and of the tokens of the prompt those that were computed. */
    const ask = async (text: string): Promise<{ readonly content: string; readonly computed: number; readonly cached: number }> => {
      const answer = await service.chat({ model: 'primary', temperature: 0, messages: [{ role: 'user', content: text }] });
      const read = await answer.text();
      const { choices, timings } = JSON.parse(read);
      if (choices === undefined) throw new Error(read);
      return { content: choices[0].message.content, computed: timings.prompt_n, cached: timings.cache_n };
    };

    test('are restored after a swap to another model and back, with the same answer', async () => {
      await serve('demo-fox', 'lifecycle.swap = "drain"');
      const first = await ask(TEXT);
      expect(first.computed).toBeGreaterThan(400);
      await serve('demo-owl', 'lifecycle.swap = "drain"');
      const saved = await files();
      expect(saved).toHaveLength(1);
      const mode = (await stat(path.join(directory(), saved[0] ?? ''))).mode & 0o777;
      expect([mode, (await stat(directory())).mode & 0o777]).toEqual([0o600, 0o700]);
      await serve('demo-fox', 'lifecycle.swap = "drain"');
      expect(await explain()).toMatch(/prompts: [\d,]+ tokens of 1 conversation restored in /);
      const again = await ask(TEXT);
      expect(again.content).toBe(DEMO_SENTENCES['demo-fox']);
      expect(again.content).toBe(first.content);
      expect(again.cached).toBeGreaterThan(0.99 * first.computed);
      // A file is offered once.
      expect(await files()).toEqual([]);
    }, 180_000);

    test('are kept before a probe takes their place, and survive the probes of the next server', async () => {
      // Probes come every ten seconds, and clear what they find.
      await pause(15_000);
      expect(await files()).toHaveLength(1);
      await off();
      await serve('demo-fox');
      await pause(15_000);
      const { cached, content } = await ask(TEXT);
      expect(content).toBe(DEMO_SENTENCES['demo-fox']);
      expect(cached).toBeGreaterThan(400);
    }, 120_000);

    test('are not offered when they are damaged, and the slot says so', async () => {
      await off();
      const [name = ''] = await files();
      await truncate(path.join(directory(), name), 5000);
      await serve('demo-fox');
      expect(await explain()).toContain('prompts: not restored: ');
      expect((await ask(TEXT)).computed).toBeGreaterThan(400);
      expect(await files()).toEqual([]);
    }, 120_000);

    test('are never offered to a model of the same shape, nor are foreign files', async () => {
      await off();
      expect(await files()).toHaveLength(1);
      await writeFile(path.join(directory(), 'foreign.bin'), 'x');
      await symlink('/etc/hostname', path.join(directory(), '0123456789abcdef-0-900-0.prompt'));
      const model = path.join(service.modelsDir, 'demo/demo-fox.gguf');
      await rename(path.join(service.modelsDir, 'demo/demo-owl.gguf'), `${model}.new`);
      await rename(`${model}.new`, model);
      await serve('demo-fox');
      const answer = await ask(TEXT);
      expect(answer).toMatchObject({ content: DEMO_SENTENCES['demo-owl'], cached: expect.any(Number) });
      expect(answer.computed).toBeGreaterThan(400);
      expect((await files()).filter((name) => !/^[0-9a-f]{16}-\d+-\d+-\d+\.prompt$/.test(name) || name.startsWith('0123'))).toEqual([]);
    }, 120_000);

    test('are neither kept nor left on the disk where the slot does not want them', async () => {
      await serve('demo-fox', 'lifecycle.keep_prompts = false');
      await ask(TEXT);
      await service.save('primary', slotOf('demo-fox', 'enabled = false\nlifecycle.keep_prompts = false'));
      await service.until('primary', 'off', (slot) => slot?.status.state === 'offline');
      expect(await files()).toEqual([]);
    }, 120_000);
  });
}
