/** The lines of the specification about the text-to-speech runtime, one test for each. */
import { expect, test } from '@jest/globals';
import { DEFAULT_SLOT_OF_CAPABILITY, INFERENCE_PATHS } from '../../../src/gateway/route/decide/inference-paths.ts';
import { describeAvailability } from '../../../src/providers/decide/rank-backends.ts';
import { PROVIDERS } from '../../../src/providers/registry.ts';
import { tts } from '../../../src/providers/tts/tts.ts';
import { ttsContents } from '../../../src/providers/tts/decide/tts-model.ts';
import { DEFAULT_PROVIDER_OF_SLOT, PROVIDER_KINDS } from '../../../src/schema/slot/provider-kinds.ts';
import { KOKORO_ARCHIVES, KOKORO_VOICES } from '../../support/speech/kokoro-voices.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';

test('Text-to-speech runtime | CPU or Vulkan', () => {
  expect(PROVIDER_KINDS.tts).toMatchObject({ backends: ['cpu', 'vulkan'], defaultBackend: 'cpu' });
  expect(tts.devices('vulkan')).toEqual(['/dev/dri']);
});

test('a slot that asks for Vulkan where the engine cannot use it says so instead of pretending', () => {
  const hardware = { ...recordedHardware('w7900'), programs: { tts: { name: 'the speech engine', backends: ['cpu'] } } } as const;
  expect(tts.rankBackends(hardware)).toEqual([
    { backend: 'cpu' },
    { backend: 'vulkan', missing: 'the speech engine computes with the CPU only: sherpa-onnx is not built for Vulkan' },
  ]);
  // In containers, an image decides: whoever has a server for Vulkan names its image.
  const inImages = (backends: readonly ('cpu' | 'vulkan')[]) =>
    describeAvailability(tts, { kind: 'images', backends }, recordedHardware('w7900')).backends;
  expect(inImages(['cpu'])).toContainEqual({ backend: 'vulkan', available: false, reason: 'there is no toolbox image' });
  expect(inImages(['cpu', 'vulkan'])).toContainEqual({ backend: 'vulkan', available: true, reason: '' });
});

test('Text-to-speech runtime | /v1/audio/speech', () => {
  const paths = INFERENCE_PATHS.filter(({ capability }) => capability === 'speech').map(({ path }) => path);
  expect(paths).toEqual(['/v1/audio/speech']);
  expect(DEFAULT_SLOT_OF_CAPABILITY.speech).toBe('tts');
  expect(tts.infer({ method: 'POST', path: '/v1/audio/speech', capability: 'speech' }, ['speech'])).toEqual({
    kind: 'forward',
    path: '/v1/audio/speech',
  });
});

test('All five are first-class: text-to-speech is one of the providers of this build, and the default of its slot', () => {
  expect(PROVIDERS.tts).toBe(tts);
  expect(DEFAULT_PROVIDER_OF_SLOT['tts']).toBe('tts');
});

const kokoroVoices = (names: readonly string[]) =>
  ttsContents(
    'kokoro',
    new Map([
      ['n_speakers', String(names.length)],
      ['speaker_names', names.join(',')],
    ]),
  ).voices;

test('the 82M-parameter model has 54 voices in 8 languages, where English counts once', () => {
  const voices = kokoroVoices(KOKORO_VOICES);
  expect(voices).toHaveLength(54);
  expect(new Set(voices.map(({ language = '' }) => language.replace(/-(us|gb)$/, ''))).size).toBe(8);
  for (const [id, language] of [
    ['af_heart', 'en-us'],
    ['bm_george', 'en-gb'],
    ['em_santa', 'es'],
    ['ff_siwis', 'fr'],
    ['hm_psi', 'hi'],
    ['im_nicola', 'it'],
    ['jf_nezumi', 'ja'],
    ['pm_santa', 'pt-br'],
    ['zm_yunyang', 'zh'],
  ])
    expect(voices).toContainEqual({ id, language });
});

test.each([
  ['until 2026-09-08', 53, { em_alex: 29, ff_siwis: 30, pm_santa: 44, zm_yunyang: 52 }],
  ['since 2026-09-08', 54, { em_alex: 29, ff_siwis: 30, pm_santa: 44, zm_yunyang: 52, em_santa: 53 }],
])('each voice has the number that it has in the archive of sherpa-onnx %s', (archive, count, numbers) => {
  const ids = kokoroVoices(KOKORO_ARCHIVES[archive] ?? []).map(({ id }) => id);
  expect(ids).toHaveLength(count);
  for (const [name, number] of Object.entries(numbers)) expect([name, ids.indexOf(name)]).toEqual([name, number]);
});
