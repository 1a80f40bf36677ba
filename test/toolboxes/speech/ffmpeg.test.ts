/** Formats besides WAV and PCM, with the real library and the real ffmpeg: what clients record, what they ask for, and files that mean harm. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { DEMO_TRANSCRIPT } from '../../../toolboxes/demo/demo-listener.ts';
import { writeDemoSpeech } from '../../../toolboxes/demo/demo-models.ts';
import { DEMO_SAMPLES_PER_CHARACTER, DEMO_SAMPLE_RATE } from '../../../toolboxes/demo/demo-speaker.ts';
import { describeWithFfmpeg } from '../../support/require/require-ffmpeg.ts';
import { speak, startSpeechServer, transcribe, untilHealth, type RunningSpeechServer } from './running-speech-server.ts';
import { wavFile } from './sounds.ts';

const run = promisify(execFile);
const START_MS = 180_000;

describeWithFfmpeg('The speech server, with ffmpeg, listens:', () => {
  let root = '';
  let server: RunningSpeechServer;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-ffmpeg-'));
    await writeDemoSpeech(root);
    server = await startSpeechServer('stt', path.join(root, 'demo', 'demo-listener'), { temporary: root });
    await untilHealth(server, 'ready');
    await writeFile(path.join(root, 'a.wav'), wavFile([[4, 0.3]], { rate: 44_100, channels: 2 }));
  }, START_MS);
  afterAll(async () => {
    expect(await server.stop()).toBe(0);
    await rm(root, { recursive: true });
  });

  /** The recording of four seconds in another format. */
  const encoded = async (name: string, flags: readonly string[]): Promise<Buffer> => {
    const file = path.join(root, name);
    await run('ffmpeg', ['-v', 'error', '-y', '-i', path.join(root, 'a.wav'), ...flags, file]);
    return readFile(file);
  };
  const heard = async (sound: Uint8Array) => {
    const { status, text } = await transcribe(server, sound, { response_format: 'verbose_json' });
    const answer: { text?: string; duration?: number; error?: object } = JSON.parse(text);
    return { status, ...answer };
  };

  test.each([
    ['mp3', []],
    ['flac', []],
    ['ogg', ['-c:a', 'libopus']],
    ['oga', ['-c:a', 'flac', '-f', 'ogg']],
    ['m4a', ['-c:a', 'aac']],
    ['mp4', ['-c:a', 'aac']],
    ['webm', ['-c:a', 'libopus']],
    ['mka', ['-c:a', 'libopus']],
    ['aac', []],
    ['aiff', []],
    ['mpeg', ['-c:a', 'mp2']],
    ['ts', ['-c:a', 'aac']],
    ['wv', []],
    // A WAV file that is compressed, which its head tells.
    ['wav', ['-c:a', 'adpcm_ima_wav']],
  ])('%s', async (extension, flags) => {
    const { text, duration = 0 } = await heard(await encoded(`b.${extension}`, flags));
    expect(text).toBe(DEMO_TRANSCRIPT);
    // Encoders add silence at the begin or at the end.
    expect(Math.abs(duration - 4)).toBeLessThan(0.3);
  });

  test('a WebM that was cut off is heard up to its end, and one without a whole frame is refused', async () => {
    const whole = await encoded('c.webm', ['-c:a', 'libopus']);
    const { text, duration = 0 } = await heard(whole.subarray(0, whole.length / 2));
    expect(text).toBe(DEMO_TRANSCRIPT);
    expect(duration).toBeLessThan(3);
    expect(await heard(whole.subarray(0, 100))).toMatchObject({ status: 400, error: { code: 'audio.invalid' } });
  });

  test.each([
    ['a playlist that names a file of the machine', Buffer.from('ffconcat version 1.0\nfile a.wav\n')],
    ['a playlist of the web', Buffer.from('#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n')],
    ['a description of a session', Buffer.from('v=0\no=- 0 0 IN IP4 127.0.0.1\ns=a\nc=IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 0\n')],
    [
      'a picture',
      Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'),
    ],
    ['a zip archive', Buffer.from('PK\u0003\u0004 and so on')],
    ['an empty file', Buffer.alloc(0)],
  ])('refuses %s', async (_, bytes) => {
    expect(await heard(bytes)).toMatchObject({ status: 400, error: { code: 'audio.invalid', param: 'file' } });
    expect((await heard(await readFile(path.join(root, 'a.wav')))).text).toBe(DEMO_TRANSCRIPT);
  });
});

describeWithFfmpeg('The speech server, with ffmpeg, speaks:', () => {
  const INPUT = 'Hello there. This is the second sentence.';
  let root = '';
  let server: RunningSpeechServer;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-ffmpeg-'));
    await writeDemoSpeech(root);
    server = await startSpeechServer('tts', path.join(root, 'demo', 'demo-speaker'));
    await untilHealth(server, 'ready');
  }, START_MS);
  afterAll(async () => {
    expect(await server.stop()).toBe(0);
    await rm(root, { recursive: true });
  });

  /** Seconds of a file with sound, which ffmpeg must decode without an error. */
  const secondsOf = async (bytes: Uint8Array): Promise<number> => {
    const file = path.join(root, 'spoken');
    await writeFile(file, bytes);
    const flags = ['-v', 'error', '-xerror', '-i', file, '-f', 's16le', '-ar', '8000', '-ac', '1', 'pipe:1'];
    const { stdout } = await run('ffmpeg', flags, { encoding: 'buffer', maxBuffer: 2 ** 24 });
    return stdout.length / 16_000;
  };
  const expected = ((INPUT.length - 1) * DEMO_SAMPLES_PER_CHARACTER) / DEMO_SAMPLE_RATE;

  test.each([
    ['mp3', 'audio/mpeg'],
    ['opus', 'audio/ogg'],
    ['aac', 'audio/aac'],
    ['flac', 'audio/flac'],
  ])('%s, complete, as sound and in events', async (response_format, contentType) => {
    const sound = await speak(server, { input: INPUT, response_format });
    expect(sound.headers.get('content-type')).toContain(contentType);
    expect(Math.abs((await secondsOf(new Uint8Array(await sound.arrayBuffer()))) - expected)).toBeLessThan(0.3);
    const text = await (await speak(server, { input: INPUT, response_format, stream_format: 'sse' })).text();
    const events = text
      .split('\n\n')
      .filter((line) => line !== '')
      .map((line): { audio?: string } => JSON.parse(line.slice(6)));
    const bytes = Buffer.concat(events.map(({ audio = '' }) => Buffer.from(audio, 'base64')));
    expect(Math.abs((await secondsOf(bytes)) - expected)).toBeLessThan(0.3);
  });

  test('mp3 where no format is named', async () => {
    expect((await speak(server, { input: 'Hi' })).headers.get('content-type')).toBe('audio/mpeg');
  });

  test('a client that leaves does not keep ffmpeg running', async () => {
    const abort = new AbortController();
    const response = await speak(server, { input: 'This goes on. '.repeat(290), response_format: 'mp3' }, abort.signal);
    await response.body?.getReader().read();
    abort.abort();
    // Children of the server: its engine, and ffmpeg as long as it encodes.
    const children = async () => (await readFile(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8')).trim().split(' ');
    while ((await children()).length > 1) await speak(server, { input: 'Hi', response_format: 'wav' });
  });
});
