/** Models of whisper.cpp: the speech server with a stand-in for `whisper-server`, which behaves as version 1.9.5 was seen to. The real one is tested in the toolbox image. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { encodeTinyWhisper } from '../../support/speech/tiny-whisper.ts';
import { startSpeechServer, transcribe, untilHealth, type RunningSpeechServer } from './running-speech-server.ts';
import { createCutter } from '../../../toolboxes/speech/decide/cut-at-pauses.ts';
import { toMono } from '../../../toolboxes/speech/decide/read-wav.ts';
import { toPcm } from '../../../toolboxes/speech/decide/write-wav.ts';
import { SMALL_BYTES } from '../../../toolboxes/speech/recording.ts';
import { wavFile, type Part } from './sounds.ts';

const STAND_IN = path.resolve(import.meta.dirname, '../../support/speech/whisper-double.mjs');
const TWO = wavFile([
  [2, 0.3],
  [2, 0],
  [2, 0.3],
]);

describe('The speech server, with a model of whisper.cpp,', () => {
  let root = '';
  let model = '';
  let server: RunningSpeechServer;
  const oldPath = process.env['PATH'];

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-whisper-'));
    await copyFile(STAND_IN, path.join(root, 'whisper-server'));
    await chmod(path.join(root, 'whisper-server'), 0o755);
    process.env['PATH'] = `${root}:${path.dirname(process.execPath)}:${oldPath}`;
    model = path.join(root, 'ggml-tiny.bin');
    await writeFile(model, encodeTinyWhisper({ multilingual: true }));
    server = await startSpeechServer('stt', model, { flags: ['--ffmpeg', 'none'], temporary: root });
    await untilHealth(server, 'ready');
  }, 180_000);
  afterAll(async () => {
    expect(await server.stop()).toBe(0);
    process.env['PATH'] = oldPath;
    await rm(root, { recursive: true });
  });

  /** Processes of the stand-in that were started for this suite. */
  const running = async (): Promise<readonly string[]> => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const lines = await Promise.all(pids.map(async (pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
    return pids.filter((_, index) => lines[index]?.includes(path.join(root, 'whisper-server')) === true);
  };
  const heard = async (fields: Readonly<Record<string, string>> = {}, route?: string) => {
    const { status, text } = await transcribe(server, TWO, { response_format: 'verbose_json', ...fields }, route);
    const answer: Record<string, unknown> = JSON.parse(text);
    return { status, ...answer };
  };

  test('transcribes each piece by itself, with the language and the times of its words', async () => {
    const answer = await heard({ 'timestamp_granularities[]': 'word', prompt: 'Names: Ada', temperature: '0.5' });
    expect(answer).toMatchObject({
      status: 200,
      language: 'german',
      duration: 6,
      text: expect.stringMatching(/^auto\/false\/0\.5\/Names: Ada .*auto/),
    });
    expect(JSON.stringify(answer)).toContain('"words":[{"word":"auto/false/0.5/Names:","start":0,');
  });

  test.each<readonly [string, number, readonly Part[]]>([
    [
      'in memory',
      1,
      [
        [3, 0.3],
        [2, 0],
        [2, 0.2],
      ],
    ],
    ['on disk', 2, [[40, 0.3]]],
  ])('gets exactly the samples of each piece of a recording that is %s', async (_, megabytes, parts) => {
    const file = wavFile(parts);
    expect(Math.ceil(file.length / SMALL_BYTES)).toBe(megabytes);
    const samples = toMono(file.subarray(44), { encoding: 'int', width: 2, channels: 1, rate: 16_000, from: 44, to: file.length });
    const cutter = createCutter(16_000, 28);
    const digests: string[] = [];
    const add = (piece: Float32Array): void => void digests.push(createHash('sha256').update(toPcm(piece)).digest('hex'));
    for (const piece of cutter.push(samples)) add(piece.samples);
    for (const piece of cutter.end()) add(piece.samples);
    expect(digests).toHaveLength(2);
    const { text } = await transcribe(server, file, { prompt: 'digest' });
    expect(JSON.parse(text)).toMatchObject({ text: digests.join(' ') });
  });

  test('passes on which language is spoken, and translates', async () => {
    expect(await heard({ language: 'fr' })).toMatchObject({ text: expect.stringContaining('fr/false') });
    expect(await heard({ language: 'fr' }, 'translations')).toMatchObject({
      language: 'english',
      text: expect.stringContaining('fr/true'),
    });
    // A language that no Whisper knows is not passed on.
    expect(await heard({ language: 'tlh' })).toMatchObject({ text: expect.stringContaining('auto/false') });
  });

  test('starts again after its engine was killed, and leaves no other process behind', async () => {
    const [before = ''] = await running();
    expect(await readlink(`/proc/${before}/exe`)).toBe(process.execPath);
    process.kill(await server.enginePid(), 'SIGKILL');
    await untilHealth(server, 'ready');
    expect((await heard()).status).toBe(200);
    expect(await running()).toHaveLength(1);
    expect(await running()).not.toContain(before);
    // Its own server may end as well.
    process.kill(Number((await running())[0]), 'SIGKILL');
    expect((await heard()).status).toBe(200);
    expect(await running()).toHaveLength(1);
  }, 60_000);

  test('ends its engine with itself', async () => {
    const other = await startSpeechServer('stt', model, { flags: ['--ffmpeg', 'none'], temporary: root });
    await untilHealth(other, 'ready');
    expect(await running()).toHaveLength(2);
    process.kill(other.pid, 'SIGKILL');
    await other.ended;
    while ((await running()).length > 1) await new Promise((resolve) => setTimeout(resolve, 20));
  }, 60_000);

  test.each([
    ['that is cut off', (bytes: Uint8Array) => bytes.subarray(0, 40), 'it is cut off'],
    ['that is no model', () => Buffer.from('<html>404</html>'), 'it is not a model for whisper.cpp'],
    // Only the engine finds this.
    [
      'whose weights are damaged',
      (bytes: Uint8Array) => Buffer.concat([bytes.subarray(0, 48), Buffer.from('broken')]),
      'failed to load model',
    ],
  ])(
    'does not start with a file %s, and says so',
    async (_, damage, message) => {
      const file = path.join(root, 'ggml-broken.bin');
      await writeFile(file, damage(encodeTinyWhisper()));
      const broken = await startSpeechServer('stt', file);
      expect(await broken.ended).toBe(1);
      expect(broken.output()).toContain(message);
    },
    60_000,
  );

  test('says what to install where the program is missing', async () => {
    process.env['PATH'] = path.dirname(process.execPath);
    const missing = await startSpeechServer('stt', model, { flags: ['--ffmpeg', 'none'] });
    expect(await missing.ended).toBe(1);
    expect(missing.output()).toContain('Install whisper.cpp, or choose a model of another format');
  }, 60_000);
});
