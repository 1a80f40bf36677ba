/**
 * The demo model for speech-to-text: the four graphs of a Moonshine model, without trained weights. Whatever it hears, its answer is the
 * same sentence, because the decoder follows a table from each word to the next one. Pure.
 */
import { encodeOnnx, toType, type OnnxConstant, type OnnxNode, type OnnxValue } from './encode-onnx.ts';

const END = 2;
const WORDS = ['▁This', '▁is', '▁the', '▁demo', '.'];
const VOCABULARY = ['<unk>', '<s>', '</s>', ...WORDS];
/** What the model answers for every piece of audio that is longer than about a second. */
export const DEMO_TRANSCRIPT = 'This is the demo.';

/** Samples in a feature, as in Moonshine: 24 ms at 16 kHz. */
const HOP = 384;
const FEATURES = 4;
const LIKELY = 10;

const FEATURE_VALUE: OnnxValue = { name: 'features', type: 'float', shape: [1, 'time', FEATURES] };
const ENCODED: OnnxValue = { name: 'encoded', type: 'float', shape: [1, 'time', FEATURES] };

export function encodeListener(): Readonly<Record<string, Uint8Array>> {
  return {
    'preprocess.onnx': preprocess(),
    'encode.onnx': encode(),
    'uncached_decode.onnx': decode(false),
    'cached_decode.onnx': decode(true),
    'tokens.txt': Buffer.from(VOCABULARY.map((word, id) => `${word} ${id}\n`).join('')),
  };
}

/** The mean of each hop becomes the first feature. */
function preprocess(): Uint8Array {
  const weights = Array.from({ length: FEATURES * HOP }, (_, index) => (index < HOP ? 1 / HOP : 0));
  return encodeOnnx({
    name: 'preprocess',
    inputs: [{ name: 'audio', type: 'float', shape: [1, 'samples'] }],
    outputs: [FEATURE_VALUE],
    constants: [
      { name: 'axis', type: 'int64', shape: [1], values: [1] },
      { name: 'weights', type: 'float', shape: [FEATURES, 1, HOP], values: weights },
    ],
    nodes: [
      node('Unsqueeze', ['audio', 'axis'], ['signal']),
      { ...node('Conv', ['signal', 'weights'], ['hops']), attributes: { strides: [HOP] } },
      { ...node('Transpose', ['hops'], ['features']), attributes: { perm: [0, 2, 1] } },
    ],
  });
}

function encode(): Uint8Array {
  return encodeOnnx({
    name: 'encode',
    inputs: [FEATURE_VALUE, { name: 'length', type: 'int32', shape: [1] }],
    outputs: [ENCODED],
    constants: [],
    nodes: [node('Identity', ['features'], ['encoded'])],
  });
}

/** Both decoders look the next word up in a table; the state between them is a number that nobody reads. */
function decode(cached: boolean): Uint8Array {
  const state: OnnxValue = { name: 'state_in', type: 'float', shape: [1] };
  return encodeOnnx({
    name: cached ? 'cached_decode' : 'uncached_decode',
    inputs: [
      { name: 'tokens', type: 'int32', shape: [1, 1] },
      ENCODED,
      { name: 'length', type: 'int32', shape: [1] },
      ...(cached ? [state] : []),
    ],
    outputs: [
      { name: 'logits', type: 'float', shape: [1, 1, VOCABULARY.length] },
      { name: 'state_out', type: 'float', shape: [1] },
    ],
    constants: [nextWords()],
    nodes: [{ ...node('Gather', ['next_words', 'tokens'], ['logits']), attributes: { axis: 0 } }, stateNode(cached)],
  });
}

const stateNode = (cached: boolean): OnnxNode =>
  cached ? node('Identity', ['state_in'], ['state_out']) : toType('float', 'length', 'state_out');

function nextWords(): OnnxConstant {
  const size = VOCABULARY.length;
  const values = Array.from({ length: size * size }, () => 0);
  VOCABULARY.forEach((_, id) => {
    values[id * size + nextWord(id)] = LIKELY;
  });
  return { name: 'next_words', type: 'float', shape: [size, size], values };
}

function nextWord(id: number): number {
  if (id < END) return END + 1;
  return id === END || id === VOCABULARY.length - 1 ? END : id + 1;
}

const node = (op: string, inputs: readonly string[], outputs: readonly string[]): OnnxNode => ({ op, inputs, outputs });
