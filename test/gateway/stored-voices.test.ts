/** Stored voices, as OpenAI's own client and curl use them, against a stand-in for the speech server. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { VoiceStore } from '../../src/schema/slot/voice-store.ts';
import { startSpeechDouble } from '../support/speech/speech-double.ts';
import { PARK, publish, slotName } from './support/board-fixture.ts';
import { errorOf, post } from './support/client.ts';
import { until } from './support/gateway-fixture.ts';
import { IMITATOR, LONGEST, READER, SPEECH, startVoices, TONE, VOICES, type VoiceFixture } from './support/voice-fixture.ts';

let fixture: VoiceFixture;

beforeEach(async () => {
  fixture = await startVoices();
});
afterEach(async () => fixture.closeAtRest());

describe('the openai package', () => {
  test('stores a voice, speaks with it by its name or as an object, and deletes it', async () => {
    const created = await fixture.store('Anna');
    expect(created).toEqual({ id: 'Anna', object: 'audio.voice', created_at: 1_767_323_045, name: 'Anna', type: 'audio_sample' });
    for (const voice of [created.id, { id: 'anna' }]) {
      const spoken = await fixture.client.audio.speech.create({ model: 'tts', voice, input: 'Hello' });
      expect((await spoken.arrayBuffer()).byteLength).toBe(5);
      expect(fixture.received()).toEqual({ model: 'tts', voice, input: 'Hello', ref_audio: TONE.toString('base64'), ref_text: '' });
    }
    expect(await fixture.client.audio.voices.delete('anna')).toEqual({ id: 'anna', object: 'audio.voice.deleted', deleted: true });
    expect(await fixture.listed()).toEqual([expect.objectContaining({ id: 'otto' })]);
    expect(await fixture.client.audio.voices.delete('anna').catch((error: unknown) => error)).toMatchObject({
      status: 404,
      code: 'voice.not_found',
    });
  });

  test('gets typed errors: for a name that is taken, a description instead of a recording, and a model that does not imitate', async () => {
    await fixture.store('anna');
    const failed = async (request: Promise<unknown>) => request.catch((error: unknown) => error);
    expect(await failed(fixture.store('ANNA'))).toMatchObject({ status: 409, code: 'voice.exists', param: 'name' });
    expect(await failed(fixture.client.audio.voices.create({ type: 'prompt', name: 'b', prompt: 'A deep voice' }))).toMatchObject({
      status: 400,
    });
    expect(await failed(fixture.client.audio.speech.create({ model: 'reader', voice: 'anna', input: 'Hi' }))).toMatchObject({
      status: 422,
      code: 'audio.cloning_unsupported',
      param: 'voice',
      message: '422 Slot "reader" with model "kokoro" cannot speak with the stored voice "anna", only with voices of its own: use "tts"',
    });
  });
});

test('curl stores a voice with what is said in it, and deletes it', async () => {
  const file = path.join(fixture.dir, 'a.wav');
  await writeFile(file, TONE);
  const curl = async (...args: readonly string[]): Promise<unknown> =>
    JSON.parse((await promisify(execFile)('curl', ['-s', ...args, fixture.gateway.url + VOICES])).stdout);
  expect(await curl('-F', 'name=anna', '-F', `audio_sample=@${file}`, '-F', 'ref_text=Good "morning"')).toMatchObject({ id: 'anna' });
  expect((await fixture.say({ voice: 'anna' })).status).toBe(200);
  expect(fixture.received()).toMatchObject({ ref_text: 'Good "morning"' });
  const { stdout } = await promisify(execFile)('curl', ['-s', '-X', 'DELETE', `${fixture.gateway.url}${VOICES}/anna`]);
  expect(JSON.parse(stdout)).toMatchObject({ deleted: true });
});

describe('a stored voice', () => {
  test('is listed with each slot that can use it, and without one where none can', async () => {
    await fixture.store('anna');
    expect(await fixture.listed()).toEqual([
      { id: 'anna', name: 'anna', model: 'pocket', slot: 'tts', stored: true },
      { id: 'otto', name: 'otto', model: 'kokoro', slot: 'reader' },
    ]);
    expect(await fixture.listed('?model=pocket')).toEqual([expect.objectContaining({ id: 'anna' })]);
    expect(await fixture.listed('?model=reader')).toEqual([expect.objectContaining({ id: 'otto' })]);
    publish(fixture.gateway.board, READER);
    expect(await fixture.listed()).toEqual([expect.objectContaining({ id: 'otto' }), { id: 'anna', name: 'anna', stored: true }]);
  });

  test('is there after a restart', async () => {
    await fixture.store('anna');
    await fixture.restart();
    expect((await fixture.say({ voice: 'anna' })).status).toBe(200);
    expect(fixture.received()).toMatchObject({ ref_audio: TONE.toString('base64') });
  });

  test('of the largest size is sent whole, in a body whose length is right', async () => {
    await fixture.store('anna', LONGEST);
    expect((await fixture.say({ voice: 'anna', input: 'x'.repeat(4096) })).status).toBe(200);
    expect(Buffer.from(String(fixture.received()['ref_audio']), 'base64').equals(LONGEST)).toBe(true);
    expect(fixture.server.seen.at(-1)?.headers['content-length']).toBe(String(fixture.server.seen.at(-1)?.body.length));
  });

  test('does not replace a recording that comes with the request, nor a voice of a model, nor one of OpenAI', async () => {
    await fixture.store('otto');
    await fixture.store('alloy');
    for (const body of [
      { model: 'tts', input: 'Hi', voice: 'otto', ref_audio: 'AAAA' },
      { model: 'reader', input: 'Hi', voice: 'otto' },
      { model: 'reader', input: 'Hi', voice: 'alloy' },
    ]) {
      expect((await fixture.say(body)).status).toBe(200);
      expect(fixture.received()).toEqual(body);
    }
  });

  test('is unknown to the server if its name is: the body is passed on byte for byte', async () => {
    const body = '{ "model": "tts",  "input": "Hi", "voice": "nobody" }\n';
    expect((await post(fixture.gateway.port, SPEECH, body)).status).toBe(400);
    expect(fixture.server.seen.at(-1)?.body.toString()).toBe(body);
  });

  test('goes with a request that waited for its slot; one that was deleted meanwhile does not', async () => {
    await fixture.store('anna');
    await fixture.store('bert');
    publish(fixture.gateway.board, { ...IMITATOR, admission: PARK });
    const waiting = [fixture.say({ voice: 'anna' }), fixture.say({ voice: 'bert' })];
    await until(() => fixture.gateway.traffic.ofSlot(slotName('tts')).parked === 2);
    await fixture.client.audio.voices.delete('bert');
    fixture.serve();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    const sent = fixture.server.seen.map(({ body }): Record<string, unknown> => JSON.parse(body.toString()));
    expect(Object.fromEntries(sent.map(({ voice, ref_audio: audio }) => [voice, typeof audio]))).toEqual({
      anna: 'string',
      bert: 'undefined',
    });
  });

  test('goes with a request once, however often its server dies', async () => {
    await fixture.store('anna');
    const dying = await startSpeechDouble();
    publish(fixture.gateway.board, { ...IMITATOR, targets: [{ workload: 'w1', port: dying.port }] });
    await dying.kill();
    const asked = fixture.say({ voice: 'anna' });
    await until(() => fixture.gateway.traffic.ofSlot(slotName('tts')).parked === 1);
    publish(fixture.gateway.board, { ...IMITATOR, targets: [{ workload: 'w2', port: fixture.server.port }] });
    expect((await asked).status).toBe(200);
    expect(fixture.server.seen.at(-1)?.body.toString().split('ref_audio')).toHaveLength(2);
  });

  test('goes with a request once, also if its slot gets models of the other kind meanwhile', async () => {
    await fixture.store('anna');
    const models = [IMITATOR, { ...IMITATOR, voices: [{ id: 'anna' }], contents: {} }, IMITATOR];
    const dead = await startSpeechDouble();
    await dead.kill();
    publish(fixture.gateway.board, { ...IMITATOR, admission: PARK });
    const asked = fixture.say({ voice: 'anna' });
    for (const [index, model] of models.entries()) {
      await until(() => fixture.gateway.traffic.ofSlot(slotName('tts')).parked === 1);
      publish(fixture.gateway.board, { ...model, targets: [{ workload: `w${index}`, port: dead.port }] });
      await until(() => fixture.gateway.traffic.ofSlot(slotName('tts')).parked === 1);
    }
    fixture.serve();
    expect((await asked).status).toBe(200);
    expect(fixture.server.seen.at(-1)?.body.toString().split('ref_audio')).toHaveLength(2);
  });

  test('is not sent for a client that left while it was read', async () => {
    let answer: (voice: undefined) => void = () => undefined;
    const read: VoiceStore['read'] = async () => new Promise((resolve) => (answer = resolve));
    await fixture.restart({ broken: { read } });
    await fixture.store('anna');
    const leaving = new AbortController();
    const before = answer;
    const asked = fixture.client.audio.speech.create({ model: 'tts', voice: 'anna', input: 'Hi' }, { signal: leaving.signal });
    await until(() => answer !== before);
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await until(() => fixture.gateway.gateway.load().requests === 0);
    answer(undefined);
    expect((await fixture.say({ model: 'reader' })).status).toBe(200);
    expect(fixture.server.seen).toHaveLength(1);
  });

  test('counts as memory of bodies: without any left, the request is refused', async () => {
    await fixture.store('anna', LONGEST);
    await fixture.restart({ settings: { SVC_BUFFER_LIMIT: '2Mi' } });
    const answer = await fixture.say({ voice: 'anna' });
    expect(answer.status).toBe(503);
    expect(errorOf(answer.text)).toMatchObject({ code: 'server.overloaded' });
  });

  test('whose recording cannot be read is answered with what to do, and the service goes on', async () => {
    await fixture.restart({ broken: { read: async () => Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' })) } });
    await fixture.store('anna');
    const answer = await fixture.say({ voice: 'anna' });
    expect(answer.status).toBe(500);
    expect(errorOf(answer.text).message).toContain('cannot be read (EIO): delete the voice and store it again');
    expect((await fixture.say({})).status).toBe(200);
  });
});
