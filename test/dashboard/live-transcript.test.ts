/** What the page shows of a session of `/v1/realtime`, and the sound that it sends. */
import { expect, test } from '@jest/globals';
import { extendTranscript, isPending, NOTHING_HEARD } from '../../dashboard/src/decide/live-transcript.ts';
import { encodeLive } from '../../dashboard/src/decide/wav.ts';
import { decodeAudio, PCM_24 } from '../../src/api/v1/realtime/decide/audio-format.ts';

const ITEM = 'conversation.item.input_audio_transcription';
const CREATED = { type: 'session.created' };
const starts = (item_id: string) => ({ type: 'input_audio_buffer.speech_started', item_id });
const delta = (item_id: string, text: string) => ({ type: `${ITEM}.delta`, item_id, delta: text });
const completed = (item_id: string, transcript: string) => ({ type: `${ITEM}.completed`, item_id, transcript });
const failed = (item_id: string) => ({ type: `${ITEM}.failed`, item_id, error: { message: 'No text' } });

test.each([
  ['a session', [CREATED], [], false],
  ['speech without words', [CREATED, starts('a')], ['…'], true],
  ['early words', [starts('a'), delta('a', 'This '), delta('a', 'is')], ['This is…'], true],
  ['a transcript, which replaces early words', [starts('a'), delta('a', 'Thus'), completed('a', 'This is it')], ['This is it'], false],
  ['two utterances', [starts('a'), completed('a', 'One'), starts('b'), delta('b', 'Tw')], ['One', 'Tw…'], true],
  ['utterances in their order', [starts('a'), delta('a', 'O'), starts('b'), completed('a', 'One')], ['One', '…'], true],
  ['noise', [starts('a'), completed('a', '')], [''], false],
  ['a failure', [starts('a'), delta('a', 'Thus'), failed('a')], [], false, 'No text'],
  ['an error', [starts('a'), { type: 'error', error: { message: 'Too late' } }], ['…'], true, 'Too late'],
  ['unknown events', [{ type: 'session.updated' }, { type: 7 }, [], null], [], false],
] as const)('%s', (_what, events, texts, pending, failure: string = '') => {
  const heard = events.map((event) => JSON.stringify(event)).reduce(extendTranscript, NOTHING_HEARD);
  expect(heard.utterances.map(({ text, isFinal }) => text + (isFinal ? '' : '…'))).toEqual(texts);
  expect([isPending(heard), heard.failure]).toEqual([pending, failure]);
  expect(heard.isListening).toBe(JSON.stringify(events).includes('session.created'));
});

test.each([
  [24_000, [0, 1, -1, 2], [0, 32_767, -32_767, 32_767]],
  [48_000, [0, 0.5, -0.5, -1], [8192, -24_575]],
  [12_000, [0, 1], [0, 0, 32_767, 32_767]],
  [36_000, [0, 1, 1], [0, 32_767]],
])('sound of %i Hz is sent with 24 kHz', (rate, samples, expected) => {
  const decoded = decodeAudio(encodeLive(new Float32Array(samples), rate), PCM_24);
  if (!decoded.ok) throw new Error(decoded.message);
  expect(expected.map((_, index) => decoded.pcm.readInt16LE(index * 2))).toEqual(expected);
  expect(decoded.pcm.length).toBe(expected.length * 2);
});
