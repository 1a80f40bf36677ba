/** `/v1/realtime` of the real service on the real engine: as OpenAI's own client uses it, while the slot is loaded by it, and while the slot gets another model. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cp } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { DEMO_TRANSCRIPT } from '../../toolboxes/demo/demo-listener.ts';
import { COMPLETED, connectRealtime, DELTA, FAILED, silenceOf, toneOf } from '../support/realtime-client.ts';
import { condition, isAnswering, startService, type Service } from '../support/service.ts';

const PATH = '/v1/realtime?intent=transcription';
const MANUAL = { type: 'session.update', session: { type: 'transcription', audio: { input: { turn_detection: null } } } };

describe('Realtime transcription', () => {
  let service: Service;

  beforeAll(async () => {
    service = await startService({ runtime: 'process', speech: true });
    await service.save('stt', 'load = "on-demand"\n[model]\ndefault = "demo-listener"\naliases = ["whisper-1"]\n');
    await service.until('stt', 'looked at', (seen) => condition(seen, 'SpecValid')?.status === 'True');
  }, 180_000);
  afterAll(() => service.dispose(), 60_000);

  test('the openai package: speech is detected, loads the slot, and is transcribed', async () => {
    const { hostname, port } = new URL(service.url);
    const client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none' });
    // The class speaks TLS only, which a proxy would end.
    const realtime = new OpenAIRealtimeWS(
      { intent: 'transcription', options: { createConnection: () => connect(Number(port), hostname) } },
      client,
    );
    const transcript = Promise.withResolvers<string>();
    const types: string[] = [];
    realtime.on('event', ({ type }) => types.push(type));
    realtime.on('error', (error) => transcript.reject(error));
    realtime.on('conversation.item.input_audio_transcription.completed', (event) => transcript.resolve(event.transcript));
    realtime.on('session.created', () => {
      const input = {
        transcription: { model: 'whisper-1', language: 'en' },
        turn_detection: { type: 'server_vad', silence_duration_ms: 300 },
      } as const;
      realtime.send({ type: 'session.update', session: { type: 'transcription', audio: { input } } });
      for (const pcm of [silenceOf(0.5), toneOf(2), silenceOf(0.5)])
        realtime.send({ type: 'input_audio_buffer.append', audio: pcm.toString('base64') });
    });
    expect(await transcript.promise).toBe(DEMO_TRANSCRIPT);
    expect(types).toEqual([
      'session.created',
      'session.updated',
      'input_audio_buffer.speech_started',
      'input_audio_buffer.speech_stopped',
      'input_audio_buffer.committed',
      DELTA,
      COMPLETED,
    ]);
    expect(isAnswering(await service.slot('stt'))).toBe(true);
    realtime.close();
  }, 120_000);

  test('words that are certain come while the sound does', async () => {
    const client = await connectRealtime(`${service.url}${PATH}`);
    client.send(MANUAL);
    while (client.ofType(DELTA).length === 0) {
      client.append(toneOf(0.2));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(client.ofType('input_audio_buffer.committed')).toEqual([]);
    expect(DEMO_TRANSCRIPT).toContain(client.ofType(DELTA)[0]?.delta);
    client.send({ type: 'input_audio_buffer.commit' });
    expect((await client.waitFor(COMPLETED)).transcript).toBe(DEMO_TRANSCRIPT);
    expect(
      client
        .ofType(DELTA)
        .map(({ delta }) => delta)
        .join(''),
    ).toBe(DEMO_TRANSCRIPT);
    await client.close();
  }, 60_000);

  test('the slot gets another model while sound is committed, and no sound is lost', async () => {
    await cp(path.join(service.modelsDir, 'demo/demo-listener'), path.join(service.modelsDir, 'mine/listener'), { recursive: true });
    const client = await connectRealtime(`${service.url}${PATH}`);
    client.send(MANUAL);
    let commits = 0;
    let swapped = false;
    const talk = async (): Promise<void> => {
      for (let more = 3; more > 0; more -= swapped ? 1 : 0) {
        client.append(toneOf(1.5));
        client.send({ type: 'input_audio_buffer.commit' });
        commits += 1;
        await client.waitFor(COMPLETED, Math.max(1, commits - 4));
      }
    };
    const talking = talk();
    await service.save('stt', '[model]\ndefault = "mine/listener"\n');
    await service
      .until('stt', 'up to date', (seen) => seen?.status.model === 'mine/listener' && condition(seen, 'UpToDate')?.status === 'True')
      .finally(() => (swapped = true));
    await talking;
    await client.waitFor(COMPLETED, commits);
    expect(client.ofType(FAILED)).toEqual([]);
    expect(commits).toBeGreaterThan(3);
    expect(new Set(client.ofType(COMPLETED).map(({ transcript }) => transcript))).toEqual(new Set([DEMO_TRANSCRIPT]));
    await client.close();
  }, 120_000);

  test('a session that is open when the service stops gets its transcript first', async () => {
    const client = await connectRealtime(`${service.url}${PATH}`);
    client.append(toneOf(1.5));
    await client.waitFor('input_audio_buffer.speech_started');
    const stopped = service.kill('SIGTERM');
    expect((await client.waitFor(COMPLETED)).transcript).toBe(DEMO_TRANSCRIPT);
    expect((await client.closed())[0]).toBe(1001);
    await stopped;
  }, 60_000);
});
