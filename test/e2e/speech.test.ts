/** The slots `stt` and `tts` on the real engine, as processes: loaded by their first request, asked by OpenAI's own client, and with another model while requests flow. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import OpenAI, { toFile } from 'openai';
import { DEMO_TRANSCRIPT } from '../../toolboxes/demo/demo-listener.ts';
import { DEMO_SAMPLES_PER_CHARACTER, DEMO_VOICES } from '../../toolboxes/demo/demo-speaker.ts';
import { condition, isAnswering, startService, type Service } from '../support/service.ts';

const SLOTS = {
  stt: 'load = "on-demand"\n[model]\ndefault = "demo-listener"\naliases = ["whisper-1"]\n',
  tts: 'load = "on-demand"\n[model]\ndefault = "demo-speaker"\n',
};

describe('Speech', () => {
  let service: Service;
  let openai: OpenAI;
  let recording: Buffer;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', speech: true });
    openai = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none', maxRetries: 0 });
    for (const [name, text] of Object.entries(SLOTS)) await service.save(name, text);
    await service.until('tts', 'looked at', (seen) => condition(seen, 'SpecValid')?.status === 'True');
  }, 180_000);
  afterAll(() => service.dispose(), 60_000);

  const transcribe = async () => (await openai.audio.transcriptions.create({ file: await toFile(recording, 'a.wav'), model: 'stt' })).text;

  test('lists voices before anything is loaded', async () => {
    const { voices }: { voices: { id: string }[] } = JSON.parse(await (await fetch(`${service.url}/v1/audio/voices?model=tts`)).text());
    expect(voices.map(({ id }) => id)).toEqual(DEMO_VOICES);
    expect((await service.slot('tts'))?.status.state).toBe('offline');
  });

  test('speaks: the first request loads the model, and the audio is as long as the model makes it', async () => {
    const answer = await openai.audio.speech.create({ model: 'tts', voice: DEMO_VOICES[1], input: 'Hello there', response_format: 'pcm' });
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(bytes.length).toBeGreaterThanOrEqual('Hello there'.length * DEMO_SAMPLES_PER_CHARACTER * 2);
    const wav = await openai.audio.speech.create({
      model: 'tts',
      voice: DEMO_VOICES[1],
      input: 'Hello there world',
      response_format: 'wav',
    });
    recording = Buffer.from(await wav.arrayBuffer());
    expect(recording.subarray(0, 4).toString()).toBe('RIFF');
  }, 120_000);

  test('transcribes what was spoken: with the openai package by slot, with curl by alias, and in events', async () => {
    expect(await transcribe()).toBe(DEMO_TRANSCRIPT);
    const file = path.join(service.dir, 'a.wav');
    await writeFile(file, recording);
    const curl = await promisify(execFile)('curl', [
      '-s',
      '-F',
      `file=@${file}`,
      '-F',
      'model=whisper-1',
      '-F',
      'response_format=text',
      `${service.url}/v1/audio/transcriptions`,
    ]);
    expect(curl.stdout.trim()).toBe(DEMO_TRANSCRIPT);
    let text = '';
    const stream = await openai.audio.transcriptions.create({ file: await toFile(recording, 'a.wav'), model: 'stt', stream: true });
    for await (const event of stream) if (event.type === 'transcript.text.done') ({ text } = event);
    expect(text).toBe(DEMO_TRANSCRIPT);
  }, 120_000);

  test('answers typed errors: for a translation that the model cannot do, for a file that is no audio, and for an unknown voice', async () => {
    const failed = async (request: Promise<unknown>) => request.then(String, (error: unknown) => error);
    const file = await toFile(Buffer.from('PK\u0003\u0004 a zip'), 'a.wav');
    expect(await failed(openai.audio.translations.create({ file: await toFile(recording, 'a.wav'), model: 'stt' }))).toMatchObject({
      status: 400,
      code: 'model.unsupported',
    });
    expect(await failed(openai.audio.transcriptions.create({ file, model: 'stt' }))).toMatchObject({ status: 400, code: 'audio.invalid' });
    expect(await failed(openai.audio.speech.create({ model: 'tts', voice: 'nobody', input: 'Hi' }))).toMatchObject({
      status: 400,
      param: 'voice',
      message: expect.stringContaining(DEMO_VOICES[0]),
    });
    expect(await transcribe()).toBe(DEMO_TRANSCRIPT);
  }, 60_000);

  test('gets another model while requests flow, and loses none', async () => {
    await cp(path.join(service.modelsDir, 'demo/demo-listener'), path.join(service.modelsDir, 'mine/listener'), { recursive: true });
    let swapped = false;
    const answers: string[] = [];
    const client = async (): Promise<void> => {
      while (!swapped) answers.push(await transcribe());
      answers.push(await transcribe());
    };
    const clients = [client(), client(), client()];
    await service.save('stt', '[model]\ndefault = "mine/listener"\n');
    await service
      .until('stt', 'up to date', (seen) => seen?.status.model === 'mine/listener' && condition(seen, 'UpToDate')?.status === 'True')
      .finally(() => (swapped = true));
    await Promise.all(clients);
    expect(answers.length).toBeGreaterThan(3);
    expect(new Set(answers)).toEqual(new Set([DEMO_TRANSCRIPT]));
  }, 120_000);

  test('says of a backend that the engine cannot use that it cannot, and keeps answering with what it had', async () => {
    await service.save('tts', `backend = "vulkan"\n${SLOTS.tts}`);
    const seen = await service.until('tts', 'refused', (slot) => condition(slot, 'UpToDate')?.reason === 'DeviceMissing');
    expect(condition(seen, 'UpToDate')?.message).toContain('the speech engine computes with the CPU only');
    expect(isAnswering(seen)).toBe(true);
  }, 60_000);
});
