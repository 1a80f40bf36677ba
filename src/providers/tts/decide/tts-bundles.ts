/** The models for text-to-speech that the speech server loads. Pure. */
import type { BundleShape } from '../../speech/decide/bundle.ts';

const TOKENS = /^(?:.*[-_.])?tokens\.txt$/;

export const TTS_BUNDLES: readonly BundleShape[] = [
  { family: 'kokoro', networks: [/^model(?:\.[a-z0-9]+)?\.onnx$/], others: [/^voices\.bin$/, TOKENS] },
  { family: 'matcha', networks: [/^model-steps-\d+\.onnx$/, /^(?:vocos|hifigan).*\.onnx$/], others: [TOKENS] },
  // What sherpa-onnx calls VITS, such as the voices of Piper.
  { family: 'vits', networks: [/\.onnx$/], others: [TOKENS, /^(?:espeak-ng-data|lexicon.*\.txt)$/] },
];
