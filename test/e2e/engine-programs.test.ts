/** Servers of others as declared engines: whisper.cpp's, as a process and on podman, an embedding server on ONNX Runtime likewise, and one of npm that speaks OpenAI's dialect. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI, { toFile } from 'openai';
import { buildEmbeddingImage, ENGINE_PROGRAMS, installEnginePrograms, writeTinyEmbedder } from '../support/engine-programs.ts';
import { directoryOfProgram } from '../support/image-program.ts';
import { describeWithPodmanSlots, PODMAN, SPEECH_IMAGE } from '../support/require/require-podman.ts';
import { condition, isAnswering, startService, type Service } from '../support/service.ts';
import { encodeTinyWhisper, TINY_TRANSCRIPT } from '../support/speech/tiny-whisper.ts';
import { toneFile } from '../toolboxes/speech/sounds.ts';

/** Containers are named after their slots, and several suites use one podman. */
const LISTENER = `listener-${process.pid}`;
const withPath = (directory: string) => ({ PATH: `${directory}:${process.env['PATH'] ?? ''}` });

async function declare(service: Service, name: string, definition: string): Promise<void> {
  await mkdir(path.join(service.configDir, 'engines'), { recursive: true });
  await writeFile(path.join(service.configDir, `engines/${name}.toml`), definition);
}

for (const runtime of ['process', 'podman'] as const)
  describeWithPodmanSlots(`whisper.cpp's server as a declared engine in the runtime "${runtime}"`, () => {
    let service: Service;
    let openai: OpenAI;

    beforeAll(async () => {
      const environment = runtime === 'process' ? withPath(await directoryOfProgram(SPEECH_IMAGE, 'whisper-server')) : {};
      service = await startService({ runtime, environment });
      openai = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none', maxRetries: 0 });
      await writeFile(path.join(service.modelsDir, 'ggml-tiny.bin'), encodeTinyWhisper());
      const shipped = await readFile('engines/whisper-cpp.toml', 'utf8');
      await declare(service, 'whisper-cpp', shipped.replace(/^image = .*$/m, `image = { cpu = "${SPEECH_IMAGE}" }`));
      await service.save(
        LISTENER,
        'provider = "whisper-cpp"\nbackend = "cpu"\n[model]\ndefault = "ggml-tiny.bin"\nargs = ["--threads", "1"]\n',
      );
      await service.until(LISTENER, 'ready', isAnswering, 120_000);
    }, 300_000);
    afterAll(async () => await service?.dispose(), 60_000);

    const transcribe = async (format: 'json' | 'text' | 'srt' | 'vtt' | 'verbose_json'): Promise<unknown> => {
      const file = await toFile(toneFile({ seconds: 2 }), 'a.wav');
      return await openai.audio.transcriptions.create({ file, model: LISTENER, response_format: format });
    };

    test('writes down a recording for the official client, in each format', async () => {
      expect(await transcribe('json')).toMatchObject({ text: expect.stringContaining(TINY_TRANSCRIPT) });
      expect(await transcribe('verbose_json')).toMatchObject({ segments: [expect.objectContaining({ start: 0 })] });
      for (const format of ['text', 'srt', 'vtt'] as const) expect(await transcribe(format)).toContain(TINY_TRANSCRIPT);
    }, 60_000);

    test('leaves clients their mistakes, and serves on', async () => {
      const form = new FormData();
      form.append('model', LISTENER);
      form.append('file', new Blob(['no sound']), 'a.wav');
      const refused = await fetch(`${service.url}/v1/audio/transcriptions`, { method: 'POST', body: form });
      expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('"origin":"upstream"')]);
      await expect(
        openai.audio.translations.create({ file: await toFile(toneFile({ seconds: 1 }), 'a.wav'), model: LISTENER }),
      ).rejects.toMatchObject({ status: 400 });
      expect(await transcribe('json')).toMatchObject({ text: expect.stringContaining(TINY_TRANSCRIPT) });
      expect((await service.slot(LISTENER))?.status.restarts).toBe(0);
    }, 60_000);
  });

