/** Changes of stored voices that are refused, and who may make them. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readdir } from 'node:fs/promises';
import { errorOf, post } from './support/client.ts';
import { FORM_TYPE, formOf, type FormPart } from './support/forms.ts';
import { LONGEST, named, sample, startVoices, TONE, VOICES, type VoiceFixture } from './support/voice-fixture.ts';

let fixture: VoiceFixture;

beforeEach(async () => {
  fixture = await startVoices();
});
afterEach(async () => fixture.closeAtRest());

describe('bad input', () => {
  test.each<readonly [string, readonly FormPart[], number, string, string | null]>([
    ['no name', [sample()], 400, 'request.invalid', 'name'],
    ['a path as the name', [named('../../etc/passwd'), sample()], 400, 'request.invalid', 'name'],
    ['an empty name', [named(''), sample()], 400, 'request.invalid', 'name'],
    ['a name that is too long', [named('x'.repeat(65)), sample()], 400, 'request.invalid', 'name'],
    ['a name twice', [named('a'), named('b'), sample()], 400, 'request.invalid', 'name'],
    ['a file as the name', [{ name: 'name', fileName: 'x', content: 'anna' }, sample()], 400, 'request.invalid', 'name'],
    ['no recording', [named('a')], 400, 'request.invalid', 'audio_sample'],
    ['a text as the recording', [named('a'), { name: 'audio_sample', content: 'x' }], 400, 'request.invalid', 'audio_sample'],
    ['an empty recording', [named('a'), sample('')], 400, 'audio.invalid', 'audio_sample'],
    ['a zip archive', [named('a'), sample('PK\u0003\u0004')], 400, 'audio.invalid', 'audio_sample'],
    ['half a second', [named('a'), sample(TONE.subarray(0, 16_000))], 400, 'audio.invalid', 'audio_sample'],
    [
      'a transcript that is too long',
      [named('a'), sample(), { name: 'ref_text', content: 'x'.repeat(1001) }],
      400,
      'request.invalid',
      'ref_text',
    ],
    [
      'a recording that is too large',
      [named('a'), sample(Buffer.concat([LONGEST, Buffer.alloc(1)]))],
      413,
      'request.too_large',
      'audio_sample',
    ],
    ['a body that is too large', [named('a'), sample(Buffer.alloc(3_100_000))], 413, 'request.too_large', null],
  ])('%s is refused, and nothing is stored', async (_what, parts, status, code, param) => {
    const answer = await fixture.send(parts);
    expect(answer.status).toBe(status);
    expect(errorOf(answer.text)).toMatchObject({ code, param, origin: 'gateway' });
    expect(await readdir(fixture.dir)).toEqual([]);
    expect(fixture.audited).toEqual([]);
  });

  test('a form that is none, that has no end, or that is JSON is refused', async () => {
    const whole = formOf([named('a'), sample()]);
    const ask = async (body: Buffer, type: string) => post(fixture.gateway.port, VOICES, body, { headers: { 'content-type': type } });
    const answers = [
      await ask(whole.subarray(0, whole.length - 20), FORM_TYPE),
      await ask(whole, 'multipart/form-data; boundary=other'),
      await ask(whole, 'multipart/form-data'),
      await ask(Buffer.from('{"name":"a"}'), 'application/json'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 415]);
    expect(answers.map((answer) => errorOf(answer.text).code)).toEqual([...Array<string>(3).fill('request.invalid'), 'request.media_type']);
  });

  test('one voice too many is refused', async () => {
    await fixture.store('a');
    await fixture.store('b');
    const answer = await fixture.send([named('c'), sample()]);
    expect(answer.status).toBe(422);
    expect(errorOf(answer.text)).toMatchObject({ code: 'voice.limit_reached', message: expect.stringContaining('SVC_VOICE_LIMIT') });
  });

  test('a directory that cannot be written is named by its setting, and the next voice is stored', async () => {
    await fixture.restart({ broken: { add: async () => Promise.reject(Object.assign(new Error('no space'), { code: 'ENOSPC' })) } });
    const answer = await fixture.send([named('a'), sample()]);
    expect(answer.status).toBe(500);
    expect(errorOf(answer.text).message).toContain('make room in the state directory');
    await fixture.restart();
    expect((await fixture.send([named('a'), sample()])).status).toBe(200);
  });
});

describe('changes', () => {
  test('are recorded with who made them, and only if something changed', async () => {
    await fixture.store('anna');
    await fixture.store('anna').catch(() => undefined);
    await fixture.client.audio.voices.delete('anna');
    await fixture.client.audio.voices.delete('anna').catch(() => undefined);
    expect(fixture.audited).toEqual(['"anyone" stored the voice "anna"', '"anyone" deleted the voice "anna"']);
  });

  test('are refused to pages of other sites, which could send such a form without asking', async () => {
    for (const headers of [{ origin: 'http://evil.test' }, { 'sec-fetch-site': 'cross-site' }]) {
      const answer = await fixture.send([named('a'), sample()], headers);
      expect(answer.status).toBe(403);
      expect(errorOf(answer.text)).toMatchObject({ code: 'request.cross_site' });
    }
    expect(await fixture.listed()).toEqual([expect.objectContaining({ id: 'otto' })]);
  });

  test('are refused before the body is read if the credential does not permit them', async () => {
    await fixture.restart({
      authorize: (access) => (access === 'admin' ? { ok: false, code: 'auth.scope', message: 'Ask' } : { ok: true }),
    });
    const answer = await fixture.send([named('a'), sample()]);
    expect(answer.status).toBe(403);
    expect((await fixture.listed()).map(({ id }) => id)).toEqual(['otto']);
    expect((await fetch(`${fixture.gateway.url}${VOICES}/anna`, { method: 'DELETE' })).status).toBe(403);
  });

  test('are refused where voices cannot be stored, and requests with a recording of their own go on', async () => {
    await fixture.restart({ voices: undefined });
    for (const answer of [
      await fixture.send([named('a'), sample()]),
      await post(fixture.gateway.port, `${VOICES}/a`, '', { method: 'DELETE' }),
    ]) {
      expect(answer.status).toBe(422);
      expect(errorOf(answer.text)).toMatchObject({ code: 'voice.unsupported', message: expect.stringContaining('"ref_audio"') });
    }
    expect((await fixture.say({ voice: 'anna', ref_audio: 'AAAA' })).status).toBe(200);
    expect((await fixture.listed()).map(({ id }) => id)).toEqual(['otto']);
  });
});
