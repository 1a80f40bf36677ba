/** Keys of a slot that become flags, on the real llama-server with generated models: a draft model, and adapters that change one word. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { eventually } from '../support/eventually.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { encodeFoxAdapter, encodeFoxDraft } from '../support/models/tiny-companions.ts';
import { encodePredictingFox } from '../support/models/tiny-predictor.ts';
import { describeWithPodmanSlots, GGUF_TOOLBOX } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, startService, type Service } from '../support/service.ts';

const RUNTIMES = {
  process: async () =>
    startService({ runtime: 'process', environment: { PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}` } }),
  podman: async () => startService({ runtime: 'podman', toolboxes: GGUF_TOOLBOX }),
} as const;

/** Other suites have containers in the same podman. */
const SLOT = `keys-${process.pid}`;
const slotOf = (...keys: readonly string[]): string =>
  `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n${keys.join('\n')}\n`;
const ADAPTERS = `adapters = [{ name = "lazy", file = "loras/lazy.gguf" }, { name = "jumps", file = "loras/jumps.gguf", scale = 1.5 }]`;
const LAZY = 'The lazy dog.';
const JUMPS = 'The jumps over the lazy dog.';

for (const [runtime, start] of Object.entries(RUNTIMES)) {
  describeWithPodmanSlots(`Keys that become flags of llama-server, with the runtime "${runtime}",`, () => {
    let service: Service;
    beforeAll(async () => {
      service = await start();
      await mkdir(path.join(service.modelsDir, 'loras'), { recursive: true });
      await writeFile(path.join(service.modelsDir, 'loras/lazy.gguf'), encodeFoxAdapter('▁lazy'));
      await writeFile(path.join(service.modelsDir, 'loras/jumps.gguf'), encodeFoxAdapter('▁jumps'));
    }, 120_000);
    afterAll(() => service?.dispose(), 60_000);

    const explain = async (): Promise<string> =>
      JSON.parse(await (await fetch(`${service.url}/api/slots/${SLOT}/explain`)).text()).text ?? '';
    const server = async (): Promise<string | undefined> => /served by "(.*)"/.exec(await explain())?.[1];
    const serveText = async (text: string): Promise<void> => {
      const before = await server();
      await service.save(SLOT, text);
      await eventually('a server with these keys', async () => ![undefined, before].includes(await server()), 60_000);
      await service.until(SLOT, 'up to date', (slot) => condition(slot, 'UpToDate')?.status === 'True' && isAnswering(slot));
    };
    const serve = async (...keys: readonly string[]): Promise<void> => await serveText(slotOf(...keys));
    const ask = async (model: string, more: object = {}): Promise<string> =>
      chatText(await service.chat({ model, temperature: 0, messages: [{ role: 'user', content: 'Say it' }], ...more }));
    const post = async (where: string, body: object) => {
      const answer = await fetch(`${service.url}${where}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return { status: answer.status, text: await answer.text() };
    };
    const stalled = async (reason: string, message: string, ...keys: readonly string[]): Promise<void> => {
      await service.save(SLOT, slotOf(...keys));
      await service.until(SLOT, message, (slot) => {
        const found = condition(slot, 'Stalled');
        return found?.status === 'True' && found.reason === reason && found.message.includes(message);
      });
    };

    test('adapters answer by their names, one at a time, and the model itself answers otherwise', async () => {
      await serve(ADAPTERS);
      const names = [SLOT, `${SLOT}:lazy`, `${SLOT}:jumps`, `${SLOT}:lazy`, SLOT, 'demo-fox'];
      const answers: string[] = [];
      for (const name of names) answers.push(await ask(name));
      const fox = DEMO_SENTENCES['demo-fox'];
      expect(answers).toEqual([fox, LAZY, JUMPS, LAZY, fox, fox]);
      expect(await Promise.all(names.map(async (name) => await ask(name)))).toEqual(answers);
      // Whoever names an adapter gets it, whatever else the request says.
      expect(await ask(`${SLOT}:lazy`, { lora: [{ id: 1, scale: 1 }] })).toBe(LAZY);
      expect(await explain()).toMatch(/adapters: "keys-\d+:lazy", "keys-\d+:jumps", with [\d.]+ KiB of the memory/);
    }, 120_000);

    test('adapters are listed as models, and answer on the paths that can choose them only', async () => {
      const listed = await (await fetch(`${service.url}/v1/models`)).text();
      expect(JSON.parse(listed).data.map(({ id }: { readonly id: string }) => id)).toEqual(
        expect.arrayContaining(['demo-fox', `${SLOT}:lazy`, `${SLOT}:jumps`]),
      );
      const messages = [{ role: 'user', content: 'Say it' }];
      expect((await post('/v1/completions', { model: `${SLOT}:lazy`, prompt: 'Say it' })).text).toContain(LAZY);
      expect((await post('/v1/responses', { model: `${SLOT}:lazy`, input: 'Say it' })).text).toContain(LAZY);
      const refused = await post('/v1/messages', { model: `${SLOT}:lazy`, messages, max_tokens: 20 });
      expect(refused.status).toBe(400);
      expect(refused.text).toContain('The adapter \\"lazy\\" answers \\"/v1/chat/completions\\"');
      expect((await post('/v1/messages', { model: SLOT, messages, max_tokens: 20 })).text).toContain(DEMO_SENTENCES['demo-fox']);
    }, 60_000);

    test('a missing draft model stops nothing: the slot says which, keeps serving, and starts once it is there', async () => {
      await stalled('ModelMissing', 'The model "draft.gguf" does not exist', ADAPTERS, 'draft = { model = "draft.gguf", max = 4 }');
      expect(await ask(`${SLOT}:jumps`)).toBe(JUMPS);
      await writeFile(path.join(service.modelsDir, 'draft.gguf'), encodeFoxDraft());
      await service.until(SLOT, 'drafting', (slot) => condition(slot, 'UpToDate')?.status === 'True' && isAnswering(slot));
      expect(await explain()).toMatch(/draft: model "draft.gguf" proposes up to 4 tokens, with [\d.]+ MiB of the memory/);
    }, 120_000);

    test('a draft model proposes tokens, which change no answer', async () => {
      const answer = await service.chat({ model: SLOT, temperature: 0, messages: [{ role: 'user', content: 'Say it' }] });
      const { choices, timings } = JSON.parse(await answer.text());
      expect(choices[0].message.content).toBe(DEMO_SENTENCES['demo-fox']);
      expect(timings.draft_n).toBeGreaterThan(0);
      expect(timings.draft_n_accepted).toBeGreaterThan(0);
      expect(await ask(`${SLOT}:lazy`)).toBe(LAZY);
    }, 60_000);

    test('the head of a model proposes tokens, which change no answer, and admission counts its memory', async () => {
      await writeFile(path.join(service.modelsDir, 'predicting-fox.gguf'), encodePredictingFox());
      /** What admission expects the model to need before anything is measured, as `explain` says it. */
      const estimateMib = async (...keys: readonly string[]): Promise<number> => {
        await serveText(slotOf(...keys).replace('demo-fox', 'predicting-fox.gguf'));
        const text = await explain();
        return Number((/the estimate of (\d+) MiB/.exec(text) ?? /needs (\d+) MiB/.exec(text))?.[1]);
      };
      const aloneMib = await estimateMib();
      expect(await explain()).not.toContain('draft:');
      const mib = await estimateMib('draft = { mtp = true, max = 2 }');
      const answer = await service.chat({ model: SLOT, temperature: 0, messages: [{ role: 'user', content: 'Say it' }] });
      const { choices, timings } = JSON.parse(await answer.text());
      expect(choices[0].message.content).toBe(DEMO_SENTENCES['demo-fox']);
      expect(timings.draft_n).toBeGreaterThan(0);
      expect(timings.draft_n_accepted).toBeGreaterThan(0);
      const [, counted] =
        /draft: the head of the model proposes up to 2 tokens, with ([\d.]+) MiB of the memory/.exec(await explain()) ?? [];
      expect(Number(counted)).toBeGreaterThan(2);
      // Sizes from 100 MiB on are written in whole MiB.
      expect(Math.abs(mib - aloneMib - Number(counted))).toBeLessThan(1.1);
    }, 180_000);

    test('keys and values are stored in fewer bits', async () => {
      await serve('kv_cache = { k = "q8_0", v = "q4_0" }');
      expect(await ask(SLOT)).toBe(DEMO_SENTENCES['demo-fox']);
      expect(await explain()).toContain('kv cache: keys q8_0, values q4_0');
    }, 90_000);

    test('places and thinking become flags that the server accepts', async () => {
      await serve('parallel = 3', 'context = 512', 'reasoning = { effort = "high", budget = 64 }', 'draft = { ngram = true, max = 8 }');
      expect(await ask(SLOT)).toBe(DEMO_SENTENCES['demo-fox']);
      const text = await explain();
      expect(text).toContain('parallel: 3 requests at once, with 512 tokens each');
      expect(text).toContain('reasoning: effort high, at most 64 tokens');
      expect(text).toMatch(/draft: earlier text proposes up to 8 tokens, with 16/);
    }, 120_000);

    test.each([
      [['kv_cache = "q8_0"', 'args = ["-ctk", "f16"]'], 'ArgumentsRefused', 'Both "model.kv_cache" and "-ctk" are set'],
      [['draft = { mtp = true }'], 'ModelUnsuitable', 'Model "demo-fox" has no head that predicts further tokens'],
      [['adapters = [{ name = "a", file = "draft.gguf" }]'], 'ModelUnsuitable', '"draft.gguf" is no LoRA adapter'],
      [['draft = { model = "loras/lazy.gguf" }'], 'ModelUnsuitable', '"loras/lazy.gguf" is a LoRA adapter, not a draft model'],
    ])(
      '%j is refused, and what serves goes on',
      async (keys, reason, message) => {
        await stalled(reason, message, ...keys);
        expect(await ask(SLOT)).toBe(DEMO_SENTENCES['demo-fox']);
      },
      60_000,
    );
  });
}
