import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseFlags } from '../../../toolboxes/speech/decide/parse-flags.ts';
import { parseSpeech } from '../../../toolboxes/speech/decide/parse-speech.ts';
import { parseTranscription, type ListenerAbilities } from '../../../toolboxes/speech/decide/parse-transcription.ts';
import { plainText, splitSentences } from '../../../toolboxes/speech/decide/split-sentences.ts';

describe('parseFlags()', () => {
  test('parses flags with values behind a space or "=", and has defaults', () => {
    expect(parseFlags(['--task', 'stt', '--model=/m/whisper/', '--port', '0', '--alias', 'a,b'])).toEqual({
      kind: 'run',
      flags: {
        task: 'stt',
        model: '/m/whisper/',
        host: '127.0.0.1',
        port: 0,
        aliases: ['a', 'b'],
        threads: 0,
        queue: 256,
        timeout: 600,
        limit: 26_214_400,
        maxInput: 4096,
        ffmpeg: 'ffmpeg',
        modules: undefined,
      },
    });
    expect(parseFlags(['--task', 'tts', '--model', '/m/kokoro/'])).toMatchObject({ flags: { aliases: ['kokoro'] } });
  });

  test.each([
    [[], 'Set "--task" to "stt" or "tts"'],
    [['--task', 'asr'], 'Set "--task" to "stt" or "tts", not "asr"'],
    [['--task', 'stt'], 'Set "--model" to the directory of a model'],
    [['--model'], 'Add a value to "--model"'],
    [['--port', '70000'], 'Set "--port" to a whole number from 0 to 65535, not "70000"'],
    [['--timeout', '1.5'], 'Set "--timeout" to a whole number from 1 to 86400, not "1.5"'],
    [['--gpu'], 'Remove the argument "--gpu"; "--help" lists the flags'],
  ])('refuses %j', (argv, message) => {
    expect(parseFlags(argv)).toEqual({ kind: 'wrong', message });
  });

  test('lists the flags', () => {
    expect(parseFlags(['--port', '1', '--help'])).toMatchObject({ kind: 'help', text: expect.stringContaining('--max-input NUMBER') });
  });
});

describe('parseTranscription()', () => {
  const english: ListenerAbilities = { languages: ['en'], translation: false, timestamps: ['segment'] };
  const whisper: ListenerAbilities = { languages: ['en', 'de'], translation: true, timestamps: ['segment'] };
  const parakeet: ListenerAbilities = { languages: [], translation: false, timestamps: ['segment', 'word'] };
  const verbose = ['response_format', 'verbose_json'] as const;

  test.each([
    [english, [], { language: undefined, format: 'json', granularities: [], stream: false }],
    [english, [['language', 'en-US']], { language: 'en' }],
    [english, [['language', 'auto']], { language: undefined }],
    [english, [['language', '']], { language: undefined }],
    [parakeet, [['language', 'de']], { language: undefined }],
    [
      english,
      [
        ['stream', 'true'],
        ['response_format', 'text'],
      ],
      { stream: true, format: 'text' },
    ],
    [
      parakeet,
      [verbose, ['timestamp_granularities[]', 'word'], ['timestamp_granularities[]', 'segment']],
      { granularities: ['word', 'segment'] },
    ],
    [
      english,
      [
        ['prompt', 'x'],
        ['temperature', '0.2'],
        ['chunking_strategy', 'auto'],
        ['include[]', 'logprobs'],
        ['unknown', 'x'],
      ],
      { format: 'json' },
    ],
  ] as const)('%j accepts %j', (abilities, fields, expected) => {
    expect(parseTranscription(fields, 'transcribe', abilities)).toMatchObject({ ok: true, value: expected });
  });

  test.each([
    [english, [['response_format', 'xml']], 400, 'request.invalid', 'response_format'],
    [english, [['temperature', 'hot']], 400, 'request.invalid', 'temperature'],
    [english, [['temperature', '2']], 400, 'request.invalid', 'temperature'],
    [english, [['stream', 'maybe']], 400, 'request.invalid', 'stream'],
    [
      english,
      [
        ['stream', 'true'],
        ['response_format', 'srt'],
      ],
      400,
      'request.invalid',
      'stream',
    ],
    [english, [['language', 'Klingon language']], 400, 'request.invalid', 'language'],
    [english, [verbose, ['timestamp_granularities[]', 'word']], 422, 'audio.timestamps_unsupported', 'timestamp_granularities'],
    [parakeet, [['timestamp_granularities[]', 'word']], 400, 'request.invalid', 'timestamp_granularities'],
    [parakeet, [verbose, ['timestamp_granularities[]', 'letter']], 400, 'request.invalid', 'timestamp_granularities'],
  ] as const)('%j refuses %j with %s %s', (abilities, fields, status, code, param) => {
    expect(parseTranscription(fields, 'transcribe', abilities)).toMatchObject({ ok: false, refusal: { status, code, param } });
  });

  test('a language that the model does not know is tried without it, and the client is told', () => {
    for (const task of ['transcribe', 'translate'] as const)
      expect(parseTranscription([['language', 'xx-YY']], task, whisper)).toMatchObject({
        ok: true,
        value: { language: undefined, note: expect.stringContaining('does not know the language "xx"') },
      });
    const known = parseTranscription([['language', 'de']], 'transcribe', whisper);
    expect(known).toMatchObject({ ok: true, value: { language: 'de' } });
    expect(known).not.toHaveProperty('value.note');
  });

  test('a translation needs a model that can translate', () => {
    expect(parseTranscription([], 'translate', english)).toMatchObject({ refusal: { status: 422, code: 'audio.translation_unsupported' } });
    expect(parseTranscription([['language', 'de']], 'translate', whisper)).toMatchObject({ ok: true, value: { language: 'de' } });
  });
});

