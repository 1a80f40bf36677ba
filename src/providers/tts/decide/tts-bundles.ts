/** The models for text-to-speech that the speech server loads. Pure. */
import { network, type BundleShape } from '../../speech/decide/bundle.ts';

const TOKENS = /^(?:.*[-_.])?tokens\.txt$/;

export const TTS_BUNDLES: readonly BundleShape[] = [
  { family: 'kokoro', networks: [/^model(?:\.[a-z0-9]+)?\.onnx$/], others: [/^voices\.bin$/, TOKENS] },
  { family: 'matcha', networks: [/^model-steps-\d+\.onnx$/, /^(?:vocos|hifigan).*\.onnx$/], others: [TOKENS] },
  {
    family: 'pocket',
    networks: [network('lm_flow'), network('lm_main'), network('encoder'), network('decoder'), network('text_conditioner')],
    others: [/^vocab\.json$/, /^token_scores\.json$/],
  },
  // What sherpa-onnx calls VITS, such as the voices of Piper.
  { family: 'vits', networks: [/\.onnx$/], others: [TOKENS, /^(?:espeak-ng-data|lexicon.*\.txt)$/] },
  // A model that reads characters instead of sounds needs neither. By its files it could as well be one for speech-to-text.
  { family: 'vits', networks: [/^model(?:\.int8)?\.onnx$/], others: [TOKENS] },
];
