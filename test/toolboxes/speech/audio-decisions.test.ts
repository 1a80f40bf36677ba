import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createCutter, type Piece } from '../../../toolboxes/speech/decide/cut-at-pauses.ts';
import { clockTime, formatTranscript, type Transcript } from '../../../toolboxes/speech/decide/format-transcript.ts';
import { joinWords } from '../../../toolboxes/speech/decide/join-words.ts';
import { nameFormat, readWavHead, toMono } from '../../../toolboxes/speech/decide/read-wav.ts';
import { toPcm, wavHead } from '../../../toolboxes/speech/decide/write-wav.ts';
import { HEADS, wavFile, wavHeadOf, type Part } from './sounds.ts';

describe('readWavHead()', () => {
  const size = 44 + 32_000;
  test.each([
    ['an honest head', wavHeadOf({ bytes: 32_000 }), { kind: 'sound', sound: { from: 44, to: size, rate: 16_000, channels: 1, width: 2 } }],
    ['a head that declares more than there is', wavHeadOf({ bytes: 3_000_000 }), { kind: 'sound', sound: { to: size } }],
    ['a head that declares no length, as pipes do', wavHeadOf({ bytes: 0 }), { kind: 'sound', sound: { to: size } }],
    ['a head with the largest length', wavHeadOf({ bytes: 0xffffffff }), { kind: 'sound', sound: { to: size } }],
    ['a head that declares less', wavHeadOf({ bytes: 100 }), { kind: 'sound', sound: { to: 144 } }],
    ['24 bits', wavHeadOf({ bytes: 32_000, bits: 24 }), { kind: 'sound', sound: { width: 3, encoding: 'int' } }],
    ['32-bit floats', wavHeadOf({ bytes: 32_000, bits: 32, tag: 3 }), { kind: 'sound', sound: { width: 4, encoding: 'float' } }],
    ['12 bits', wavHeadOf({ bytes: 32_000, bits: 12 }), { kind: 'damaged', why: expect.stringContaining('12 bits') }],
    ['100 channels', wavHeadOf({ bytes: 32_000, channels: 100 }), { kind: 'damaged', why: expect.stringContaining('100 channels') }],
    ['no channel', wavHeadOf({ bytes: 32_000, channels: 0 }), { kind: 'damaged' }],
    ['no rate', wavHeadOf({ bytes: 32_000, rate: 0 }), { kind: 'damaged', why: expect.stringContaining('0 samples a second') }],
    ['a rate of 4 GHz', wavHeadOf({ bytes: 32_000, rate: 0xffffffff }), { kind: 'damaged' }],
    ['ADPCM', wavHeadOf({ bytes: 32_000, bits: 4, tag: 2 }), { kind: 'compressed' }],
    ['a head that ends in its format', wavHeadOf({ bytes: 32_000 }).subarray(0, 30), { kind: 'damaged' }],
    ['a zip archive', HEADS.zip, { kind: 'other' }],
    ['nothing', Buffer.alloc(0), { kind: 'other' }],
  ])('reads %s', (_, head, expected) => {
    expect(readWavHead(head, size)).toMatchObject(expected);
  });

  test('reads any bytes without throwing, and never leaves the file', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, prefixed) => {
        const head = prefixed ? Buffer.concat([wavHeadOf({}).subarray(0, 12), bytes]) : Buffer.from(bytes);
        const read = readWavHead(head, head.length);
        if (read.kind === 'sound') expect(read.sound.to).toBeLessThanOrEqual(head.length);
      }),
    );
  });
});

test('toMono() takes the mean of the channels, for each width, and replaces what is no number', () => {
  const layout = { channels: 2, rate: 16_000, from: 0, to: 0 };
  const floats = Buffer.alloc(8);
  floats.writeFloatLE(Number.NaN, 0);
  expect([...toMono(Buffer.from([0, 64, 0, 0]), { ...layout, encoding: 'int', width: 2 })]).toEqual([0.25]);
  expect([...toMono(Buffer.from([192, 128]), { ...layout, encoding: 'int', width: 1 })]).toEqual([0.25]);
  expect([...toMono(Buffer.from([0, 0, 64, 0, 0, 0]), { ...layout, encoding: 'int', width: 3 })]).toEqual([0.25]);
  expect([...toMono(floats, { ...layout, encoding: 'float', width: 4 })]).toEqual([0]);
});

