/** The lines of the specification about the text-to-speech runtime, one test for each. */
import { expect, test } from '@jest/globals';
import { DEFAULT_SLOT_OF_CAPABILITY, INFERENCE_PATHS } from '../../../src/gateway/route/decide/inference-paths.ts';
import { describeAvailability } from '../../../src/providers/decide/rank-backends.ts';
import { PROVIDERS } from '../../../src/providers/registry.ts';
import { tts } from '../../../src/providers/tts/tts.ts';
import { ttsContents } from '../../../src/providers/tts/decide/tts-model.ts';
import { DEFAULT_PROVIDER_OF_SLOT, PROVIDER_KINDS } from '../../../src/schema/slot/provider-kinds.ts';
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

/** The voices of version 1.0, by their language: how many female and male ones. */
const KOKORO: readonly (readonly [prefix: string, count: number])[] = [
  ['af', 11],
  ['am', 9],
  ['bf', 4],
  ['bm', 4],
  ['ef', 1],
  ['em', 2],
  ['ff', 1],
  ['hf', 2],
  ['hm', 2],
  ['if', 1],
  ['im', 1],
  ['jf', 4],
  ['jm', 1],
  ['pf', 1],
  ['pm', 2],
  ['zf', 4],
  ['zm', 4],
];

test('the 82M-parameter model has 54 voices in 8 languages, where English counts once', () => {
  const names = KOKORO.flatMap(([prefix, count]) => Array.from({ length: count }, (_, index) => `${prefix}_${index}`));
  const { voices } = ttsContents(
    'kokoro',
    new Map([
      ['n_speakers', '54'],
      ['speaker_names', names.join(',')],
    ]),
  );
  expect(voices.map(({ id }) => id)).toEqual(names);
  expect(voices).toHaveLength(54);
  expect(new Set(voices.map(({ language = '' }) => language.replace(/-(us|gb)$/, ''))).size).toBe(8);
});
