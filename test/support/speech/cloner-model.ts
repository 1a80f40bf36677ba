/**
 * A generated model that imitates voices: graphs of the Pocket TTS family with their real inputs and outputs, without trained weights. It plays one
 * tone with the pitch of the reference recording, the longer the more characters the text has. Pure.
 */
import {
  encodeOnnx,
  toType,
  type OnnxConstant,
  type OnnxModel,
  type OnnxNode,
  type OnnxValue,
} from '../../../toolboxes/demo/encode-onnx.ts';

export const CLONER_SAMPLE_RATE = 24_000;
/** 80 ms: what the decoder makes of one frame. */
const CLONER_SAMPLES_PER_FRAME = 1920;
/** Widths of a frame and of what the language model reads, as in the trained model. */
const FRAME = 32;
const EMBEDDING = 1024;
const LOUDNESS = 0.3;
const SYMBOLS = Array.from('▁ .,;:!?\'"()-…abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZäöüßÄÖÜ0123456789');

export function encodeCloner(): Readonly<Record<string, Uint8Array>> {
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
  const tokens = [...bytes, ...SYMBOLS];
  const graphs = { lm_flow: flow(), lm_main: languageModel(), encoder: encoder(), decoder: decoder(), text_conditioner: conditioner() };
  return {
    ...Object.fromEntries(Object.entries(graphs).map(([name, model]) => [`${name}.onnx`, encodeOnnx(model)])),
    'vocab.json': jsonOf(tokens.map((token, id) => [token, id])),
    'token_scores.json': jsonOf(tokens.map((token, id) => [token, id < bytes.length ? -10 : -1])),
  };
}

const jsonOf = (entries: readonly (readonly [string, number])[]): Uint8Array => Buffer.from(JSON.stringify(Object.fromEntries(entries)));
const node = (op: string, inputs: readonly string[], output: string): OnnxNode => ({ op, inputs, outputs: [output] });
const value = (name: string, shape: OnnxValue['shape'], type: OnnxValue['type'] = 'float'): OnnxValue => ({ name, type, shape });
const number = (name: string, content: number): OnnxConstant => ({ name, type: 'float', shape: [], values: [content] });
const numbers = (name: string, values: readonly number[]): OnnxConstant => ({ name, type: 'int64', shape: [values.length], values });

/** Changes of sign in a second, half of which is the pitch of a tone. */
function encoder(): OnnxModel {
  return {
    name: 'pitch',
    inputs: [value('audio', [1, 1, 'samples'])],
    outputs: [value('latents', [1, 1, EMBEDDING])],
    constants: [
      number('half_rate', CLONER_SAMPLE_RATE / 2),
      number('half', 0.5),
      numbers('last', [2]),
      numbers('begin', [0]),
      numbers('second', [1]),
      numbers('before_end', [-1]),
      numbers('end', [2 ** 31]),
      numbers('shape', [1, 1, EMBEDDING]),
    ],
    nodes: [
      node('Sign', ['audio'], 'sign'),
      node('Slice', ['sign', 'second', 'end', 'last'], 'later'),
      node('Slice', ['sign', 'begin', 'before_end', 'last'], 'earlier'),
      node('Sub', ['later', 'earlier'], 'step'),
      node('Abs', ['step'], 'height'),
      node('Mul', ['height', 'half'], 'changes'),
      { ...node('ReduceMean', ['changes'], 'share'), attributes: { axes: [2], keepdims: 1 } },
      node('Mul', ['share', 'half_rate'], 'hertz'),
      node('Expand', ['hertz', 'shape'], 'latents'),
    ],
  };
}

/** One row for each token; only their number matters. */
function conditioner(): OnnxModel {
  return {
    name: 'rows',
    inputs: [value('token_ids', [1, 'tokens'], 'int64')],
    outputs: [value('embeddings', [1, 'tokens', EMBEDDING])],
    constants: [numbers('last', [2]), numbers('repeats', [1, 1, EMBEDDING])],
    nodes: [
      toType('float', 'token_ids', 'ids'),
      node('Unsqueeze', ['ids', 'last'], 'rows'),
      node('Tile', ['rows', 'repeats'], 'embeddings'),
    ],
  };
}

