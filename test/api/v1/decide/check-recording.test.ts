import { expect, test } from '@jest/globals';
import { checkRecording } from '../../../../src/api/v1/decide/check-recording.ts';
import { HEADS, toneFile, wavHeadOf } from '../../../toolboxes/speech/sounds.ts';

const { zip, ...audio } = HEADS;
const tone = toneFile({ seconds: 2 });
const lying = (at: number, value: number, bytes = tone): Buffer => {
  const copy = Buffer.from(bytes);
  copy.writeUInt32LE(value, at);
  return copy;
};
const DATA_LENGTH_AT = 40;
const RATE_AT = 24;
const BYTE_RATE_AT = 28;

test.each<readonly [string, Buffer]>([
  ['2 seconds', tone],
  ['1 second', toneFile({ seconds: 1 })],
  ['30 seconds', toneFile({ seconds: 30, rate: 8000 })],
  ['a length of 0, as programs write to a pipe', lying(DATA_LENGTH_AT, 0)],
  ['a length that is too large, as others do', lying(DATA_LENGTH_AT, 0xffffffff)],
  ['a wrong number of bytes per second, which decoders do not read', lying(BYTE_RATE_AT, 1)],
  [
    'another chunk before the samples',
    Buffer.concat([tone.subarray(0, 36), Buffer.from('LIST\x03\0\0\0abc\0', 'latin1'), tone.subarray(36)]),
  ],
  ...Object.entries(audio),
  ['mp3 without tags', Buffer.from([0xff, 0xfb, 0x90, 0x00])],
])('accepts a recording with %s', (_what, bytes) => {
  expect(checkRecording(bytes)).toBeUndefined();
});

test.each<readonly [string, Buffer, string]>([
  ['nothing', Buffer.alloc(0), 'it is empty'],
  ['a zip archive', zip, 'it is no WAV, MP3'],
  ['a text', Buffer.from('This is a text'), 'it is no WAV, MP3'],
  ['half a second', toneFile({ seconds: 0.5 }), 'it has 0.5 seconds, and 1 to 30 are possible'],
  ['31 seconds', toneFile({ seconds: 31, rate: 8000 }), 'it has 31.0 seconds'],
  ['a declared second of which half is missing', tone.subarray(0, 44 + 16_000), 'it has 0.5 seconds'],
  ['a rate of 0', lying(RATE_AT, 0), 'without a valid format'],
  ['no samples', tone.subarray(0, 36), 'without samples'],
  ['only the beginning', tone.subarray(0, 13), 'without samples'],
  ['samples before their format', Buffer.concat([tone.subarray(0, 12), tone.subarray(36)]), 'without a valid format'],
  [
    'a chunk that never ends',
    Buffer.concat([tone.subarray(0, 12), Buffer.from('junk\xff\xff\xff\xff', 'latin1'), tone]),
    'without samples',
  ],
  ['a head and nothing else', wavHeadOf({ bytes: 0 }), 'it has 0.0 seconds'],
])('refuses %s', (_what, bytes, why) => {
  const problem = checkRecording(bytes);
  expect(problem).toMatchObject({ code: 'audio.invalid', message: expect.stringContaining(why) });
  expect(problem?.message).toMatch(/^The recording in "audio_sample" cannot be used: it /);
});

test('refuses a file that requests could not carry', () => {
  expect(checkRecording(Buffer.concat([tone, Buffer.alloc(3_000_001 - tone.length)]))).toMatchObject({ code: 'request.too_large' });
});
