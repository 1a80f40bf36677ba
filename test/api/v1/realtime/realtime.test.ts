/** Sessions of `/v1/realtime` on the real server, with a model server whose transcripts grow with the sound. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { startUpstream, sendJson, type FakeUpstream, type SeenRequest } from '../../../gateway/support/fake-upstream.ts';
import { publish, slotName } from '../../../gateway/support/board-fixture.ts';
import { startGateway, until, type GatewayFixture } from '../../../gateway/support/gateway-fixture.ts';
import {
  COMPLETED,
  connectRealtime,
  DELTA,
  FAILED,
  RATE,
  silenceOf,
  toneOf,
  type RealtimeClient,
} from '../../../support/realtime-client.ts';

const PATH = '/v1/realtime?intent=transcription';
const WORDS = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];
/** What the double hears: a word for each half second. */
const heard = (seconds: number): string => WORDS.slice(0, Math.floor(seconds * 2)).join(' ');

let gateway: GatewayFixture;
let server: FakeUpstream;
let clients: RealtimeClient[];
/** Answers wait while this is set. */
let gate: Promise<void> | undefined;
let seen: string[];
let failing: boolean;

beforeEach(async () => {
  gate = undefined;
  failing = false;
  seen = [];
  clients = [];
  server = await startUpstream({
    answer(request, res) {
      const seconds = secondsOf(request);
      void (gate ?? Promise.resolve()).then(() => {
        if (failing)
          sendJson(res, 400, { error: { message: 'Send audio', type: 'invalid_request_error', code: 'audio.invalid', param: 'file' } });
        else sendJson(res, 200, { text: heard(seconds) });
      });
    },
  });
  await start();
});
afterEach(async () => {
  for (const client of clients) await client.close();
  await gateway.close();
  await server.kill();
  expect(gateway.faults).toEqual([]);
  expect(gateway.traffic.ofSlot(slotName('stt'))).toMatchObject({ inFlight: 0, parked: 0 });
  await until(() => gateway.gateway.load().bufferedBytes === 0);
  expect(gateway.gateway.load().requests).toBe(0);
});

async function start(settings: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await startGateway({ settings });
  serve();
}

function serve(...more: Parameters<typeof publish>[1][]): void {
  publish(
    gateway.board,
    { name: 'stt', model: 'moonshine', capabilities: ['transcription'], targets: [{ workload: 'w', port: server.port }] },
    { name: 'primary', model: 'chatty', capabilities: ['chat'] },
    ...more,
  );
}

function secondsOf({ body }: SeenRequest): number {
  const form = body.toString('latin1');
  seen.push(form.slice(0, form.indexOf('RIFF')));
  const at = form.indexOf('RIFF');
  return body.readUInt32LE(at + 40) / 2 / body.readUInt32LE(at + 24);
}

async function open(path = PATH): Promise<RealtimeClient> {
  const client = await connectRealtime(`${gateway.url}${path}`);
  clients.push(client);
  await client.waitFor('session.created');
  return client;
}

/** Everything sent before has been read. */
const sync = async (client: RealtimeClient) => client.errorOf('{}');

const MANUAL = { type: 'session.update', session: { type: 'transcription', audio: { input: { turn_detection: null } } } };

