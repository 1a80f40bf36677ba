import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { writeDemoSpeech } from '../../../toolboxes/demo/demo-models.ts';
import { DEMO_SAMPLE_RATE, DEMO_SAMPLES_PER_CHARACTER, DEMO_VOICES } from '../../../toolboxes/demo/demo-speaker.ts';
import { encodeOnnx } from '../../../toolboxes/demo/encode-onnx.ts';
import { writeBrokenSpeaker } from '../../support/speech/slow-speaker.ts';
import { speak, startSpeechServer, untilHealth, type RunningSpeechServer } from './running-speech-server.ts';

const BYTES_PER_CHARACTER = DEMO_SAMPLES_PER_CHARACTER * 2;
const START_MS = 180_000;

describe('The speech server, for text-to-speech, on the real library', () => {
  let root = '';
  let server: RunningSpeechServer;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-speaker-'));
    await writeDemoSpeech(root);
    const model = path.join(root, 'demo', 'demo-speaker');
    server = await startSpeechServer('tts', model, { flags: ['--ffmpeg', 'none', '--queue', '4'] });
    await untilHealth(server, 'ready');
  }, START_MS);

  afterAll(async () => {
    expect(await server.stop()).toBe(0);
    await rm(root, { recursive: true });
  });

  const bytesOf = async (body: object): Promise<Buffer> => Buffer.from(await (await speak(server, body)).arrayBuffer());
  const stillHealthy = async (): Promise<void> => {
    expect((await bytesOf({ input: 'Hello.', response_format: 'pcm' })).length).toBe(6 * BYTES_PER_CHARACTER);
  };

  test('is called svc-speech in lists of processes', async () => {
    expect(await readFile(`/proc/${server.pid}/comm`, 'utf8')).toBe('svc-speech\n');
  });

  test('lists the voices of the model, in its order', async () => {
    const voices = await (await fetch(`${server.url}/v1/audio/voices`)).json();
    expect(voices).toEqual({ voices: DEMO_VOICES.map((name) => ({ id: name, name, language: '' })) });
    expect(await (await fetch(`${server.url}/v1/models`)).json()).toMatchObject({
      data: [{ id: 'demo-speaker', task: 'tts', family: 'vits', sample_rate: DEMO_SAMPLE_RATE, voices: DEMO_VOICES }],
    });
  });

  test('speaks every character, at each speed', async () => {
    for (const speed of [0.5, 1, 2])
      expect((await bytesOf({ input: 'Hello. You too!', response_format: 'pcm', speed })).length).toBe((14 * BYTES_PER_CHARACTER) / speed);
  });

  test('each voice sounds different, and OpenAI names stand for them in their order', async () => {
    const [low, high, alloy, echo] = await Promise.all(
      ['demo_low', 'demo_high', 'alloy', 'ballad'].map(async (voice) => bytesOf({ input: 'abc', voice, response_format: 'pcm' })),
    );
    expect(low?.equals(high ?? Buffer.alloc(0))).toBe(false);
    expect(alloy?.equals(low ?? Buffer.alloc(0))).toBe(true);
    expect(echo?.equals(high ?? Buffer.alloc(0))).toBe(true);
  });

  test('writes WAV where ffmpeg is missing, and says so if another format is wanted', async () => {
    const response = await speak(server, { input: 'Hi' });
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(response.headers.get('content-type')).toBe('audio/wav');
    expect(bytes.toString('latin1', 0, 4)).toBe('RIFF');
    expect(bytes.length).toBe(44 + 2 * BYTES_PER_CHARACTER);
    expect((await speak(server, { input: 'Hi', response_format: 'mp3' })).status).toBe(422);
  });

  test('sends events, with the last one at the end', async () => {
    const text = await (await speak(server, { input: 'Hi. You.', response_format: 'pcm', stream_format: 'sse' })).text();
    const events = text
      .split('\n\n')
      .filter((line) => line !== '')
      .map((line): { type: string; audio?: string } => JSON.parse(line.slice(6)));
    expect(events.map(({ type }) => type)).toEqual(['speech.audio.delta', 'speech.audio.delta', 'speech.audio.done']);
    expect(events.map(({ audio = '' }) => Buffer.from(audio, 'base64').length)).toEqual([
      3 * BYTES_PER_CHARACTER,
      4 * BYTES_PER_CHARACTER,
      0,
    ]);
  });

  test.each([
    [{ input: '😀🎉' }, 400, 'request.invalid'],
    [{ input: '...' }, 400, 'request.invalid'],
    [{ input: '你好' }, 422, 'audio.text_unsupported'],
    [{ input: 'a', voice: 'nobody' }, 400, 'audio.voice_unknown'],
    [{ input: 'a', voice: 'demo_low+demo_high' }, 422, 'audio.mix_unsupported'],
    [{ input: 'a'.repeat(5000) }, 413, 'request.too_large'],
    ['{', 400, 'request.invalid'],
    ['[]', 400, 'request.invalid'],
  ])('refuses %j with %s %s, and goes on', async (body, status, code) => {
    const response = await speak(server, body);
    expect(await response.json()).toMatchObject({ error: { code, message: expect.stringMatching(/^[A-Z]/) } });
    expect(response.status).toBe(status);
    await stillHealthy();
  });

  test('leaves out sentences that the model cannot speak', async () => {
    expect((await bytesOf({ input: '你好。Hello.', response_format: 'pcm' })).length).toBe(6 * BYTES_PER_CHARACTER);
  });

  test('a client that leaves does not keep the engine busy', async () => {
    const abort = new AbortController();
    const response = await speak(server, { input: 'This goes on. '.repeat(290), response_format: 'pcm' }, abort.signal);
    const reader = response.body?.getReader();
    await reader?.read();
    abort.abort();
    await stillHealthy();
  });

  test('refuses more requests than may wait, with a time to come back', async () => {
    const input = `${'All right. '.repeat(20)}`;
    const answers = await Promise.all(Array.from({ length: 30 }, async () => speak(server, { input, response_format: 'pcm' })));
    const lengths = await Promise.all(answers.map(async (answer) => (await answer.arrayBuffer()).byteLength));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    for (const { headers } of refused) expect(headers.get('retry-after')).toBe('5');
    const spoken = new Set(lengths.filter((_, index) => answers[index]?.status === 200));
    expect(spoken.size).toBe(1);
    await stillHealthy();
  });

  test('starts the engine again after it was killed', async () => {
    const before = await server.enginePid();
    process.kill(before, 'SIGKILL');
    await untilHealth(server, 'ready');
    await stillHealthy();
    expect(await server.enginePid()).not.toBe(before);
  });

  test('ends with 0 on SIGTERM while it speaks', async () => {
    await writeDemoSpeech(root);
    const model = path.join(root, 'demo', 'demo-speaker');
    const other = await startSpeechServer('tts', model, { flags: ['--ffmpeg', 'none'] });
    await untilHealth(other, 'ready');
    const response = await speak(other, { input: 'This goes on. '.repeat(290), response_format: 'pcm' });
    const reading = response.arrayBuffer().catch(() => 'cut off');
    expect(await other.stop()).toBe(0);
    await reading;
  });
});

