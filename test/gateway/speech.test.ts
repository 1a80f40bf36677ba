/** The routes of audio, as OpenAI's own client, curl and worse clients use them, against a stand-in for the speech server. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import OpenAI, { APIError, BadRequestError, NotFoundError, toFile } from 'openai';
import type { Capability } from '../../src/schema/slot/provider-kinds.ts';
import { ENDLESS, startSpeechDouble, type SpeechDouble } from '../support/speech/speech-double.ts';
import { publish, slotName } from './support/board-fixture.ts';
import { errorOf, post } from './support/client.ts';
import { FORM_TYPE, formOf, type FormPart } from './support/forms.ts';
import { startGateway, until, type GatewayFixture } from './support/gateway-fixture.ts';

const TRANSCRIPTIONS = '/v1/audio/transcriptions';
const SPEECH = '/v1/audio/speech';
const MIB = 1024 * 1024;
const HEARS: readonly Capability[] = ['transcription'];

let dir: string;
let gateway: GatewayFixture;
let server: SpeechDouble;
let client: OpenAI;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'svc-speech-'));
  server = await startSpeechDouble();
  gateway = await startGateway({ settings: { SVC_STATE_DIR: dir } });
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
  serve(['transcription', 'translation']);
});
afterEach(async () => {
  await gateway.close();
  await server.kill();
  expect(gateway.faults).toEqual([]);
  for (const name of ['stt', 'tts']) expect(gateway.traffic.ofSlot(slotName(name))).toEqual({ inFlight: 0, parked: 0 });
  expect(gateway.gateway.load()).toMatchObject({ requests: 0, bufferedBytes: 0, spooledBytes: 0 });
  await rm(dir, { recursive: true });
});

function serve(hears: readonly Capability[]): void {
  const targets = [{ workload: 'w', port: server.port }];
  publish(
    gateway.board,
    { name: 'stt', model: 'moonshine', aliases: ['whisper-1'], capabilities: hears, targets },
    {
      name: 'tts',
      model: 'kokoro',
      aliases: ['tts-1'],
      capabilities: ['speech'],
      targets,
      voices: [{ id: 'af_heart', language: 'en-us' }, { id: 'am_adam' }],
    },
    { name: 'second', model: 'piper', capabilities: ['speech'], voices: [{ id: 'default' }, { id: 'af_heart' }] },
  );
}

const recording = async (bytes = 1000) => toFile(Buffer.alloc(bytes), 'a.wav', { type: 'audio/wav' });

describe('the openai package', () => {
  test('transcribes: by model, alias and slot, in JSON, as text, and in events', async () => {
    for (const model of ['moonshine', 'whisper-1', 'stt']) {
      expect(await client.audio.transcriptions.create({ file: await recording(), model })).toEqual({ text: 'heard 1000 bytes' });
    }
    const text = await client.audio.transcriptions.create({ file: await recording(), model: 'stt', response_format: 'text' });
    expect(text).toBe('heard 1000 bytes\n');
    const events: string[] = [];
    for await (const event of await client.audio.transcriptions.create({ file: await recording(), model: 'stt', stream: true })) {
      events.push(event.type);
    }
    expect(events).toEqual(['transcript.text.delta', 'transcript.text.done']);
  });

  test('translates where the model can, and gets a typed 400 that says what to do where it cannot', async () => {
    expect(await client.audio.translations.create({ file: await recording(), model: 'stt' })).toEqual({ text: 'translated 1000 bytes' });
    serve(HEARS);
    const failed = await client.audio.translations.create({ file: await recording(), model: 'stt' }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(BadRequestError);
    expect(failed).toMatchObject({ status: 400, code: 'model.unsupported', message: expect.stringContaining('serves transcription') });
  });

  test('speaks: the audio arrives as it is computed, and as events', async () => {
    const request = { model: 'tts-1', voice: 'alloy', input: 'Hello 😀' } as const;
    const answer = await client.audio.speech.create(request);
    expect(answer.headers.get('content-type')).toBe('audio/mpeg');
    expect((await answer.arrayBuffer()).byteLength).toBe(7);
    const events = await client.audio.speech.create({ ...request, stream_format: 'sse' });
    expect(await events.text()).toContain('speech.audio.done');
    const endless = await client.audio.speech.create({ ...request, voice: ENDLESS });
    const reader = endless.body?.getReader();
    expect((await reader?.read())?.value).toHaveLength(7);
    await reader?.cancel();
    await until(() => server.computing() === 0);
  });

  test('sends the largest recording of a voice to imitate, but no longer body', async () => {
    const say = async (characters: number) =>
      post(
        gateway.port,
        SPEECH,
        JSON.stringify({ model: 'tts', input: 'Hello', ref_audio: 'A'.repeat(characters), ref_text: 'What is said' }),
      );
    expect((await say(4_000_000)).status).toBe(200);
    expect((await say(4_200_000)).status).toBe(400);
  });

  test('mixes voices, and reads the note of the server about a language', async () => {
    const mixed = await client.audio.speech.create({ model: 'tts', voice: 'af_heart(2)+am_adam', input: 'Hello' });
    expect(mixed.status).toBe(200);
    const { response } = await client.audio.transcriptions.create({ file: await recording(), model: 'stt', language: 'xx' }).withResponse();
    expect(response.headers.get('x-svc-note')).toBe('The model does not know the language "xx"');
  });

  test('gets typed errors: of the gateway, and of the server unchanged', async () => {
    const said = async (request: object) =>
      client.audio.speech.create({ model: 'tts', voice: 'alloy', input: 'Hi', ...request }).catch((error: unknown) => error);
    expect(await said({ model: 'none' })).toBeInstanceOf(NotFoundError);
    expect(await said({ voice: 'nobody' })).toMatchObject({ status: 400, code: 'audio.voice_unknown', param: 'voice' });
    expect(await said({ input: 'x'.repeat(4097) })).toMatchObject({
      status: 400,
      param: 'input',
      message: '400 "input" has 4097 characters: send at most 4096 ("SVC_SPEECH_LIMIT")',
    });
    const file = await toFile(Buffer.from('not audio at all'), 'a.wav');
    const heard = await client.audio.transcriptions.create({ file, model: 'stt' }).catch((error: unknown) => error);
    expect(heard).toBeInstanceOf(BadRequestError);
    expect(heard).toMatchObject({ code: 'audio.invalid', param: 'file' });
    expect(heard instanceof APIError ? heard.requestID : '').toMatch(/./);
  });

  test('frees the engine when it aborts, in whatever form the answer is', async () => {
    const file = await recording();
    for (const ask of [{ prompt: ENDLESS }, { stream: true, language: ENDLESS }] as const) {
      const leaving = new AbortController();
      const asked = client.audio.transcriptions.create({ file, model: 'stt', ...ask }, { signal: leaving.signal });
      const ended = (async () => {
        const answer = await asked;
        if (typeof answer === 'object' && Symbol.asyncIterator in answer) for await (const _event of answer);
      })().catch((error: unknown) => error);
      await until(() => server.computing() === 1);
      leaving.abort();
      await ended;
      await until(() => server.computing() === 0);
    }
    expect(gateway.finished.map(({ status }) => status)).toEqual([499, expect.anything()]);
  });
});

test('curl -F uploads a file, also one that must be asked for first', async () => {
  const file = path.join(dir, 'a.wav');
  await writeFile(file, Buffer.alloc(3 * MIB));
  const args = ['-s', '-F', `file=@${file}`, '-F', 'model=stt', '-F', 'response_format=text', `${gateway.url}${TRANSCRIPTIONS}`];
  expect((await promisify(execFile)('curl', args)).stdout).toBe(`heard ${3 * MIB} bytes\n`);
  expect((await promisify(execFile)('curl', ['-H', 'Expect: 100-continue', ...args])).stdout).toBe(`heard ${3 * MIB} bytes\n`);
});

describe('limits', () => {
  const upload = async (bytes: number, fields: readonly FormPart[] = []) =>
    post(gateway.port, TRANSCRIPTIONS, formOf([...fields, { name: 'file', fileName: 'a.wav', content: Buffer.alloc(bytes) }]), {
      headers: { 'content-type': FORM_TYPE },
    });

  test('a recording of exactly the limit is accepted, and a larger one is refused with its setting: 25 MiB by default, which is less than for other uploads', async () => {
    expect((await upload(25 * MIB)).text).toBe(`{"text":"heard ${25 * MIB} bytes"}`);
    const large = await upload(26 * MIB);
    expect([large.status, errorOf(large.text)]).toMatchObject([
      413,
      {
        code: 'request.too_large',
        message: `The file has more than ${25 * MIB} bytes ("SVC_AUDIO_LIMIT"): send a smaller or shorter file`,
      },
    ]);
  });

  test('are settings', async () => {
    await gateway.close();
    gateway = await startGateway({
      settings: { SVC_STATE_DIR: dir, SVC_AUDIO_LIMIT: '70Mi', SVC_SPEECH_LIMIT: '5000', SVC_BODY_LIMIT: '1Mi' },
    });
    serve(HEARS);
    expect((await upload(66 * MIB)).status).toBe(200);
    const say = async (input: string) => (await post(gateway.port, SPEECH, JSON.stringify({ model: 'tts', input }))).status;
    expect([await say('x'.repeat(5000)), await say('😀'.repeat(5000)), await say('x'.repeat(5001))]).toEqual([200, 200, 400]);
  });

  test('a text is counted in characters, however it is written, and a body without end is not kept', async () => {
    const say = async (input: string) => post(gateway.port, SPEECH, `{"model":"tts","input":"${input}"}`);
    expect((await say('\\ud83d\\ude00'.repeat(4096))).status).toBe(200);
    expect(errorOf((await say('\\u0041'.repeat(4097))).text)).toMatchObject({ param: 'input', code: 'request.invalid' });
    expect(errorOf((await say('x'.repeat(10 * MIB))).text)).toMatchObject({ param: 'input', code: 'request.invalid' });
    for (const input of ['', '   ', 5, null, undefined]) {
      const refused = await post(gateway.port, SPEECH, JSON.stringify({ model: 'tts', input }));
      expect([refused.status, errorOf(refused.text).param]).toEqual([400, 'input']);
    }
    expect(errorOf((await post(gateway.port, SPEECH, '{"model":"tts","input":"a",}')).text).code).toBe('request.invalid');
  });
});

describe('an upload that is not a form is refused, and the slot stays as it was', () => {
  const file: FormPart = { name: 'file', fileName: 'a.wav', content: 'RIFF' };
  const wrongBoundary = { 'content-type': 'multipart/form-data; boundary=other' };
  test.each([
    ['with a wrong boundary', formOf([file]), wrongBoundary],
    ['with two boundaries in its header', formOf([file]), { 'content-type': `${FORM_TYPE}; boundary=b` }],
    ['without a boundary', formOf([file]), { 'content-type': 'multipart/form-data' }],
    ['without an end', formOf([file], false), undefined],
    ['with 10,000 parts', formOf(Array.from({ length: 10_000 }, (_, index) => ({ name: `f${index}`, content: 'x' }))), undefined],
    ['with a field whose name has 1 MB', formOf([{ name: 'x'.repeat(1_000_000), content: '' }, file]), undefined],
    ['with two models', formOf([{ name: 'model', content: 'stt' }, { name: 'model', content: 'x' }, file]), undefined],
    ['with nothing in it', Buffer.alloc(0), undefined],
  ] as const)('%s', async (_what, body, type) => {
    const reply = await post(gateway.port, TRANSCRIPTIONS, body, { headers: type ?? { 'content-type': FORM_TYPE } });
    expect([reply.status, errorOf(reply.text).code]).toEqual([400, 'request.invalid']);
    expect(await client.audio.transcriptions.create({ file: await recording(), model: 'stt' })).toEqual({ text: 'heard 1000 bytes' });
  });
});

describe('GET /v1/audio/voices', () => {
  const voices = async (query = '') => {
    const response = await fetch(`${gateway.url}/v1/audio/voices${query}`);
    return { status: response.status, body: await response.text() };
  };
  const heart = { id: 'af_heart', name: 'af_heart', language: 'en-us', model: 'kokoro', slot: 'tts' };

  test('lists the voices of all slots that speak, the default slot first, each name once, also of a slot that is not loaded', async () => {
    expect(JSON.parse((await voices()).body)).toEqual({
      voices: [
        heart,
        { id: 'am_adam', name: 'am_adam', model: 'kokoro', slot: 'tts' },
        { id: 'default', name: 'default', model: 'piper', slot: 'second' },
      ],
    });
    expect(server.seen).toEqual([]);
  });

  test('lists those of one model, alias or slot, none for a model that does not speak, and refuses an unknown name', async () => {
    for (const name of ['tts', 'kokoro', 'tts-1']) expect(JSON.parse((await voices(`?model=${name}`)).body).voices[0]).toEqual(heart);
    expect(JSON.parse((await voices('?model=stt')).body)).toEqual({ voices: [] });
    const unknown = await voices('?model=none');
    expect([unknown.status, errorOf(unknown.body)]).toMatchObject([404, { code: 'model.not_found', param: 'model' }]);
  });
});
