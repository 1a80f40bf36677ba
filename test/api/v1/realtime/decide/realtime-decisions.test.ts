import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  decodeAudio,
  FRAME_MS,
  hearFrame,
  levelOf,
  NOTHING_HEARD,
  type Hearing,
} from '../../../../../src/api/v1/realtime/decide/audio-format.ts';
import {
  readClientEvent,
  describeSession,
  firstSettings,
  updateSettings,
} from '../../../../../src/api/v1/realtime/decide/session-settings.ts';
import { agreedDelta, restAfter, wantsPartial } from '../../../../../src/api/v1/realtime/utterance-queue.ts';
import { withProtocolKey } from '../../../../../src/api/server/upgrade-path.ts';

describe('decodeAudio()', () => {
  // The values of ITU-T G.711, table 2a and 2b, for the ends and the middle of each law.
  test.each([
    ['audio/pcmu', 0xff, 0],
    ['audio/pcmu', 0x80, 32_124],
    ['audio/pcmu', 0x00, -32_124],
    ['audio/pcmu', 0x7f, 0],
    ['audio/pcma', 0xd5, 8],
    ['audio/pcma', 0x55, -8],
    ['audio/pcma', 0xaa, 32_256],
    ['audio/pcma', 0x2a, -32_256],
  ] as const)('decodes %s %i to %i', (type, code, expected) => {
    const decoded = decodeAudio(Buffer.from([code]).toString('base64'), { type });
    expect(decoded.ok ? Math.abs(decoded.pcm.readInt16LE(0) - expected) : decoded).toBe(0);
  });

  test.each(['A', 'AAA', 'AA=A', 'AAA\n', 'AA-_', 'é'])('refuses "%s"', (audio) => {
    expect(decodeAudio(audio, { type: 'audio/pcm', rate: 24_000 })).toMatchObject({ ok: false });
  });
});

describe('hearFrame()', () => {
  const turns = { threshold: 0.5, prefixMs: 300, silenceMs: 100 };
  /** The frames at which speech begins and ends. */
  const changesOf = (levels: readonly number[], own = turns): readonly string[] => {
    let hearing: Hearing = NOTHING_HEARD;
    return levels.flatMap((level, at) => {
      const { change, ...next } = hearFrame(hearing, level, own);
      hearing = next;
      return change === undefined ? [] : [`${change} ${at}`];
    });
  };
  const frames = (count: number, level: number): readonly number[] => Array.from({ length: count }, () => level);

  test.each([
    ['silence', frames(100, 0), []],
    ['a click', [...frames(10, 0), ...frames(2, 0.5), ...frames(50, 0)], []],
    ['a word', [...frames(10, 0), ...frames(20, 0.1), ...frames(50, 0)], ['started 12', 'stopped 34']],
    ['a word with a short pause', [...frames(20, 0.1), ...frames(4, 0), ...frames(20, 0.1), ...frames(50, 0)], ['started 2', 'stopped 48']],
    ['even noise', frames(500, 0.008), []],
    ['a quiet voice in a quiet room', [...frames(50, 0.0004), ...frames(20, 0.004), ...frames(20, 0.0004)], ['started 52', 'stopped 74']],
  ])('hears %s', (_, levels, expected) => {
    expect(changesOf(levels)).toEqual(expected);
  });

  test('a higher threshold needs louder sound, and a longer silence ends later', () => {
    const word = [...frames(20, 0.015), ...frames(80, 0)];
    expect(changesOf(word, { ...turns, threshold: 0.9 })).toEqual([]);
    expect(changesOf(word, { ...turns, silenceMs: 1000 })).toEqual(['started 2', `stopped ${20 + 1000 / FRAME_MS - 1}`]);
  });

  test('levelOf() is 0 for silence, and that of a full square wave is 1', () => {
    expect(levelOf(Buffer.alloc(960))).toBe(0);
    expect(levelOf(Buffer.from([0, 0x80, 0, 0x80]))).toBe(1);
    expect(levelOf(Buffer.alloc(0))).toBe(0);
  });
});

