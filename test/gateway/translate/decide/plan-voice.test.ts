import { expect, test } from '@jest/globals';
import { OPENAI_VOICES, planVoice, insertRecording } from '../../../../src/gateway/translate/decide/plan-voice.ts';
import { checkSpeech } from '../../../../src/gateway/translate/decide/check-media.ts';
import { chooseVoice } from '../../../../toolboxes/speech/decide/choose-voice.ts';

const OWN = [{ id: 'af_heart' }, { id: 'am_adam' }];

test.each([
  ['anna', OWN, false, 'refuse-stored'],
  ['AF_Heart', OWN, false, 'keep'],
  ['alloy', OWN, false, 'keep'],
  ['Alloy', OWN, false, 'keep'],
  ['anna', [], false, 'keep'],
  ['anna', undefined, false, 'keep'],
  ['anna', [], true, 'send'],
  ['alloy', [], true, 'send'],
] as const)('%s with the voices %j, imitating %s: %s', (name, voices, imitates, plan) => {
  expect(planVoice(name, voices === undefined ? {} : { voices }, imitates)).toBe(plan);
});

test('knows each name of OpenAI that the speech server knows', () => {
  const speaker = { voices: [{ name: 'one', language: '' }], clones: false };
  const known = (voice: string): boolean => chooseVoice(speaker, { voice }).ok;
  expect([...OPENAI_VOICES].filter((name) => !known(name))).toEqual([]);
  expect(OPENAI_VOICES.size).toBe(13);
  expect(known('anna')).toBe(false);
});

test.each([
  ['{"input":"Hi"}', { input: 'Hi' }],
  ['{"input":"a } b"} \n', { input: 'a } b' }],
  ['{"input":"Hi","ref_audio":null,"ref_text":"other","voice":{"id":"anna"}}', { input: 'Hi', voice: { id: 'anna' } }],
])('adds the recording to %j and changes nothing else', (text, fields) => {
  const pieces = insertRecording(Buffer.from(text), { recording: Buffer.from([1, 2, 255]), text: 'She said: "Hi"\n' });
  const body = Buffer.concat(pieces).toString('utf8');
  expect(JSON.parse(body)).toEqual({ ...fields, ref_audio: 'AQL/', ref_text: 'She said: "Hi"\n' });
  expect(body.startsWith(text.slice(0, text.lastIndexOf('}')))).toBe(true);
});

test.each([
  ['{"input":"Hi","voice":"Anna"}', 'Anna'],
  ['\ufeff{"input":"Hi","voice":{"id":"anna"}}', 'anna'],
  ['{"input":"Hi","voice":"anna","ref_audio":null}', 'anna'],
  ['{"input":"Hi","voice":"anna","ref_audio":"AAAA"}', undefined],
  ['{"input":"Hi","voice":"af_bella(2)+af_sky"}', undefined],
  ['{"input":"Hi","voice":"../anna"}', undefined],
  ['{"input":"Hi","voice":7}', undefined],
  ['{"input":"Hi","voice":{"name":"anna"}}', undefined],
  ['{"input":"Hi"}', undefined],
])('finds what may be a stored voice in %s: %s', (body, voice) => {
  expect(checkSpeech(body, 10)).toEqual({ voice });
});

test.each([
  ['input', 'The body is not a JSON object', null],
  ['{"input":', 'The body is not a JSON object', null],
  ['{"voice":"anna"}', '"input" is not a string: send the text to speak', 'input'],
  ['{"input":" "}', '"input" is empty: send the text to speak', 'input'],
  ['{"input":"12345678901"}', '"input" has 11 characters: send at most 10 ("SVC_SPEECH_LIMIT")', 'input'],
])('says what is wrong with a request for speech of %s', (body, message, param) => {
  expect(checkSpeech(body, 10).problem).toEqual({ message, param });
});

test('refuses a request for speech that is too wide or too deep to be parsed', () => {
  for (const [pad, what] of [
    [`[${'{},'.repeat(200_000)}{}]`, 'values'],
    [`${'['.repeat(200)}${']'.repeat(200)}`, 'levels'],
  ] as const) {
    expect(checkSpeech(`{"input":"Hi","pad":${pad}}`, 10).problem?.message).toContain(what);
  }
});
