/** The models for speech-to-text that the speech server loads. Pure. */
import { network, type BundleShape } from '../../speech/decide/bundle.ts';

const TOKENS = /^(?:.*[-_.])?tokens\.txt$/;

export const STT_BUNDLES: readonly BundleShape[] = [
  {
    family: 'moonshine',
    networks: ['preprocess', 'encode', 'uncached_decode', 'cached_decode'].map(exactly),
    others: [TOKENS],
  },
  { family: 'moonshine', networks: ['encoder_model', 'decoder_model_merged'].map(exactly), others: [TOKENS] },
  { family: 'transducer', networks: ['encoder', 'decoder', 'joiner'].map(network), others: [TOKENS] },
  { family: 'whisper', networks: ['encoder', 'decoder'].map(network), others: [TOKENS] },
  // What turns text into sounds has files of these names as well.
  { family: 'ctc', networks: [/^model(?:\.int8)?\.onnx$/], others: [TOKENS], without: /^(?:voices\.bin|espeak-ng-data|lexicon.*\.txt)$/ },
];

function exactly(name: string): RegExp {
  return new RegExp(`^${name}(?:\\.int8|_quantized)?\\.(?:onnx|ort)$`);
}