test('what the server writes as WAV, it reads again', () => {
  const file = Buffer.concat([wavHead(24_000), toPcm(Float32Array.of(0, 0.5, -1, 7))]);
  const head = readWavHead(file, file.length);
  if (head.kind !== 'sound') throw new Error(head.kind);
  const samples = [...toMono(file.subarray(head.sound.from, head.sound.to), head.sound)];
  expect(head.sound.rate).toBe(24_000);
  expect(samples.map((sample) => Math.round(sample * 10) / 10)).toEqual([0, 0.5, -1, 1]);
});

test('nameFormat() knows audio by its first bytes, and nothing else', () => {
  const names = Object.values(HEADS).map((head) => nameFormat(head));
  expect(names).toEqual(['MP3 or AAC', 'FLAC', 'Ogg', 'WebM or Matroska', 'MP4', undefined]);
});

describe('createCutter()', () => {
  const cut = (parts: readonly Part[], rate = 4000, most = 28) => {
    const file = wavFile(parts, { rate });
    const head = readWavHead(file, file.length);
    if (head.kind !== 'sound') throw new Error(head.kind);
    const samples = toMono(file.subarray(head.sound.from), head.sound);
    const cutter = createCutter(rate, most);
    const pieces = [];
    for (let at = 0; at < samples.length; at += 1000) pieces.push(...cutter.push(samples.subarray(at, at + 1000)));
    return [...pieces, ...cutter.end()].map(({ start, samples: { length } }) => [
      Math.round(start * 10) / 10,
      Math.round((length / rate) * 10) / 10,
    ]);
  };

  test.each<readonly [string, readonly Part[], readonly (readonly number[])[]]>([
    [
      'keeps a short recording in one piece, with a short pause',
      [
        [2, 0.3],
        [0.6, 0],
        [2, 0.3],
      ],
      [[0, 4.6]],
    ],
    [
      'drops silence before and after',
      [
        [3, 0],
        [2, 0.3],
        [3, 0],
      ],
      [[2.8, 2.5]],
    ],
    [
      'cuts at a long pause',
      [
        [2, 0.3],
        [2, 0],
        [2, 0.3],
      ],
      [
        [0, 2.2],
        [3.8, 2.2],
      ],
    ],
    [
      'cuts at a short pause after enough sound',
      [
        [9, 0.3],
        [0.7, 0],
        [2, 0.3],
      ],
      [
        [0, 9.2],
        [9.5, 2.2],
      ],
    ],
    [
      'cuts sound without a pause into pieces that a model can process',
      [[70, 0.3]],
      [
        [0, 28],
        [28, 28],
        [56, 14],
      ],
    ],
    [
      'cuts at the quietest place if there is no pause',
      [
        [20, 0.3],
        [0.2, 0.05],
        [20, 0.3],
      ],
      [
        [0, 20.2],
        [20.2, 20],
      ],
    ],
    [
      'keeps quiet speech with noise around it',
      [
        [1, 0.0006],
        [2, 0.01],
        [1, 0.0006],
      ],
      [[0.8, 3.2]],
    ],
    ['finds nothing in silence', [[60, 0]], []],
    ['finds nothing in faint noise', [[60, 0.0005]], []],
    [
      'drops a click',
      [
        [1, 0],
        [0.02, 0.5],
        [3, 0],
      ],
      [],
    ],
    ['keeps a recording that is a single short word', [[0.05, 0.5]], [[0, 0.1]]],
  ])('%s', (_, parts, expected) => {
    expect(cut(parts)).toEqual(expected);
  });

  test('works the same at any rate', () => {
    const parts: readonly Part[] = [
      [2, 0.3],
      [2, 0],
      [2, 0.3],
    ];
    for (const rate of [8000, 22_050]) expect(cut(parts, rate)).toHaveLength(2);
  });

  test('keeps every loud sample exactly once, however the recording is split', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 30 }), fc.constantFrom(0, 0.3)), { maxLength: 12 }),
        fc.integer({ min: 1, max: 5000 }),
        fc.boolean(),
        (parts, step, isKnown) => {
          const rate = 1000;
          const samples = Float32Array.from(parts.flatMap(([tenths, level]) => Array.from({ length: tenths * 100 }, () => level)));
          const cutter = createCutter(rate, 5, isKnown ? samples.length : undefined);
          const pieces: Piece[] = [];
          const add = (piece: Piece): void => void pieces.push({ ...piece, samples: piece.samples.slice() });
          for (let at = 0; at < samples.length; at += step) for (const piece of cutter.push(samples.subarray(at, at + step))) add(piece);
          cutter.end().forEach(add);
          cutter.free();
          const loud = (values: Float32Array): number => values.filter((value) => value > 0).length;
          let end = 0;
          for (const { start, samples: own } of pieces) {
            expect(Math.round(start * rate)).toBeGreaterThanOrEqual(end);
            expect(own.length).toBeLessThanOrEqual(5 * rate);
            end = Math.round(start * rate) + own.length;
            expect(own.every((value, index) => value === samples[end - own.length + index])).toBe(true);
          }
          expect(pieces.reduce((sum, { samples: own }) => sum + loud(own), 0)).toBe(loud(samples));
        },
      ),
    );
  });
});