describe('parseSpeech()', () => {
  const full = { compression: true, maxInput: 20 };
  const parse = (body: object, abilities = full) => parseSpeech(JSON.stringify(body), abilities);

  test('has the defaults of OpenAI, and WAV where nothing can compress', () => {
    const defaults = { sentences: ['Hi.'], voice: undefined, speed: 1, events: false };
    expect(parse({ input: 'Hi.' })).toMatchObject({ ok: true, value: { ...defaults, format: 'mp3' } });
    expect(parse({ input: 'Hi.' }, { ...full, compression: false })).toMatchObject({ ok: true, value: { format: 'wav' } });
    expect(parse({ input: 'Hi.', voice: { id: 'af_sky' }, stream_format: 'sse', speed: 2 })).toMatchObject({
      value: { voice: 'af_sky', events: true, speed: 2 },
    });
  });

  test.each([
    [{}, 400, 'input'],
    [{ input: 5 }, 400, 'input'],
    [{ input: '' }, 400, 'input'],
    [{ input: '😀 🎉!' }, 400, 'input'],
    [{ input: '---' }, 400, 'input'],
    [{ input: 'a'.repeat(21) }, 413, 'input'],
    [{ input: 'a', response_format: 'midi' }, 400, 'response_format'],
    [{ input: 'a', speed: 0.1 }, 400, 'speed'],
    [{ input: 'a', speed: '1' }, 400, 'speed'],
    [{ input: 'a', stream_format: 'ws' }, 400, 'stream_format'],
    [{ input: 'a', voice: 3 }, 400, 'voice'],
    [{ input: 'a', lang_code: 3 }, 400, 'lang_code'],
    [{ input: 'a', lang_code: 'Klingon language' }, 400, 'lang_code'],
  ])('refuses %j with status %s', (body, status, param) => {
    expect(parse(body)).toMatchObject({ ok: false, refusal: { status, param } });
  });

  test.each([
    ['a', 'en-us'],
    ['b', 'en-gb'],
    ['EN_GB', 'en-gb'],
    ['de', 'de'],
    ['', ''],
  ])('the language "%s" is "%s"', (lang_code, language) => {
    expect(parse({ input: 'a', lang_code })).toMatchObject({ ok: true, value: { language } });
  });

  test('says that ffmpeg is missing', () => {
    expect(parse({ input: 'a', response_format: 'mp3' }, { ...full, compression: false })).toMatchObject({
      refusal: { status: 422, code: 'audio.format_unsupported', message: expect.stringContaining('Install ffmpeg') },
    });
  });

  test('accepts any text without throwing', () => {
    fc.assert(fc.property(fc.oneof(fc.json(), fc.string()), (text) => expect(typeof parseSpeech(text, full).ok).toBe('boolean')));
  });
});

describe('splitSentences()', () => {
  test.each([
    ['Hello there. How are you? Fine!', ['Hello there.', 'How are you?', 'Fine!']],
    ['Dr. Smith met Mr. Jones at 5 p.m. today.', ['Dr. Smith met Mr. Jones at 5 p.m. today.']],
    ['Pi is 3.14 exactly. No.', ['Pi is 3.14 exactly.', 'No.']],
    ['One\ntwo\n\nthree', ['One', 'two', 'three']],
    ['你好。再见。', ['你好。', '再见。']],
    ['... !!! ???', []],
    ['', []],
  ])('splits %j', (text, expected) => {
    expect(splitSentences(text)).toEqual(expected);
  });

  test('splits a long sentence at commas, then at spaces, then anywhere, and loses no letter', () => {
    const long = `${'word '.repeat(50)}, ${'x'.repeat(700)} 😀`;
    const parts = splitSentences(long);
    for (const part of parts) expect(part.length).toBeLessThanOrEqual(280);
    expect(parts.join('').replaceAll(/[^a-z]/g, '')).toBe(long.replaceAll(/[^a-z]/g, ''));
  });

  test('loses no letter or digit of any text', () => {
    const letters = (text: string): string => text.replaceAll(/[^\p{L}\p{N}]/gu, '');
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 600 }), (text) =>
        expect(letters(splitSentences(text).join(''))).toBe(letters(text)),
      ),
    );
  });
});

describe('plainText()', () => {
  test.each([
    ['# Title\nText', 'Title\nText'],
    ['**bold** and *soft* and `code`', 'bold and soft and code'],
    ['[a link](https://example.org/x?y=1) here', 'a link here'],
    ['![a picture](x.png)', 'a picture'],
    ['- one\n- two', 'one\ntwo'],
    ['<b>big</b> 3 < 4', 'big 3 < 4'],
    ['2 * 3 * 4 = 24, snake_case_name', '2 * 3 * 4 = 24, snake_case_name'],
    ['Hi 😀👍🏽 you 🇩🇪', 'Hi you'],
    ['a\u0000b\u001bc', 'a b c'],
    ['```js\nlet x\n```', 'let x'],
  ])('%j becomes %j', (text, expected) => {
    expect(plainText(text)).toBe(expected);
  });

  test('takes time in proportion to a hostile text', () => {
    for (const sign of ['*', '_', '`', '[', '<a', '![', '**a', '(', '\n> '])
      expect(plainText(sign.repeat(50_000)).length).toBeLessThanOrEqual(200_000);
  });
});