describe('a session that detects speech', () => {
  test('says when speech begins and ends, commits it with the sound before it, and transcribes it', async () => {
    const client = await open();
    client.append(silenceOf(1));
    client.append(Buffer.concat([toneOf(0.7), silenceOf(0.6)]));
    const started = await client.waitFor('input_audio_buffer.speech_started');
    const stopped = await client.waitFor('input_audio_buffer.speech_stopped');
    const committed = await client.waitFor('input_audio_buffer.committed');
    const { transcript, usage, item_id: item } = await client.waitFor(COMPLETED);
    // 300 ms before the tone, the tone, and 500 ms of silence that end it.
    expect(started.audio_start_ms).toBe(700);
    expect(stopped.audio_end_ms).toBe(2200);
    expect(usage).toEqual({ type: 'duration', seconds: 1.5 });
    expect(transcript).toBe(heard(1.5));
    expect(new Set([item, started.item_id, stopped.item_id, committed.item_id]).size).toBe(1);
  });

  test('transcribes nothing while nobody speaks, and keeps no more than the sound before speech', async () => {
    const client = await open();
    for (let part = 0; part < 20; part += 1) client.append(silenceOf(1));
    await sync(client);
    expect(seen).toEqual([]);
    expect(gateway.gateway.load().bufferedBytes).toBeLessThan(RATE);
  });

  test('sends the words on which two transcripts agree while somebody speaks, and together they begin the final transcript', async () => {
    const client = await open();
    for (let part = 0; part < 60 && client.ofType(DELTA).length < 2; part += 1) {
      client.append(toneOf(0.3));
      await sync(client);
      await until(() => gateway.gateway.load().requests === 0);
    }
    expect(client.ofType('input_audio_buffer.committed')).toEqual([]);
    client.append(silenceOf(0.6));
    const { transcript, item_id: item } = await client.waitFor(COMPLETED);
    const deltas = client.ofType(DELTA);
    expect(deltas.map(({ delta }) => delta).join('')).toBe(transcript);
    expect(new Set(deltas.map((event) => event.item_id))).toEqual(new Set([item]));
  });

  test('answers in the order of speech, and says which item came before', async () => {
    const client = await open();
    for (const seconds of [0.6, 1.1, 1.6]) client.append(Buffer.concat([toneOf(seconds), silenceOf(1)]));
    await client.waitFor(COMPLETED, 3);
    const items = client.ofType('input_audio_buffer.committed');
    expect(client.ofType(COMPLETED).map((event) => event.item_id)).toEqual(items.map((event) => event.item_id));
    expect(items.map((event) => event.previous_item_id)).toEqual([null, items[0]?.item_id, items[1]?.item_id]);
  });

  test('commits speech without a pause after a minute, and loses none of it', async () => {
    const client = await open();
    for (let part = 0; part < 7; part += 1) client.append(toneOf(10));
    client.append(silenceOf(1));
    await client.waitFor(COMPLETED, 2);
    const seconds = client.ofType(COMPLETED).reduce((sum, { usage }) => sum + (usage?.seconds ?? 0), 0);
    // The second part begins with the sound before it once more.
    expect(seconds).toBeGreaterThanOrEqual(70.5);
  });
});

describe('a session without turn detection', () => {
  test('transcribes what is committed, with language and prompt, and forgets what is cleared', async () => {
    const client = await open();
    const transcription = { model: 'moonshine', language: 'en', prompt: 'Names: Anna' };
    client.send({ type: 'session.update', session: { type: 'transcription', audio: { input: { turn_detection: null, transcription } } } });
    const { session } = await client.waitFor('session.updated');
    expect(session?.audio.input).toMatchObject({ turn_detection: null, transcription });
    client.append(toneOf(0.9));
    client.send({ type: 'input_audio_buffer.clear' });
    await client.waitFor('input_audio_buffer.cleared');
    client.append(silenceOf(0.5));
    client.send({ type: 'input_audio_buffer.commit' });
    expect((await client.waitFor(COMPLETED)).transcript).toBe('one');
    expect(seen.at(-1)).toMatch(
      /name="model"\r\n\r\nmoonshine\r\n[^]*name="language"\r\n\r\nen\r\n[^]*name="prompt"\r\n\r\nNames: Anna\r\n/,
    );
  });

  test('reads µ-law and A-law of telephones, and refuses another format while there is sound', async () => {
    for (const type of ['audio/pcmu', 'audio/pcma']) {
      const client = await open();
      const input = { format: { type }, turn_detection: null };
      client.send({ type: 'session.update', session: { type: 'transcription', audio: { input } } });
      await client.waitFor('session.updated');
      client.append(Buffer.alloc(8000, 0xd5));
      client.send({ type: 'input_audio_buffer.commit' });
      expect(await client.waitFor(COMPLETED)).toMatchObject({ transcript: 'one two', usage: { seconds: 1 } });
      client.append(Buffer.alloc(800));
      const error = await client.errorOf({
        type: 'session.update',
        session: { type: 'transcription', audio: { input: { format: { type: 'audio/pcm' } } } },
      });
      expect(error).toMatchObject({ param: 'session.audio.input', message: expect.stringContaining('commit or clear') });
    }
  });

  test('commits without a transcript if transcription is off', async () => {
    const client = await open();
    const input = { turn_detection: null, transcription: null };
    client.send({ type: 'session.update', session: { type: 'transcription', audio: { input } } });
    client.append(toneOf(0.5));
    client.send({ type: 'input_audio_buffer.commit' });
    await client.waitFor('input_audio_buffer.committed');
    await sync(client);
    expect(seen).toEqual([]);
  });
});

