/** A Kokoro on the real library with the real data of espeak-ng: voices, mixes of them, languages and speed. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeWithEspeak } from '../../support/require/require-espeak.ts';
import { KOKORO_PITCHES, KOKORO_RATE, writeKokoro } from '../../support/speech/kokoro-model.ts';
import { speak, startSpeechServer, untilHealth, type RunningSpeechServer } from './running-speech-server.ts';
import { pitchOf } from './sounds.ts';

describeWithEspeak('A Kokoro on the real library', (espeakData) => {
  let root = '';
  let server: RunningSpeechServer;
  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-kokoro-'));
    await writeKokoro(path.join(root, 'kokoro'), espeakData);
    server = await startSpeechServer('tts', path.join(root, 'kokoro'), { flags: ['--ffmpeg', 'none'], temporary: root });
    await untilHealth(server, 'ready');
  }, 180_000);
  afterAll(async () => {
    expect(await server.stop()).toBe(0);
    await rm(root, { recursive: true });
  });

  const say = async (more: object) => {
    const response = await speak(server, { input: 'Hello there, how are you today?', response_format: 'pcm', ...more });
    const pcm = Buffer.from(await response.arrayBuffer());
    return { status: response.status, note: response.headers.get('x-svc-note'), pcm, hertz: Math.round(pitchOf(pcm, KOKORO_RATE)) };
  };

  test.each(Object.entries(KOKORO_PITCHES))('speaks with the voice %s', async (voice, hertz) => {
    const spoken = await say({ voice });
    expect(spoken.status).toBe(200);
    expect(Math.abs(spoken.hertz - hertz)).toBeLessThan(3);
  });

  test.each([
    ['af_bella(2)+af_sky', 400],
    ['af_sky+af_bella', 450],
    ['af_bella(0.5)+af_sky(0.5)', 450],
    ['bf_emma+zf_xiaoyi(3)', 475],
  ])('mixes %s by its weights', async (voice, hertz) => {
    const spoken = await say({ voice });
    expect(spoken.status).toBe(200);
    expect(Math.abs(spoken.hertz - hertz)).toBeLessThan(3);
    // The file of the mix does not stay.
    const [directory = ''] = (await readdir(root)).filter((name) => name.startsWith('svc-speech-'));
    expect(await readdir(path.join(root, directory))).not.toContain('mixed-voices.bin');
  });

  test('speaks with an accent, and notes a language that it does not know', async () => {
    expect(await say({ voice: 'af_bella', lang_code: 'b' })).toMatchObject({ status: 200, note: null });
    const german = await say({ voice: 'af_bella', lang_code: 'de' });
    expect(german).toMatchObject({ status: 200, note: expect.stringContaining('does not know the language "de"') });
    expect(german.pcm.equals((await say({ voice: 'af_bella' })).pcm)).toBe(true);
  });

  test('speaks faster and slower', async () => {
    const [slow, usual, fast] = [await say({ speed: 0.5 }), await say({}), await say({ speed: 2 })];
    expect(slow.pcm.length / usual.pcm.length).toBeCloseTo(2, 1);
    expect(usual.pcm.length / fast.pcm.length).toBeCloseTo(2, 1);
  });
});
