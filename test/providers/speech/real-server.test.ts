/** What the providers for speech promise of their server, kept by the real one with the real library: as a process, and in the toolbox image. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { INFERENCE_PATHS } from '../../../src/gateway/route/decide/inference-paths.ts';
import { DEMO_TRANSCRIPT } from '../../../toolboxes/demo/demo-listener.ts';
import { DEMO_SAMPLES_PER_CHARACTER } from '../../../toolboxes/demo/demo-speaker.ts';
import type { Capability } from '../../../src/schema/slot/provider-kinds.ts';
import { describeWithPodman } from '../../support/require/require-podman.ts';
import { encodeTinyWhisper, TINY_TRANSCRIPT } from '../../support/speech/tiny-whisper.ts';
import { wavFile } from '../../toolboxes/speech/sounds.ts';
import { embedded, inPodman, startServer, type RunningServer, type ServerKind } from './running-server.ts';

const START_MS = 240_000;

describe('The speech server', () => speechContract(embedded));
describeWithPodman('The speech server in podman', () => speechContract(inPodman));

describeWithPodman('whisper.cpp in the toolbox image', () => {
  let modelsDir = '';
  let stt: RunningServer;

  beforeAll(async () => {
    modelsDir = await mkdtemp(path.join(tmpdir(), 'svc-speech-'));
    await writeFile(path.join(modelsDir, 'ggml-tiny.bin'), encodeTinyWhisper());
    stt = await startServer(inPodman, 'stt', modelsDir, 'ggml-tiny.bin');
  }, START_MS);
  afterAll(async () => {
    expect(await stt.stop()).toBe(0);
    await rm(modelsDir, { recursive: true, force: true });
  }, START_MS);

  const transcribe = async (fields: Readonly<Record<string, string>>): Promise<string> => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    const sound = wavFile(
      [
        [2, 0.3],
        [2, 0],
        [2, 0.3],
      ],
      { rate: 44_100 },
    );
    form.append('file', new Blob([sound]), 'a.wav');
    return (await fetch(`${stt.url}/v1/audio/transcriptions`, { method: 'POST', body: form })).text();
  };

  test('is found ready by the provider, and transcribes piece by piece, with words and in streams', async () => {
    expect(await stt.readiness()).toEqual({ kind: 'passing' });
    const verbose: unknown = JSON.parse(
      await transcribe({ response_format: 'verbose_json', 'timestamp_granularities[]': 'word', prompt: 'Names' }),
    );
    expect(verbose).toMatchObject({ text: `${TINY_TRANSCRIPT} ${TINY_TRANSCRIPT}`, language: 'english', duration: 6 });
    expect(verbose).toMatchObject({ words: [{ word: 'Hello' }, { word: 'world.' }, { word: 'Hello' }, { word: 'world.' }] });
    expect((await transcribe({ stream: 'true' })).match(/"delta":"[^"]*"/g)).toEqual([
      `"delta":"${TINY_TRANSCRIPT}"`,
      `"delta":" ${TINY_TRANSCRIPT}"`,
    ]);
  }, 180_000);
});

function speechContract(kind: ServerKind): void {
  describe(kind.name, () => {
    let modelsDir = '';
    let stt: RunningServer;
    let tts: RunningServer;

    beforeAll(async () => {
      modelsDir = await mkdtemp(path.join(tmpdir(), 'svc-speech-'));
      [stt, tts] = await Promise.all([startServer(kind, 'stt', modelsDir), startServer(kind, 'tts', modelsDir)]);
    }, START_MS);
    afterAll(async () => {
      // After SIGTERM it ends by itself, and says that all is well.
      expect(await Promise.all([stt, tts].map(async (server) => server.stop()))).toEqual([0, 0]);
      await rm(modelsDir, { recursive: true, force: true });
    }, START_MS);

    /** Where the gateway sends a request for this path, or the message of the refusal. */
    const planned = ({ provider, slot }: RunningServer, capability: Capability): string => {
      const route = INFERENCE_PATHS.find((each) => each.capability === capability)?.path ?? '';
      const plan = provider.infer({ method: 'POST', path: route, capability }, provider.capabilities(slot.name, slot.spec, slot.model));
      return plan.kind === 'forward' ? plan.path : plan.kind === 'refuse' ? plan.message : 'is translated';
    };
    const transcribe = async (model: string) => {
      const form = new FormData();
      form.append('model', model);
      form.append('file', new Blob([wavFile([[2, 0.3]])]), 'a.wav');
      return fetch(stt.url + planned(stt, 'transcription'), { method: 'POST', body: form });
    };

    test('is found ready and healthy by its provider, and silent while it is frozen', async () => {
      for (const server of [stt, tts]) {
        expect(await server.readiness()).toEqual({ kind: 'passing' });
        expect(await server.health()).toEqual({ kind: 'passing' });
        await server.send('SIGSTOP');
        expect(await server.health()).toMatchObject({ kind: 'silent' });
        await server.send('SIGCONT');
        expect(await server.health()).toEqual({ kind: 'passing' });
      }
    }, 60_000);

    test('answers at the path of readiness, also of Kubernetes, with 200', async () => {
      for (const server of [stt, tts]) expect((await fetch(server.url + server.provider.readyPath)).status).toBe(200);
    });

    test('serves what its provider says that the model serves, by each of its names', async () => {
      for (const model of ['demo-listener', 'other'])
        expect(await (await transcribe(model)).json()).toMatchObject({ text: DEMO_TRANSCRIPT });
      const spoken = await fetch(tts.url + planned(tts, 'speech'), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'other', input: 'Hello', response_format: 'pcm' }),
      });
      expect((await spoken.arrayBuffer()).byteLength).toBe('Hello'.length * DEMO_SAMPLES_PER_CHARACTER * 2);
    });

    test('refuses itself what its provider refuses', async () => {
      expect(planned(stt, 'translation')).toContain('The model of this slot only transcribes');
      const form = new FormData();
      form.append('file', new Blob([wavFile([[2, 0.3]])]), 'a.wav');
      const answer = await fetch(`${stt.url}/v1/audio/translations`, { method: 'POST', body: form });
      expect(answer.status).toBe(422);
    });

    test('has the voices that its provider read from the files, in this order', async () => {
      const { voices }: { voices: { id: string }[] } = JSON.parse(await (await fetch(`${tts.url}/v1/audio/voices`)).text());
      expect(voices.map(({ id }) => id)).toEqual(tts.provider.voices?.(tts.slot.model).map(({ id }) => id));
      expect(voices.length).toBeGreaterThan(1);
    });

    test(
      'ends with 0 on SIGTERM, also while it works',
      async () => {
        const directory = await mkdtemp(path.join(tmpdir(), 'svc-speech-'));
        const server = await startServer(kind, 'tts', directory);
        const body = JSON.stringify({ input: 'This goes on. '.repeat(290), response_format: 'pcm' });
        const answer = await fetch(`${server.url}/v1/audio/speech`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        });
        const reading = answer.arrayBuffer().catch(() => 'cut off');
        expect(await server.stop()).toBe(0);
        await reading;
        await rm(directory, { recursive: true, force: true });
      },
      START_MS,
    );
  });
}