describe('formatTranscript()', () => {
  const transcript: Transcript = {
    task: 'transcribe',
    language: 'en',
    duration: 3725.5,
    segments: [
      { start: 0.25, end: 1.5, text: 'Hello <you>', words: [{ word: 'Hello', start: 0.25, end: 1 }] },
      { start: 3661.001, end: 3725.5, text: 'Bye --> now\n\n2', words: [] },
    ],
  };

  test.each([
    ['json', 'application/json', '{"text":"Hello <you> Bye --> now\\n\\n2","usage":{"type":"duration","seconds":3726}}'],
    ['text', 'text/plain', 'Hello <you> Bye --> now\n\n2\n'],
    ['srt', 'application/x-subrip', '1\n00:00:00,250 --> 00:00:01,500\nHello <you>\n\n2\n01:01:01,001 --> 01:02:05,500\nBye -> now 2\n\n'],
    ['vtt', 'text/vtt', 'WEBVTT\n\n00:00:00.250 --> 00:00:01.500\nHello &lt;you>\n\n01:01:01.001 --> 01:02:05.500\nBye -> now 2\n\n'],
  ] as const)('writes %s', (format, contentType, body) => {
    const formatted = formatTranscript(format, transcript, []);
    expect(formatted).toEqual({ contentType: `${contentType}; charset=utf-8`, body, ...(format === 'json' ? {} : { seconds: 3726 }) });
  });

  test('writes verbose_json with the ten fields of a segment, and words only when they are wanted', () => {
    const plain = JSON.parse(formatTranscript('verbose_json', transcript, []).body);
    expect(plain).toMatchObject({ task: 'transcribe', language: 'english', duration: 3725.5 });
    expect(Object.keys(plain.segments[0])).toHaveLength(10);
    expect(plain.words).toBeUndefined();
    const words = JSON.parse(formatTranscript('verbose_json', transcript, ['word']).body);
    expect(words).toMatchObject({ words: [{ word: 'Hello', start: 0.25, end: 1 }] });
    expect(words.segments).toBeUndefined();
  });

  test.each([
    [0, '00:00:00,000'],
    [59.9996, '00:01:00,000'],
    [360_000, '100:00:00,000'],
  ])('clockTime(%s) is %s', (seconds, expected) => {
    expect(clockTime(seconds, ',')).toBe(expected);
  });
});

test.each([
  [
    ['▁Hel', 'lo', '▁wor', 'ld', '.'],
    [0, 0.2, 0.5, 0.7, 0.9],
    ['Hello', 'world.'],
  ],
  [
    [' I', ' am'],
    [0, 0.4],
    ['I', 'am'],
  ],
  [['▁', 'a'], [0, 0.1], ['a']],
  [['a'], [], []],
])('joinWords(%j) finds the words', (tokens, timestamps, expected) => {
  const words = joinWords(tokens, timestamps, 10, 12);
  expect(words.map(({ word }) => word)).toEqual(expected);
  for (const { start, end } of words) expect(end).toBeGreaterThanOrEqual(start);
});
