/**
 * A Moonshine in the second layout, without trained weights: graphs with the inputs and outputs of the released ones. The decoder has the mask that sherpa-onnx 1.13.8 fills
 * with a value for each encoded frame, while the graph keeps every 384th of them: with more than 384 frames, the shapes differ, and the library returns an empty text. Pure.
 */
import { encodeOnnx, toType, type OnnxNode, type OnnxValue } from '../../../toolboxes/demo/encode-onnx.ts';

/** What it answers for every piece that it can hear. */
export const V2_TRANSCRIPT = 'Heard again.';
/** The file of tokens has them in Base64. */
const VOCABULARY = ['<unk>', '<s>', '</s>', '▁Heard', '▁again', '.'];
const END = 2;
const HOP = 384;
const FEATURES = 4;
const LIKELY = 10;

/** `deaf`: the decoder ends at once, whatever it hears. */
export function encodeMoonshineV2({ deaf = false }: { readonly deaf?: boolean } = {}): Readonly<Record<string, Uint8Array>> {
  return {
    'encoder_model.onnx': encoder(),
    'decoder_model_merged.onnx': decoder(deaf),
    'tokens.txt': Buffer.from(VOCABULARY.map((word, id) => `${Buffer.from(word).toString('base64')} ${id}\n`).join('')),
  };
}

const node = (op: string, inputs: readonly string[], output: string): OnnxNode => ({ op, inputs, outputs: [output] });
const FRAMES: OnnxValue = { name: 'encoder_hidden_states', type: 'float', shape: [1, 'frames', FEATURES] };

/** The mean of each hop is the first feature. */
function encoder(): Uint8Array {
  const values = Array.from({ length: FEATURES * HOP }, (_, index) => (index < HOP ? 1 / HOP : 0));
  return encodeOnnx({
    name: 'encoder',
    inputs: [{ name: 'input_values', type: 'float', shape: [1, 'samples'] }],
    outputs: [FRAMES],
    constants: [
      { name: 'axis', type: 'int64', shape: [1], values: [1] },
      { name: 'weights', type: 'float', shape: [FEATURES, 1, HOP], values },
    ],
    nodes: [
      node('Unsqueeze', ['input_values', 'axis'], 'signal'),
      { ...node('Conv', ['signal', 'weights'], 'hops'), attributes: { strides: [HOP] } },
      { ...node('Transpose', ['hops'], FRAMES.name), attributes: { perm: [0, 2, 1] } },
    ],
  });
}

function decoder(deaf: boolean): Uint8Array {
  const state = (name: string): OnnxValue => ({ name, type: 'float', shape: [1, 1, 'length', FEATURES] });
  const states = ['decoder.key', 'decoder.value', 'encoder.key', 'encoder.value'];
  const size = VOCABULARY.length;
  const next = (id: number): number => (deaf || id === END || id === size - 1 ? END : Math.max(id, END) + 1);
  const table = Array.from({ length: size * size }, (_, index) => (index % size === next(Math.floor(index / size)) ? LIKELY : 0));
  return encodeOnnx({
    name: 'decoder',
    inputs: [
      { name: 'encoder_attention_mask', type: 'int64', shape: [1, 'mask'] },
      { name: 'input_ids', type: 'int64', shape: [1, 'tokens'] },
      FRAMES,
      ...states.map((name) => state(`past_key_values.0.${name}`)),
      { name: 'use_cache_branch', type: 'bool', shape: [1] },
    ],
    outputs: [{ name: 'logits', type: 'float', shape: [1, 'tokens', size] }, ...states.map((name) => state(`present.0.${name}`))],
    constants: [
      { name: 'table', type: 'float', shape: [size, size], values: table },
      { name: 'from', type: 'int64', shape: [1], values: [0] },
      { name: 'to', type: 'int64', shape: [1], values: [2 ** 31] },
      { name: 'second', type: 'int64', shape: [1], values: [1] },
      { name: 'hop', type: 'int64', shape: [1], values: [HOP] },
      { name: 'single', type: 'int64', shape: [2], values: [1, 1] },
      { name: 'zero', type: 'float', shape: [], values: [0] },
    ],
    nodes: [
      node('Gather', ['table', 'input_ids'], 'scores'),
      node('Slice', ['encoder_attention_mask', 'from', 'to', 'second', 'hop'], 'kept'),
      // Fails unless one value is left.
      node('Reshape', ['kept', 'single'], 'only'),
      toType('float', 'only', 'only_number'),
      node('Mul', ['only_number', 'zero'], 'nothing'),
      node('Add', ['scores', 'nothing'], 'logits'),
      ...states.map((name) => present(name)),
    ],
  });
}

const present = (name: string): OnnxNode =>
  name.startsWith('encoder')
    ? node('Unsqueeze', [FRAMES.name, 'second'], `present.0.${name}`)
    : node('Identity', [`past_key_values.0.${name}`], `present.0.${name}`);