describe('the slot of a session', () => {
  test('gets another server while sound is transcribed: nothing is lost', async () => {
    const client = await open();
    client.send(MANUAL);
    const other = await startUpstream({ answer: (request, res) => sendJson(res, 200, { text: `other ${heard(secondsOf(request))}` }) });
    const first = Promise.withResolvers<void>();
    gate = first.promise;
    client.append(toneOf(0.5));
    client.send({ type: 'input_audio_buffer.commit' });
    await until(() => gateway.traffic.ofSlot(slotName('stt')).inFlight === 1);
    // As in a swap: the slot takes no requests, the old server ends, the new one opens.
    publish(gateway.board, { name: 'stt', model: 'parakeet', capabilities: ['transcription'] });
    client.append(toneOf(1));
    client.send({ type: 'input_audio_buffer.commit' });
    await client.waitFor('input_audio_buffer.committed', 2);
    const [old] = gateway.traffic.read().workloads.keys();
    if (old === undefined) throw new Error('There is no workload');
    gateway.traffic.abort(old);
    first.resolve();
    publish(gateway.board, {
      name: 'stt',
      model: 'parakeet',
      capabilities: ['transcription'],
      targets: [{ workload: 'x', port: other.port }],
    });
    await client.waitFor(COMPLETED, 2);
    expect(client.ofType(COMPLETED).map(({ transcript }) => transcript)).toEqual(['other one', 'other one two']);
    expect(client.ofType(FAILED)).toEqual([]);
    await other.kill();
  });

  test('is not asked for words that are not certain while it does not answer, but for what is committed', async () => {
    const client = await open();
    client.send(MANUAL);
    publish(gateway.board, { name: 'stt', model: 'moonshine', capabilities: ['transcription'] });
    client.append(toneOf(3));
    await sync(client);
    expect(gateway.traffic.ofSlot(slotName('stt'))).toMatchObject({ inFlight: 0, parked: 0 });
    client.send({ type: 'input_audio_buffer.commit' });
    await until(() => gateway.traffic.ofSlot(slotName('stt')).parked === 1);
    serve();
    expect((await client.waitFor(COMPLETED)).transcript).toBe(heard(3));
  });

  test('says in an event why something was not transcribed, and the session goes on', async () => {
    const client = await open();
    client.send(MANUAL);
    failing = true;
    client.append(toneOf(0.5));
    client.send({ type: 'input_audio_buffer.commit' });
    expect(await client.waitFor(FAILED)).toMatchObject({
      error: { code: 'audio.invalid', type: 'invalid_request_error', message: 'Send audio' },
    });
    failing = false;
    client.append(toneOf(0.5));
    client.send({ type: 'input_audio_buffer.commit' });
    expect((await client.waitFor(COMPLETED)).transcript).toBe('one');
  });

  test('is not asked any more when the client leaves', async () => {
    const client = await open();
    client.send(MANUAL);
    gate = new Promise(() => undefined);
    for (let count = 0; count < 3; count += 1) {
      client.append(toneOf(0.5));
      client.send({ type: 'input_audio_buffer.commit' });
    }
    await until(() => seen.length === 1);
    client.ws.terminate();
    await until(() => gateway.gateway.load().requests === 0 && gateway.gateway.load().bufferedBytes === 0);
    expect(seen.length).toBe(1);
  });
});

describe('the openai package', () => {
  test('transcribes with its WebSocket class', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'svc_any' });
    // The class speaks TLS only, which a proxy would end.
    const options = { createConnection: () => connect(gateway.port, '127.0.0.1') };
    const realtime = new OpenAIRealtimeWS({ intent: 'transcription', options }, client);
    const done = Promise.withResolvers<string>();
    const deltas: string[] = [];
    realtime.on('error', (error) => done.reject(error));
    realtime.on('conversation.item.input_audio_transcription.delta', ({ delta }) => deltas.push(delta ?? ''));
    realtime.on('conversation.item.input_audio_transcription.completed', ({ transcript }) => done.resolve(transcript));
    realtime.on('session.created', () => {
      realtime.send({ type: 'session.update', session: { type: 'transcription', audio: { input: { transcription: { model: 'stt' } } } } });
      const sound = Buffer.concat([toneOf(1), silenceOf(0.6)]);
      for (let at = 0; at < sound.length; at += 4800)
        realtime.send({ type: 'input_audio_buffer.append', audio: sound.subarray(at, at + 4800).toString('base64') });
    });
    expect(await done.promise).toBe(heard(1.6));
    expect(deltas.join('')).toBe(heard(1.6));
    const closed = new Promise((resolve) => realtime.socket.on('close', resolve));
    realtime.close();
    await closed;
  });
});