describe('agreedDelta()', () => {
  test.each([
    ['nothing was heard before', '', '', 'one two three', ''],
    ['both agree, and the last word may be cut off', '', 'one two three', 'one two three', 'one two'],
    ['the transcript grows', 'one', 'one two thr', 'one two three four', ' two'],
    ['a word has changed', '', 'one too', 'one two three', 'one'],
    ['a word that was sent has changed', 'one two', 'won two three', 'won two three', ''],
    ['there are no spaces', '', '今日は天', '今日は天気がいい', '今日は天'],
    ['there is nothing', '', '', '', ''],
  ])('if %s', (_, sent, before, now, expected) => {
    expect(agreedDelta(sent, before, now)).toBe(expected);
  });

  test('what is sent is always the begin of a transcript on which two agreed, and with the rest it is the final one', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('one', 'two', '天', 'three,'), { maxLength: 8 }),
        fc.integer({ min: 0, max: 8 }),
        (words, cut) => {
          const text = words.join(' ');
          const delta = agreedDelta('', words.slice(0, cut).join(' '), text);
          expect(delta + restAfter(delta, text)).toBe(text);
        },
      ),
    );
  });
});

test.each([
  ['too little is new', { soundMs: 999, askedMs: 0, tookMs: 0, sinceMs: 9999 }, false],
  ['a second is new', { soundMs: 1000, askedMs: 0, tookMs: 0, sinceMs: 9999 }, true],
  ['the last answer took too long', { soundMs: 5000, askedMs: 1000, tookMs: 600, sinceMs: 1199 }, false],
  ['it was long ago', { soundMs: 5000, askedMs: 1000, tookMs: 600, sinceMs: 1200 }, true],
  ['there is too much sound', { soundMs: 30_001, askedMs: 1000, tookMs: 0, sinceMs: 9999 }, false],
])('wantsPartial() if %s', (_, facts, expected) => {
  expect(wantsPartial(facts)).toBe(expected);
});

describe('updateSettings()', () => {
  const first = firstSettings('stt');
  const update = (input: object) => {
    const updated = updateSettings(first, { type: 'transcription', audio: { input } });
    if (!updated.ok) throw new Error(updated.message);
    return updated.settings;
  };

  test('leaves out what is not named, and turns off what is null', () => {
    expect(update({})).toEqual(first);
    expect(update({ turn_detection: null }).turns).toBeUndefined();
    expect(update({ turn_detection: { type: 'server_vad', silence_duration_ms: 200 } }).turns).toEqual({
      threshold: 0.5,
      prefixMs: 300,
      silenceMs: 200,
    });
    expect(update({ transcription: { language: 'de' } }).transcription).toEqual({ model: 'stt', language: 'de', prompt: undefined });
    expect(update({ transcription: null }).transcription).toBeUndefined();
  });

  test('the session that clients see is what holds: noise is not reduced, whatever they ask for', () => {
    const settings = update({ noise_reduction: { type: 'near_field' }, format: { type: 'audio/pcmu' } });
    expect(describeSession(settings, { id: 'sess_1', expiresAt: 5 })).toMatchObject({
      type: 'transcription',
      expires_at: 5,
      audio: {
        input: { format: { type: 'audio/pcmu' }, noise_reduction: null, transcription: { model: 'stt', language: null, prompt: '' } },
      },
    });
  });
});

test('readClientEvent() refuses an event that is too wide or too deep to be parsed', () => {
  const event = (pad: string): string => `{"type":"input_audio_buffer.commit","pad":${pad}}`;
  expect(readClientEvent(event('[{},{}]'))).toMatchObject({ ok: true });
  expect(readClientEvent(event(`[${'{},'.repeat(200_000)}{}]`))).toMatchObject({ ok: false });
  expect(readClientEvent(event(`${'['.repeat(200)}${']'.repeat(200)}`))).toMatchObject({ ok: false });
});

test('readClientEvent() reads any text without throwing', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      expect(readClientEvent(text)).toMatchObject({ ok: expect.any(Boolean) });
    }),
  );
});

test.each([
  ['no subprotocol', ['Host', 'a'], ['Host', 'a']],
  ['a subprotocol without a key', ['Sec-WebSocket-Protocol', 'realtime'], ['Sec-WebSocket-Protocol', 'realtime']],
  [
    'a key',
    ['sec-websocket-protocol', 'realtime, openai-insecure-api-key.k'],
    ['sec-websocket-protocol', 'realtime, openai-insecure-api-key.k', 'Authorization', 'Bearer k'],
  ],
])('withProtocolKey() with %s', (_, headers, expected) => {
  expect(withProtocolKey(headers)).toEqual(expected);
});
