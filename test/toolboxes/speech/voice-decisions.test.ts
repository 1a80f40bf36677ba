import { describe, expect, test } from '@jest/globals';
import { chooseLanguage, chooseVoice, type Voice } from '../../../toolboxes/speech/decide/choose-voice.ts';

describe('chooseVoice()', () => {
  const kokoro: readonly Voice[] = ['af_alloy', 'af_bella', 'af_heart', 'af_sky', 'bf_emma'].map((name) => ({
    name,
    language: name.startsWith('b') ? 'en-gb' : 'en-us',
  }));
  const demo: readonly Voice[] = ['one', 'two'].map((name) => ({ name, language: '' }));

  test.each([
    [kokoro, undefined, 2],
    [demo, undefined, 0],
    [kokoro, 'af_sky', 3],
    [kokoro, 'AF_Sky', 3],
    [kokoro, 'alloy', 0],
    [kokoro, 'shimmer', 1],
    [kokoro, 'coral', 2],
    [demo, 'alloy', 0],
    [demo, 'ash', 1],
    [demo, 'onyx', 1],
    [kokoro, 'af_bella(2)+af_bella', 1],
    [kokoro, ' af_sky (0.5)', 3],
  ])('%j with %s is voice %s', (voices, wanted, speaker) => {
    expect(chooseVoice({ voices, clones: false }, { voice: wanted })).toMatchObject({ ok: true, value: { speaker } });
  });

  test('answers an unknown voice with the list, and a mix with the reason', () => {
    expect(chooseVoice({ voices: kokoro, clones: false }, { voice: 'bob' })).toMatchObject({
      refusal: {
        status: 400,
        code: 'audio.voice_unknown',
        message: 'Choose another voice than "bob": the model has af_alloy, af_bella, af_heart, af_sky, bf_emma',
      },
    });
    expect(chooseVoice({ voices: kokoro, clones: false }, { voice: 'af_bella+bob' })).toMatchObject({
      refusal: { code: 'audio.voice_unknown' },
    });
    expect(chooseVoice({ voices: kokoro, clones: false }, { voice: 'af_bella(2)+af_sky' })).toMatchObject({
      refusal: { status: 422, code: 'audio.mix_unsupported' },
    });
  });

  test.each([
    [
      'af_bella(2)+af_sky',
      'en-us',
      [
        [1, 2],
        [3, 1],
      ],
    ],
    [
      'bf_emma + af_sky(0.5)',
      'en-gb',
      [
        [4, 1],
        [3, 0.5],
      ],
    ],
    [
      'af_sky+af_bella+af_sky(2)',
      'en-us',
      [
        [3, 3],
        [1, 1],
      ],
    ],
  ] as const)('a Kokoro mixes %s', (voice, language, weights) => {
    const mix = weights.map(([speaker, weight]) => ({ speaker, weight }));
    expect(chooseVoice({ voices: kokoro, clones: false, mixes: true }, { voice })).toEqual({
      ok: true,
      value: { speaker: 0, language, mix },
    });
  });

  test.each([
    ['af_bella(0)+af_sky', 'request.invalid', 'Set the weight of "af_bella" to a number above 0'],
    ['af_bella(..)+af_sky', 'request.invalid', 'Set the weight of "af_bella" to a number above 0'],
    ['af_bella(-1)+af_sky', 'audio.voice_unknown', 'Choose another voice than "af_bella(-1)+af_sky"'],
    ['af_bella+bob', 'audio.voice_unknown', 'Choose another voice than "bob"'],
  ])('a Kokoro refuses %s', (voice, code, message) => {
    expect(chooseVoice({ voices: kokoro, clones: false, mixes: true }, { voice })).toMatchObject({
      ok: false,
      refusal: { status: 400, code, param: 'voice', message: expect.stringContaining(message) },
    });
  });

  test('the parts of a mix are limited', () => {
    const many = Array.from({ length: 9 }, (_, index) => ({ name: `v${index}`, language: '' }));
    const voice = many.map(({ name }) => name).join('+');
    expect(chooseVoice({ voices: many, clones: false, mixes: true }, { voice })).toMatchObject({
      refusal: { code: 'request.invalid', message: 'Mix at most 8 voices' },
    });
  });

  test('keeps the message short, whatever the name and however many voices', () => {
    const many = Array.from({ length: 900 }, (_, index) => ({ name: `speaker_${index}`, language: '' }));
    const found = chooseVoice({ voices: many, clones: false }, { voice: 'x'.repeat(100_000) });
    if (found.ok) throw new Error('found');
    expect(found.refusal.message.length).toBeLessThan(1500);
    expect(found.refusal.message).toContain('and 840 more');
  });
});

test.each([
  ['', 'fr', undefined],
  ['en-gb', 'en-gb', undefined],
  ['en', 'en-us', undefined],
  ['fr', 'fr', undefined],
  ['de', 'fr', 'does not know the language "de"'],
])('a French voice with the language "%s" speaks %s', (wanted, language, note) => {
  const voice = { speaker: 0, language: 'fr' };
  expect(chooseLanguage(['en-us', 'en-gb', 'fr'], voice, wanted)).toEqual(
    note === undefined ? { language } : { language, note: expect.stringContaining(note) },
  );
});
