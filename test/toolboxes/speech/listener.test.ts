import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { writeDemoSpeech } from '../../../toolboxes/demo/demo-models.ts';
import { DEMO_TRANSCRIPT } from '../../../toolboxes/demo/demo-listener.ts';
import { startSpeechServer, transcribe, untilHealth, type RunningSpeechServer } from './running-speech-server.ts';
import { HEADS, wavFile, wavHeadOf } from './sounds.ts';

const SOUND = wavFile([[2, 0.3]]);
const TWO = wavFile([
  [2, 0.3],
  [2, 0],
  [2, 0.3],
]);

/** 8-bit samples at 1 kHz. */
function longSound(seconds: number): Buffer {
  const samples = Buffer.alloc(seconds * 1000, Buffer.from([128, 190, 128, 66]));
  return Buffer.concat([wavHeadOf({ rate: 1000, bits: 8, bytes: samples.length }), samples]);
}

function killIfThere(pid: number): void {
  try {
    if (pid > 0) process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

/** Installing the packages may take long on the first run. */
const START_MS = 180_000;

describe('The speech server, for speech-to-text, on the real library', () => {
  let root = '';
  let model = '';
  let temporary = '';
  let server: RunningSpeechServer;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-listener-'));
    await writeDemoSpeech(root);
    model = path.join(root, 'demo', 'demo-listener');
    const flags = ['--ffmpeg', 'none', '--alias', 'demo,whisper-1', '--limit', '3000000'];
    temporary = await mkdtemp(path.join(root, 'uploads-'));
    server = await startSpeechServer('stt', model, { flags, temporary });
    await untilHealth(server, 'ready');
  }, START_MS);

  afterAll(async () => {
    expect(await server.stop()).toBe(0);
    await rm(root, { recursive: true });
  });

  const stillHealthy = async (): Promise<void> => {
    expect(JSON.parse((await transcribe(server, SOUND)).text)).toMatchObject({ text: DEMO_TRANSCRIPT });
  };

  test('names the model, and what it can', async () => {
    const models = await (await fetch(`${server.url}/v1/models`)).json();
    expect(models).toMatchObject({
      object: 'list',
      data: [{ id: 'demo', family: 'moonshine', languages: ['en'], translation: false, timestamps: ['segment'] }, { id: 'whisper-1' }],
    });
  });

  test.each([
    ['json', `{"text":"${DEMO_TRANSCRIPT} ${DEMO_TRANSCRIPT}","usage":{"type":"duration","seconds":6}}`],
    ['text', `${DEMO_TRANSCRIPT} ${DEMO_TRANSCRIPT}\n`],
    ['srt', `1\n00:00:00,000 --> 00:00:02,240\n${DEMO_TRANSCRIPT}\n\n2\n00:00:03,760 --> 00:00:06,000\n${DEMO_TRANSCRIPT}\n\n`],
    ['vtt', `WEBVTT\n\n00:00:00.000 --> 00:00:02.240\n${DEMO_TRANSCRIPT}\n\n00:00:03.760 --> 00:00:06.000\n${DEMO_TRANSCRIPT}\n\n`],
  ])('answers with %s', async (response_format, text) => {
    expect(await transcribe(server, TWO, { response_format })).toMatchObject({ status: 200, text });
  });

  test('streams each piece as an event', async () => {
    const { text, headers } = await transcribe(server, TWO, { stream: 'true', model: 'demo' });
    const events = text.split('\n\n').filter((line) => line !== '');
    expect(headers.get('content-type')).toContain('text/event-stream');
    expect(events.map((line): unknown => JSON.parse(line.replace('data: ', '')))).toEqual([
      { type: 'transcript.text.delta', delta: DEMO_TRANSCRIPT },
      { type: 'transcript.text.delta', delta: ` ${DEMO_TRANSCRIPT}` },
      { type: 'transcript.text.done', text: `${DEMO_TRANSCRIPT} ${DEMO_TRANSCRIPT}`, usage: { type: 'duration', seconds: 6 } },
    ]);
  });

  test('silence is no text, and a short word is enough', async () => {
    expect(JSON.parse((await transcribe(server, wavFile([[20, 0]]))).text)).toMatchObject({ text: '' });
    expect(JSON.parse((await transcribe(server, wavFile([[0.05, 0.5]]))).text)).toMatchObject({ text: DEMO_TRANSCRIPT });
  });

  test.each([
    ['nothing', Buffer.alloc(0), 400, 'audio.invalid'],
    ['a zip archive named .wav', Buffer.concat([HEADS.zip, SOUND]), 400, 'audio.invalid'],
    ['a text', Buffer.from('Not audio at all'), 400, 'audio.invalid'],
    ['100 channels', wavFile([[0.1, 0.3]], { channels: 100 }), 400, 'audio.invalid'],
    ['a head and no samples', wavHeadOf({ bytes: 0 }), 400, 'audio.invalid'],
    ['a rate of 4 GHz', Buffer.concat([wavHeadOf({ rate: 0xffffffff }), SOUND]), 400, 'audio.invalid'],
    ['an MP3 file without ffmpeg', Buffer.concat([HEADS.mp3, SOUND]), 422, 'audio.format_unsupported'],
    ['a WebM file without ffmpeg', Buffer.concat([HEADS.webm, SOUND]), 422, 'audio.format_unsupported'],
    ['a file over the limit', Buffer.alloc(3_000_001), 413, 'request.too_large'],
  ])('refuses %s, and goes on', async (_, sound, status, code) => {
    const answer = await transcribe(server, sound);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { code, message: expect.stringMatching(/^Send /), param: 'file', type: 'invalid_request_error' },
    });
    await stillHealthy();
  });

  test('hears a file whose head declares more samples than there are', async () => {
    const lying = wavFile([[2, 0.3]], { declared: 2_000_000_000 });
    expect(JSON.parse((await transcribe(server, lying)).text)).toMatchObject({ text: DEMO_TRANSCRIPT, usage: { seconds: 2 } });
  });

  test('tries a language that the model does not know, and says so in a header', async () => {
    const { status, text, headers } = await transcribe(server, SOUND, { language: 'de' });
    expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 200, body: { text: DEMO_TRANSCRIPT } });
    expect(headers.get('x-svc-note')).toBe('The model does not know the language "de", and was not told it; it knows en');
    expect((await transcribe(server, SOUND, { language: 'en' })).headers.get('x-svc-note')).toBeNull();
  });

  test('refuses a translation and a wrong field', async () => {
    expect(await transcribe(server, SOUND, {}, 'translations')).toMatchObject({
      status: 422,
      text: expect.stringContaining('cannot translate'),
    });
    expect(await transcribe(server, SOUND, { response_format: 'xml' })).toMatchObject({ status: 400 });
  });

  const head = '--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';
  test.each([
    ['no boundary', 'multipart/form-data', 'x', 415, 'request.media_type'],
    ['JSON', 'application/json', '{}', 415, 'request.media_type'],
    ['another boundary', 'multipart/form-data; boundary=y', `${head}RIFF\r\n--x--\r\n`, 400, 'request.invalid'],
    ['a missing end', 'multipart/form-data; boundary=x', `${head}RIFF`, 400, 'request.invalid'],
    [
      'no file',
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nx\r\n--x--\r\n',
      400,
      'request.invalid',
    ],
    [
      'a text instead of a file',
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="file"\r\n\r\nx\r\n--x--\r\n',
      400,
      'request.invalid',
    ],
    [
      '10,000 parts',
      'multipart/form-data; boundary=x',
      `${'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\nb\r\n'.repeat(10_000)}--x--\r\n`,
      400,
      'request.invalid',
    ],
    [
      'a name of 1 MB',
      'multipart/form-data; boundary=x',
      `--x\r\ncontent-disposition: form-data; name="${'n'.repeat(1_000_000)}"\r\n\r\nb\r\n--x--\r\n`,
      400,
      'request.invalid',
    ],
  ])('refuses a body with %s', async (_, contentType, body, status, code) => {
    const answer = await fetch(`${server.url}/v1/audio/transcriptions`, { method: 'POST', headers: { 'content-type': contentType }, body });
    expect(await answer.json()).toMatchObject({ error: { code } });
    expect(answer.status).toBe(status);
    await stillHealthy();
  });

  test('answers 200 parallel requests, each with its own text', async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, async (_, index) => transcribe(server, index % 2 === 0 ? SOUND : TWO)));
    answers.forEach(({ status, text }, index) => {
      expect(status).toBe(200);
      expect(JSON.parse(text)).toMatchObject({ text: index % 2 === 0 ? DEMO_TRANSCRIPT : `${DEMO_TRANSCRIPT} ${DEMO_TRANSCRIPT}` });
    });
  }, 60_000);

  test('a short recording is never written to a file', async () => {
    const [directory = ''] = await readdir(temporary);
    // The time of a directory says when a name in it last came or went.
    const before = (await stat(path.join(temporary, directory))).mtimeMs;
    for (let run = 0; run < 3; run += 1) await stillHealthy();
    expect((await stat(path.join(temporary, directory))).mtimeMs).toBe(before);
  });

  test.each([
    ['in memory', 100_000],
    ['on disk', 2_000_000],
  ])('a client that leaves during its upload leaves nothing behind %s', async (_, bytes) => {
    const socket = createConnection({ port: Number(new URL(server.url).port), host: '127.0.0.1' });
    socket.write(
      `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=x\r\ncontent-length: 9999999\r\n\r\n${head}`,
    );
    await new Promise((resolve) => socket.write(Buffer.alloc(bytes), resolve));
    socket.destroy();
    await stillHealthy();
    const uploads = async (): Promise<readonly string[]> => {
      const directories = await readdir(temporary);
      return (await Promise.all(directories.map(async (name) => readdir(path.join(temporary, name))))).flat();
    };
    while ((await uploads()).length > 0) await stillHealthy();
  });

  test('requests survive that the engine is killed', async () => {
    const before = await server.enginePid();
    const long = wavFile([[85, 0.3]]);
    const answers = [transcribe(server, long), transcribe(server, long), transcribe(server, long)];
    process.kill(before, 'SIGKILL');
    for (const { status, text } of await Promise.all(answers)) {
      expect(status).toBe(200);
      expect(JSON.parse(text)).toMatchObject({ text: Array.from({ length: 4 }, () => DEMO_TRANSCRIPT).join(' ') });
    }
    await untilHealth(server, 'ready');
    expect(await server.enginePid()).not.toBe(before);
    await stillHealthy();
  }, 60_000);

  test('a request that crashes the engine twice gets an error, and the engine starts again', async () => {
    // A kill may come between two pieces of the recording, and then costs nothing: it has many pieces.
    let answer = { status: 200, text: '' };
    while (answer.status === 200) {
      let pending = true;
      const answering = transcribe(server, longSound(10 * 60)).finally(() => (pending = false));
      while (pending) {
        // Killed while it loads, it would count as an engine that cannot load its model.
        await untilHealth(server, 'ready');
        killIfThere(await server.enginePid());
        await untilHealth(server, 'restarting');
      }
      answer = await answering;
    }
    expect(answer).toMatchObject({ status: 500, text: expect.stringContaining('"code":"engine.crashed"') });
    await untilHealth(server, 'ready');
    await stillHealthy();
  }, 60_000);

  test('memory stays flat for an hour of sound', async () => {
    const memory = async (): Promise<number> => {
      const pids = [server.pid, await server.enginePid()];
      const texts = await Promise.all(pids.map(async (pid) => readFile(`/proc/${pid}/status`, 'utf8')));
      return texts.reduce((sum, text) => sum + Number(/VmRSS:\s*(\d+)/.exec(text)?.[1]) * 1024, 0);
    };
    // One hour would be over the limit of this server.
    const seconds = 45 * 60;
    const file = longSound(seconds);
    // What the allocators keep grows with the first ones.
    for (let run = 0; run < 2; run += 1) await transcribe(server, file);
    const before = await memory();
    const answer = await transcribe(server, file);
    expect(JSON.parse(answer.text)).toMatchObject({ usage: { seconds } });
    // All samples at once would take 172 MB at 16 kHz.
    expect((await memory()) - before).toBeLessThan(60_000_000);
  }, 120_000);
});

