import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { writeDemoSpeech } from '../../../toolboxes/demo/demo-models.ts';
import { CLONER_SAMPLE_RATE, encodeCloner } from '../../support/speech/cloner-model.ts';
import { speak, startSpeechServer, untilHealth, type RunningSpeechServer } from './running-speech-server.ts';
import { pitchOf, toneFile } from './sounds.ts';

const START_MS = 180_000;

const encode = (sound: Buffer): string => sound.toString('base64');

describe('The speech server, with a model that imitates voices, on the real library', () => {
  let root = '';
  let temporary = '';
  let server: RunningSpeechServer;
  let other: RunningSpeechServer;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-cloner-'));
    temporary = path.join(root, 'temporary');
    const model = path.join(root, 'cloner');
    for (const directory of [model, temporary]) await mkdir(directory);
    for (const [name, bytes] of Object.entries(encodeCloner())) await writeFile(path.join(model, name), bytes);
    await writeDemoSpeech(root);
    server = await startSpeechServer('tts', model, { temporary });
    other = await startSpeechServer('tts', path.join(root, 'demo', 'demo-speaker'), { flags: ['--ffmpeg', 'none'] });
    await Promise.all([untilHealth(server, 'ready'), untilHealth(other, 'ready')]);
  }, START_MS);

  afterAll(async () => {
    expect(await server.stop()).toBe(0);
    expect(await other.stop()).toBe(0);
    await rm(root, { recursive: true });
  });

  const imitate = async (body: object): Promise<Response> =>
    speak(server, { input: 'Hello there. How are you?', response_format: 'pcm', ...body });
  const heard = async (body: object): Promise<number> =>
    pitchOf(Buffer.from(await (await imitate(body)).arrayBuffer()), CLONER_SAMPLE_RATE);

  test('says that it has no voices and imitates those of recordings', async () => {
    expect(await (await fetch(`${server.url}/v1/audio/voices`)).json()).toEqual({ voices: [] });
    expect(await (await fetch(`${server.url}/v1/models`)).json()).toMatchObject({ data: [{ family: 'pocket', clones: true, voices: [] }] });
  });

  test.each([16_000, 24_000, 48_000])('speaks with the voice of a recording of %i Hz', async (rate) => {
    for (const hertz of [300, 600]) {
      const pitch = await heard({ ref_audio: encode(toneFile({ hertz, seconds: 2, rate })), ref_text: 'Good morning.', voice: 'alloy' });
      expect(Math.abs(pitch - hertz)).toBeLessThan(15);
    }
  });

  test('takes the address of the data as well, and leaves no file behind', async () => {
    const sound = encode(toneFile({ hertz: 400, seconds: 1.5 }));
    expect(Math.abs((await heard({ ref_audio: `data:audio/wav;base64,${sound}` })) - 400)).toBeLessThan(15);
    const [directory = ''] = await readdir(temporary);
    expect(await readdir(path.join(temporary, directory))).toEqual([]);
  });

  test.each([
    ['none', {}, 422, 'audio.sample_missing'],
    ['an address elsewhere', { ref_audio: 'https://example.org/a.wav' }, 400, 'request.invalid'],
    ['a path', { ref_audio: 'file:///etc/passwd' }, 400, 'request.invalid'],
    ['no text', { ref_audio: 7 }, 400, 'request.invalid'],
    ['nothing', { ref_audio: '' }, 400, 'request.invalid'],
    ['no audio', { ref_audio: encode(Buffer.from('This is a text, and no recording.')) }, 400, 'audio.invalid'],
    ['half a second', { ref_audio: encode(toneFile({ hertz: 300, seconds: 0.5 })) }, 400, 'audio.invalid'],
    ['31 seconds', { ref_audio: encode(toneFile({ hertz: 300, seconds: 31, rate: 8000 })) }, 400, 'audio.invalid'],
    ['too many bytes', { ref_audio: 'A'.repeat(4_000_004) }, 413, 'request.too_large'],
    ['a transcript that is too long', { ref_audio: 'AAAA', ref_text: 'x'.repeat(1001) }, 400, 'request.invalid'],
  ] as const)('refuses %s as a recording, and stays healthy', async (_what, body, status, code) => {
    const answer = await imitate(body);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ error: { code, param: expect.stringMatching(/^ref_(audio|text)$/) } });
    expect((await imitate({ ref_audio: encode(toneFile({ hertz: 300, seconds: 1 })) })).status).toBe(200);
  });

  test('a model with voices of its own answers that it cannot imitate one', async () => {
    const answer = await speak(other, { input: 'Hello.', ref_audio: encode(toneFile({ hertz: 300, seconds: 1 })) });
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({ error: { code: 'audio.cloning_unsupported', param: 'ref_audio' } });
  });
});
