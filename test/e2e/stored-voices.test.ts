/** Stored voices on the real engine, with a generated model that imitates the pitch of a recording: stored, spoken with, kept over a restart, refused where they are of no use, deleted. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import OpenAI, { toFile } from 'openai';
import { DEMO_VOICES } from '../../toolboxes/demo/demo-speaker.ts';
import { startService, isAnswering, type Service } from '../support/service.ts';
import { CLONER_SAMPLE_RATE, encodeCloner } from '../support/speech/cloner-model.ts';
import { pitchOf, toneFile } from '../toolboxes/speech/sounds.ts';

const SLOTS = {
  tts: '[model]\ndefault = "cloner"\n',
  reader: 'provider = "tts"\nload = "on-demand"\n[model]\ndefault = "demo-speaker"\n',
};
/** Of the pitch that the model makes, in hertz. */
const NEAR = 15;

describe('Stored voices', () => {
  let service: Service;
  let openai: OpenAI;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', speech: true });
    openai = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const model = path.join(service.modelsDir, 'cloner');
    await mkdir(model);
    for (const [name, bytes] of Object.entries(encodeCloner())) await writeFile(path.join(model, name), bytes);
    for (const [name, text] of Object.entries(SLOTS)) await service.save(name, text);
    await service.until('tts', 'ready', isAnswering);
  }, 180_000);
  afterAll(() => service.dispose(), 60_000);

  const store = async (name: string, sound: Buffer) =>
    openai.audio.voices.create({ name, consent: 'none', audio_sample: await toFile(sound, 'a.wav', { type: 'audio/wav' }) });
  const failed = async (request: Promise<unknown>): Promise<unknown> => request.then(String, (error: unknown) => error);
  const speak = async (voice: string, model = 'tts') =>
    openai.audio.speech.create({ model, voice, input: 'Hello there.', response_format: 'pcm' });
  const heard = async (voice: string): Promise<number> =>
    pitchOf(Buffer.from(await (await speak(voice)).arrayBuffer()), CLONER_SAMPLE_RATE);
  const voicesOf = async (model: string): Promise<readonly string[]> => {
    const answer: { voices: { id: string }[] } = JSON.parse(await (await fetch(`${service.url}/v1/audio/voices?model=${model}`)).text());
    return answer.voices.map(({ id }) => id);
  };

  test('are spoken with, each with its own sound, and listed', async () => {
    await store('low', toneFile({ hertz: 300, seconds: 2 }));
    await store('high', toneFile({ hertz: 600, seconds: 2 }));
    expect(Math.abs((await heard('low')) - 300)).toBeLessThan(NEAR);
    expect(Math.abs((await heard('HIGH')) - 600)).toBeLessThan(NEAR);
    expect(await voicesOf('tts')).toEqual(['high', 'low']);
    expect(await voicesOf('reader')).toEqual(DEMO_VOICES);
  }, 60_000);

  test('are refused by a model with voices of its own, which goes on with those', async () => {
    expect((await speak(DEMO_VOICES[0], 'reader')).status).toBe(200);
    expect(await failed(speak('low', 'reader'))).toMatchObject({
      status: 422,
      code: 'audio.cloning_unsupported',
      param: 'voice',
      message: expect.stringContaining('use "tts"'),
    });
  }, 60_000);

  test('may have the largest recording that is accepted', async () => {
    const longest = toneFile({ hertz: 300, seconds: 30, rate: 50_000 }).subarray(0, 3_000_000);
    await store('longest', longest);
    expect(Math.abs((await heard('longest')) - 300)).toBeLessThan(NEAR);
  }, 60_000);

  test('whose recording only looks like audio are refused by the server when they are used, and the slot stays healthy', async () => {
    await store('broken', Buffer.from('OggS and no more'));
    expect(await failed(speak('broken'))).toMatchObject({ code: expect.stringMatching(/^audio\.(invalid|format_unsupported)$/) });
    expect(Math.abs((await heard('low')) - 300)).toBeLessThan(NEAR);
  }, 60_000);

  test('are there after a restart of the service, and after a crash', async () => {
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await service.kill(signal);
      await service.start();
      expect(Math.abs((await heard('high')) - 600)).toBeLessThan(NEAR);
    }
  }, 120_000);

  test('are gone once deleted: the model says that it needs a recording, the disk has nothing, and the log names who did it', async () => {
    for (const name of ['low', 'high', 'longest', 'broken'])
      expect(await openai.audio.voices.delete(name)).toMatchObject({ deleted: true });
    expect(await failed(speak('low'))).toMatchObject({ status: 422, code: 'audio.sample_missing' });
    expect(await readdir(path.join(service.dir, 'state', 'voices'))).toEqual([]);
    expect(service.output()).toContain('deleted the voice \\"low\\"');
    expect(await readFile(path.join(service.modelsDir, 'cloner', 'vocab.json'))).not.toHaveLength(0);
  }, 60_000);
});