describe('The speech server refuses to start', () => {
  let root = '';
  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-listener-'));
  });
  afterAll(async () => rm(root, { recursive: true }));

  test.each([
    ['a graph that was cut off', (bytes: Buffer) => bytes.subarray(0, 300), 'Download "preprocess.onnx" again'],
    ['a graph that is none', () => Buffer.from('<html>404</html>'), 'Download "preprocess.onnx" again'],
    // Only the engine finds this, and ends its process: the middle of the graph is damaged.
    ['a graph with wrong content', (bytes: Buffer) => Buffer.from(bytes).fill(0xff, 20, 60), 'the engine cannot load it'],
  ])(
    'a model with %s, and says so',
    async (_, damage, message) => {
      await writeDemoSpeech(root);
      const model = path.join(root, 'demo', 'demo-listener');
      const file = path.join(model, 'preprocess.onnx');
      await writeFile(file, damage(await readFile(file)));
      const server = await startSpeechServer('stt', model);
      expect(await server.ended).toBe(1);
      expect(server.output()).toContain(message);
    },
    START_MS,
  );

  test('a directory without a model', async () => {
    await writeFile(path.join(root, 'model.gguf'), 'GGUF');
    const server = await startSpeechServer('stt', root);
    expect(await server.ended).toBe(1);
    expect(server.output()).toMatch(/error: The model ".*" cannot be loaded: Add the file "tokens.txt"/);
  });
});