/** It is called with the voice, then with the text, and then once for each frame, until it says that this is the last one. */
function languageModel(): OnnxModel {
  return {
    name: 'frames',
    inputs: [
      value('sequence', [1, 'frames', FRAME]),
      value('text_embeddings', [1, 'rows', EMBEDDING]),
      value('pitch', [1]),
      value('left', [1]),
      value('calls', [1]),
    ],
    outputs: [
      value('conditioning', [1, EMBEDDING]),
      value('eos_logit', [1, 1]),
      value('next_pitch', [1]),
      value('next_left', [1]),
      value('next_calls', [1]),
    ],
    constants: [
      number('zero', 0),
      number('one', 1),
      number('width', EMBEDDING),
      numbers('all', [1, EMBEDDING]),
      numbers('single', [1, 1]),
      numbers('rows_at', [1]),
    ],
    nodes: [
      node('Equal', ['calls', 'zero'], 'is_voice'),
      node('Equal', ['calls', 'one'], 'is_text'),
      node('Greater', ['calls', 'one'], 'is_frame'),
      { ...node('ReduceSum', ['text_embeddings'], 'sum'), attributes: { keepdims: 0 } },
      node('Div', ['sum', 'width'], 'mean'),
      node('Where', ['is_voice', 'mean', 'pitch'], 'next_pitch'),
      node('Shape', ['text_embeddings'], 'shape'),
      node('Gather', ['shape', 'rows_at'], 'rows'),
      toType('float', 'rows', 'rows_number'),
      node('Where', ['is_text', 'rows_number', 'left'], 'now_left'),
      toType('float', 'is_frame', 'spent'),
      node('Sub', ['now_left', 'spent'], 'next_left'),
      node('Add', ['calls', 'one'], 'next_calls'),
      node('Neg', ['next_left'], 'logit'),
      node('Reshape', ['logit', 'single'], 'eos_logit'),
      // Reads the frame before, as the trained model does, although it changes nothing.
      { ...node('ReduceSum', ['sequence'], 'unused'), attributes: { keepdims: 0 } },
      node('Expand', ['next_pitch', 'all'], 'conditioning'),
    ],
  };
}

/** After the last step, the noise has become the pitch: each step goes the rest of the way in proportion to the time that is left. */
function flow(): OnnxModel {
  return {
    name: 'way',
    inputs: [value('c', [1, EMBEDDING]), value('s', [1, 1]), value('t', [1, 1]), value('x', [1, FRAME])],
    outputs: [value('flow_dir', [1, FRAME])],
    constants: [number('one', 1), numbers('begin', [0]), numbers('end', [FRAME]), numbers('axis', [1])],
    nodes: [
      node('Slice', ['c', 'begin', 'end', 'axis'], 'target'),
      node('Sub', ['target', 'x'], 'way'),
      node('Sub', ['one', 's'], 'left'),
      node('Div', ['way', 'left'], 'flow_dir'),
    ],
  };
}

/** A tone; its state is the number of samples before, so that it has no crack between two parts. */
function decoder(): OnnxModel {
  return {
    name: 'tone',
    inputs: [value('latent', [1, 'frames', FRAME]), value('played', [1])],
    outputs: [value('audio', [1, 1, 'samples']), value('next_played', [1])],
    constants: [
      number('zero', 0),
      number('one', 1),
      number('samples_per_frame', CLONER_SAMPLES_PER_FRAME),
      number('radians', (2 * Math.PI) / CLONER_SAMPLE_RATE),
      number('loudness', LOUDNESS),
      numbers('frames_at', [1]),
      numbers('sound', [1, 1, -1]),
    ],
    nodes: [
      { ...node('ReduceMean', ['latent'], 'hertz'), attributes: { keepdims: 0 } },
      node('Shape', ['latent'], 'shape'),
      node('Gather', ['shape', 'frames_at'], 'frames'),
      toType('float', 'frames', 'frames_number'),
      node('Mul', ['frames_number', 'samples_per_frame'], 'samples'),
      node('Squeeze', ['samples'], 'count'),
      node('Range', ['zero', 'count', 'one'], 'time'),
      node('Add', ['time', 'played'], 'place'),
      node('Add', ['played', 'samples'], 'next_played'),
      node('Mul', ['place', 'hertz'], 'cycles'),
      node('Mul', ['cycles', 'radians'], 'phase'),
      node('Sin', ['phase'], 'wave'),
      node('Mul', ['wave', 'loudness'], 'line'),
      node('Reshape', ['line', 'sound'], 'audio'),
    ],
  };
}
