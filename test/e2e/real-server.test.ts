/** What the real llama-server serves, as a process and in a container: chat, embeddings, scores, images, and nothing at all with a model that answers nonsense. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { encodeEmbedder } from '../../toolboxes/demo/demo-embedder.ts';
import { DEMO_SENTENCES, encodeDemoModel } from '../../toolboxes/demo/demo-models.ts';
import { startLoad } from '../chaos/support/load.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { breakWeights } from '../support/models/break-weights.ts';
import { encodeProjector, IMAGE_TOKENS, imageUrl } from '../support/models/tiny-projector.ts';
import { describeWithPodmanSlots, GGUF_TOOLBOX } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, startService, type Service } from '../support/service.ts';

const slotOf = (model: string, more = '') => `backend = "cpu"\n${more}\n[model]\ndefault = "${model}"\n`;
/** The embedding length of the demo models. */
const WIDTH = 64;

async function writeModels(root: string): Promise<void> {
  const rerank = encodeEmbedder({ name: 'rerank', head: 'rank' });
  const fox = encodeDemoModel('demo-fox');
  const files = {
    'rank/rerank.gguf': rerank,
    'vision/fox.gguf': fox,
    'vision/mmproj-fox.gguf': encodeProjector(WIDTH),
    'broken/chat.gguf': breakWeights(fox, Number.NaN),
    'broken/zeros.gguf': breakWeights(fox, 0),
    'broken/embed.gguf': breakWeights(encodeDemoModel('demo-embed'), Number.POSITIVE_INFINITY),
    'broken/rerank.gguf': breakWeights(rerank, 0),
  };
  for (const [name, bytes] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), bytes);
  }
}

const RUNTIMES = {
  process: async () =>
    startService({ runtime: 'process', environment: { PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}` } }),
  podman: async () => startService({ runtime: 'podman', toolboxes: GGUF_TOOLBOX }),
} as const;

for (const [runtime, start] of Object.entries(RUNTIMES)) {
  describeWithPodmanSlots(`llama-server, with the runtime "${runtime}",`, () => {
    let service: Service;
    beforeAll(async () => {
      service = await start();
      await writeModels(service.modelsDir);
      await service.save('primary', slotOf('demo-fox'));
      await service.save('embed', slotOf('demo-embed'));
      await service.save('rerank', slotOf('rank/rerank.gguf'));
      await service.save('vision', slotOf('vision/fox.gguf'));
    }, 120_000);
    afterAll(() => service.dispose(), 60_000);

    const post = async (route: string, body: object): Promise<Record<string, unknown>> => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(service.url + route, { method: 'POST', headers, body: JSON.stringify(body) });
      const read: Record<string, unknown> = JSON.parse(await answer.text());
      return { ...read, status: answer.status };
    };

    test('answers chat', async () => {
      await service.until('primary', 'ready', isAnswering);
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
      expect(service.output()).not.toContain('embedded engine');
    }, 60_000);

    test('makes embeddings', async () => {
      await service.until('embed', 'ready', isAnswering);
      const answer = await post('/v1/embeddings', { model: 'embed', input: ['the dog runs', 'the dog runs'] });
      const vector = Array.from({ length: WIDTH }, () => expect.any(Number));
      expect(answer).toMatchObject({ status: 200, data: [{ embedding: vector }, { embedding: vector }] });
    }, 60_000);

    test('scores documents', async () => {
      await service.until('rerank', 'ready', isAnswering);
      const answer = await post('/v1/rerankings', { model: 'rerank', query: 'dog', documents: ['a blue car', 'the dog runs'] });
      expect(answer).toMatchObject({
        status: 200,
        results: [{ relevance_score: expect.any(Number) }, { relevance_score: expect.any(Number) }],
      });
    }, 60_000);

    test('takes an image in the request', async () => {
      await service.until('vision', 'ready', isAnswering);
      const ask = async (...parts: readonly object[]) =>
        post('/v1/chat/completions', {
          model: 'vision',
          messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...parts] }],
        });
      const [plain, seen] = [await ask(), await ask({ type: 'image_url', image_url: { url: imageUrl() } })];
      const tokensOf = ({ usage }: Record<string, unknown>): number => Number(Object(usage).prompt_tokens);
      expect(seen).toMatchObject({ status: 200, choices: [{ message: { content: DEMO_SENTENCES['demo-fox'] } }] });
      expect(tokensOf(seen) - tokensOf(plain)).toBeGreaterThanOrEqual(IMAGE_TOKENS);
    }, 60_000);

    test('keeps the model that serves while its successor answers nonsense, and loses no request', async () => {
      const load = startLoad(service, { slots: ['primary'], sentences: [DEMO_SENTENCES['demo-fox']] });
      await service.save('primary', slotOf('broken/chat.gguf', 'lifecycle.swap = "blue-green"'));
      const slot = await service.until('primary', 'stalled', (seen) => condition(seen, 'Stalled')?.reason === 'ModelAnswersNonsense');
      const score = await load.end();
      expect({ ...score, refused: [...score.refused] }).toMatchObject({ cut: 0, disconnected: 0, refused: [], wrong: [] });
      expect(score.answered).toBe(score.requests);
      expect(isAnswering(slot)).toBe(true);
      expect(condition(slot, 'Ready')).toMatchObject({ status: 'True', reason: 'PreviousServes' });
      expect(condition(slot, 'Stalled')?.message).toContain('probability that is not a number');
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    }, 60_000);

    test('replaces it once a sound model is named', async () => {
      await service.save('primary', slotOf('demo-owl', 'lifecycle.swap = "blue-green"'));
      await service.until('primary', 'no longer stalled', (seen) => isAnswering(seen) && seen?.status.model === 'demo-owl');
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-owl']);
    }, 60_000);

    test('refuses to rank with a model that has no classifier head', async () => {
      await service.save('headless', `${slotOf('demo-fox')}args = ["--rerank"]\n`);
      const slot = await service.until('headless', 'stalled', (seen) => condition(seen, 'Stalled')?.status === 'True');
      expect(condition(slot, 'Stalled')).toMatchObject({
        reason: 'ModelUnsuitable',
        message: expect.stringContaining('has no classifier head'),
      });
      await service.remove('headless');
    }, 60_000);

    test('never serves a model that answers nonsense, and says what it answered', async () => {
      const told = {
        zeros: 'all of its tokens are equally probable',
        embed: `${WIDTH} of the ${WIDTH} values of its embedding are not numbers`,
        rerank: 'exactly the same score, 0',
      };
      for (const name of Object.keys(told)) await service.save(`broken-${name}`, slotOf(`broken/${name}.gguf`));
      for (const [name, text] of Object.entries(told)) {
        const slot = await service.until(`broken-${name}`, 'stalled', (seen) => condition(seen, 'Stalled')?.status === 'True');
        expect(condition(slot, 'Stalled')).toMatchObject({ reason: 'ModelAnswersNonsense', message: expect.stringContaining(text) });
        expect(condition(slot, 'Ready')).toMatchObject({ status: 'False', reason: 'ModelAnswersNonsense' });
        await service.remove(`broken-${name}`);
      }
    }, 60_000);
  });
}
