/** Format of text-to-speech models: a directory, unpacked as sherpa-onnx releases them. */
import type { ModelFormat, ModelReading } from '../provider.ts';
import { findBundle, network, type BundleShape } from '../speech/decide/bundle.ts';
import { readBundle } from '../speech/read-bundle.ts';
import { ttsContents, voicesProblem } from './decide/tts-model.ts';

const VOICES_FILE = 'voices.bin';

export const ttsFormat: ModelFormat = {
  kind: 'tts',
  recognize: ({ names }) => (names !== undefined && findBundle(TTS_BUNDLES, names) !== undefined ? 'model' : undefined),
  filesOf: (name) => [name],
  contentsFrom: (stated) => stated,
  async read({ id, entry }, files): Promise<ModelReading> {
    // Directories are only among the names of the entry.
    const bundle = findBundle(TTS_BUNDLES, [...(await files.names()), ...(entry.names ?? [])]);
    if (bundle === undefined)
      return { kind: 'unusable', message: `The model "${id}" is incomplete: its network or what belongs to it is missing; get it again` };
    // The pronunciation rules of espeak-ng are a directory.
    const others = bundle.others.filter((name) => /\.(bin|txt|json)$/.test(name));
    const reading = await readBundle(id, { ...bundle, others }, files);
    if (!reading.ok) return { kind: 'unusable', message: reading.message };
    const voiceBytes = reading.sizes.get(VOICES_FILE);
    const problem = voiceBytes === undefined ? undefined : voicesProblem(reading.metadata, voiceBytes);
    if (problem !== undefined) return { kind: 'unusable', message: `The file "${VOICES_FILE}" of "${id}" ${problem}` };
    return { kind: 'model', sizeBytes: reading.sizeBytes, contents: ttsContents(bundle.family, reading.metadata), family: bundle.family };
  },
};

const TOKENS = /^(?:.*[-_.])?tokens\.txt$/;

const TTS_BUNDLES: readonly BundleShape[] = [
  { family: 'kokoro', networks: [/^model(?:\.[a-z0-9]+)?\.onnx$/], others: [/^voices\.bin$/, TOKENS] },
  { family: 'matcha', networks: [/^model-steps-\d+\.onnx$/, /^(?:vocos|hifigan).*\.onnx$/], others: [TOKENS] },
  {
    family: 'pocket',
    networks: [network('lm_flow'), network('lm_main'), network('encoder'), network('decoder'), network('text_conditioner')],
    others: [/^vocab\.json$/, /^token_scores\.json$/],
  },
  // VITS in the terms of sherpa-onnx, e.g. the voices of Piper.
  { family: 'vits', networks: [/\.onnx$/], others: [TOKENS, /^(?:espeak-ng-data|lexicon.*\.txt)$/] },
  // A model of characters needs neither. Its files could as well be a model for speech-to-text.
  { family: 'vits', networks: [/^model(?:\.int8)?\.onnx$/], others: [TOKENS] },
];