test('a model of Kokoro with a wrong voices file is refused before the library ends its process', async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'svc-speaker-'));
  const metadata = { model_type: 'kokoro', sample_rate: '24000', n_speakers: '54', style_dim: '510,1,256', version: '1' };
  await mkdir(path.join(root, 'espeak-ng-data'));
  await writeFile(path.join(root, 'model.onnx'), encodeOnnx({ name: 'x', inputs: [], outputs: [], constants: [], nodes: [], metadata }));
  await writeFile(path.join(root, 'tokens.txt'), 'a 0\n');
  await writeFile(path.join(root, 'voices.bin'), Buffer.alloc(100));
  const server = await startSpeechServer('tts', root);
  expect(await server.ended).toBe(1);
  expect(server.output()).toContain('Download "voices.bin" again: it has 100 bytes, but the model needs 28200960 for its 54 voices');
  await rm(root, { recursive: true });
}, 60_000);

describe('A model whose sound is no number for long sentences', () => {
  let root = '';
  let server: RunningSpeechServer;
  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-speaker-'));
    await writeBrokenSpeaker(path.join(root, 'broken'));
    server = await startSpeechServer('tts', path.join(root, 'broken'), { flags: ['--ffmpeg', 'none'] });
    await untilHealth(server, 'ready');
  }, START_MS);
  afterAll(async () => {
    await server.stop();
    await rm(root, { recursive: true });
  });

  test('speaks a sentence in two parts if that helps', async () => {
    const response = await speak(server, { input: 'Eighteen letters, and eighteen.', response_format: 'pcm' });
    const pcm = Buffer.from(await response.arrayBuffer());
    expect(response.status).toBe(200);
    expect(pcm.length).toBe('Eighteen letters,and eighteen.'.length * BYTES_PER_CHARACTER);
    const parts = [0, 18].map((at) => pcm.subarray(at * BYTES_PER_CHARACTER, (at + 8) * BYTES_PER_CHARACTER));
    for (const part of parts) expect(part.some((byte) => byte !== 0)).toBe(true);
  });

  test.each(['Incomprehensibilities.', 'Short. Extraordinarilynesses andcounterrevolutionaries.'])(
    'answers %j with an error that has the sentence',
    async (input) => {
      const response = await speak(server, { input, response_format: 'wav', stream_format: 'sse' });
      const text = (await response.text()).replaceAll(/"audio":"[^"]*"/g, '');
      expect(text).toContain('"code":"audio.not_spoken"');
      expect(text).toContain(input.replace('Short. ', ''));
      if (!input.startsWith('Short')) expect(response.status).toBe(422);
    },
  );
});