const post = async (service: Service, where: string, body: object): Promise<Response> =>
  await fetch(`${service.url}${where}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

async function installed(): Promise<Readonly<Record<string, string>>> {
  const bin = path.resolve('.svc/engine-programs/bin');
  await installEnginePrograms(bin);
  return withPath(bin);
}

for (const [runtime, describeHere] of [
  ['process', describe],
  ['podman', describeWithPodmanSlots],
] as const)
  describeHere(`An embedding server on ONNX Runtime as a declared engine in the runtime "${runtime}"`, () => {
    const slot = `embed-${process.pid}`;
    let service: Service;

    beforeAll(async () => {
      if (runtime === 'podman') await buildEmbeddingImage(PODMAN, SPEECH_IMAGE);
      service = await startService({ runtime, environment: runtime === 'process' ? await installed() : {} });
      await writeTinyEmbedder(path.join(service.modelsDir, 'tiny-embedder'));
      await declare(service, 'onnx', await readFile(path.join(ENGINE_PROGRAMS, 'onnx.toml'), 'utf8'));
      await service.save(slot, 'provider = "onnx"\nbackend = "cpu"\n[model]\ndefault = "tiny-embedder"\n');
      await service.until(slot, 'ready', isAnswering, 120_000);
    }, 600_000);
    afterAll(async () => await service?.dispose(), 60_000);

    test('loads a directory of the Hub, and its embeddings tell words apart', async () => {
      const answer = await post(service, '/v1/embeddings', { model: slot, input: ['fox', 'Fox fox', 'fox dog', 'owl'] });
      const { data, usage } = JSON.parse(await answer.text());
      const vectors = data.map(({ embedding }: { readonly embedding: readonly number[] }) => embedding);
      const to = (one: number, other: number): number =>
        vectors[one].reduce((sum: number, value: number, index: number) => sum + value * vectors[other][index], 0);
      expect([to(0, 1), to(0, 2), to(0, 3)]).toEqual([1, Math.SQRT1_2, 0].map((value) => expect.closeTo(value, 5)));
      expect(usage.total_tokens).toBe(4 * 2 + 6);
    }, 60_000);

    test('leaves clients their mistakes, and is asked for nothing else', async () => {
      const refused = await post(service, '/v1/embeddings', { model: slot, input: [1] });
      expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('"origin":"upstream"')]);
      const other = await post(service, '/v1/chat/completions', { model: slot, messages: [] });
      expect([other.status, await other.text()]).toEqual([400, expect.stringContaining('"origin":"gateway"')]);
      expect((await service.slot(slot))?.status.restarts).toBe(0);
    }, 60_000);
  });

describe('A server of the npm registry that speaks the dialect, as a declared engine', () => {
  let service: Service;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', environment: await installed() });
  }, 600_000);
  afterAll(async () => await service?.dispose(), 60_000);

  test('answers chats, whole and as a stream, and is replaced when its model is edited', async () => {
    const fixtures = (content: string): string => JSON.stringify({ fixtures: [{ match: {}, response: { content } }] });
    for (const name of ['first', 'second'])
      await writeFile(path.join(service.modelsDir, `${name}.json`), fixtures(`This is the ${name} answer.`));
    await declare(service, 'llmock', await readFile(path.join(ENGINE_PROGRAMS, 'llmock.toml'), 'utf8'));
    const slotOf = (model: string): string => `provider = "llmock"\nbackend = "cpu"\n[model]\ndefault = "${model}.json"\n`;
    await service.save('mock', slotOf('first'));
    await service.until('mock', 'ready', isAnswering, 60_000);
    const messages = [{ role: 'user' as const, content: 'Hello' }];
    const openai = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const whole = await openai.chat.completions.create({ model: 'mock', messages });
    expect(whole.choices[0]?.message.content).toBe('This is the first answer.');
    await service.save('mock', slotOf('second'));
    await service.until(
      'mock',
      'up to date',
      (slot) => slot?.status.model === 'second.json' && condition(slot, 'UpToDate')?.status === 'True',
    );
    let streamed = '';
    for await (const chunk of await openai.chat.completions.create({ model: 'mock', messages, stream: true }))
      streamed += chunk.choices[0]?.delta.content ?? '';
    expect(streamed).toBe('This is the second answer.');
  }, 120_000);
});
