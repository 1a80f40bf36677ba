/**
 * A Whisper in the format of whisper.cpp without trained weights: whatever it hears, it writes "Hello world." for every 30 seconds. The position of a token alone decides what
 * comes next. Layout: https://github.com/ggml-org/whisper.cpp/blob/master/models/convert-pt-to-ggml.py
 */

export const TINY_TRANSCRIPT = 'Hello world.';

const MAGIC = 0x67676d6c;
const STATE = 64;
const AUDIO_CONTEXT = 1500;
const TEXT_CONTEXT = 448;
const MELS = 80;
const FREQUENCIES = 201;
const TEXT_LAYERS = 1;
/** The program takes the number of these for the size of a model, and one for "tiny". */
const AUDIO_LAYERS = 4;
const ENGLISH_VOCABULARY = 51_864;
const TIME_OF_A_SECOND = 50;
const WORDS = [' Hello', ' world', '.'];
const TOKENS = [' ', '!', ...WORDS];

export interface TinyWhisperOptions {
  /** Only its head says so. Default: English only. */
  readonly multilingual?: boolean;
}

export function encodeTinyWhisper({ multilingual = false }: TinyWhisperOptions = {}): Uint8Array {
  const vocabulary = ENGLISH_VOCABULARY + (multilingual ? 1 : 0);
  const shape = [
    vocabulary,
    AUDIO_CONTEXT,
    STATE,
    1,
    AUDIO_LAYERS,
    TEXT_CONTEXT,
    STATE,
    1,
    multilingual ? AUDIO_LAYERS : TEXT_LAYERS,
    MELS,
    0,
  ];
  const filters = new Float32Array(MELS * FREQUENCIES).fill(1 / FREQUENCIES);
  const tokens = TOKENS.map((token) => Buffer.concat([integers(token.length), Buffer.from(token)]));
  const head = [integers(MAGIC, ...shape), integers(MELS, FREQUENCIES), Buffer.from(filters.buffer), integers(TOKENS.length), ...tokens];
  return Buffer.concat([...head, ...tensors(vocabulary).flatMap(encodeTensor)]);
}

interface Tensor {
  readonly name: string;
  /** The innermost length last. */
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

const tensor = (name: string, shape: readonly number[], value = 0): Tensor => ({
  name,
  shape,
  values: new Float32Array(shape.reduce((product, length) => product * length, 1)).fill(value),
});
const norm = (name: string): readonly Tensor[] => [tensor(`${name}.weight`, [STATE], 1), tensor(`${name}.bias`, [STATE])];
const linear = (name: string, to: number, from: number): readonly Tensor[] => [
  tensor(`${name}.weight`, [to, from]),
  tensor(`${name}.bias`, [to]),
];

function attention(name: string): readonly Tensor[] {
  const parts = ['query', 'value', 'out'].flatMap((part) => linear(`${name}.${part}`, STATE, STATE));
  return [...parts, tensor(`${name}.key.weight`, [STATE, STATE])];
}

function block(name: string, crossed: boolean): readonly Tensor[] {
  return [
    ...norm(`${name}.mlp_ln`),
    ...linear(`${name}.mlp.0`, 4 * STATE, STATE),
    ...linear(`${name}.mlp.2`, STATE, 4 * STATE),
    ...norm(`${name}.attn_ln`),
    ...attention(`${name}.attn`),
    ...(crossed ? [...norm(`${name}.cross_attn_ln`), ...attention(`${name}.cross_attn`)] : []),
  ];
}

function tensors(vocabulary: number): readonly Tensor[] {
  const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);
  return [
    tensor('encoder.positional_embedding', [AUDIO_CONTEXT, STATE]),
    tensor('encoder.conv1.weight', [STATE, MELS, 3]),
    tensor('encoder.conv1.bias', [STATE, 1]),
    tensor('encoder.conv2.weight', [STATE, STATE, 3]),
    tensor('encoder.conv2.bias', [STATE, 1]),
    ...norm('encoder.ln_post'),
    ...range(AUDIO_LAYERS).flatMap((layer) => block(`encoder.blocks.${layer}`, false)),
    ...decoderTables(vocabulary),
    ...norm('decoder.ln'),
    ...range(TEXT_LAYERS).flatMap((layer) => block(`decoder.blocks.${layer}`, true)),
  ];
}

/** Each token that is ever written has a direction of its own, and each position points in the direction of the token that follows it. */
function decoderTables(vocabulary: number): readonly Tensor[] {
  // The numbers of the marks of the program for a vocabulary in English: the end, and the first time.
  const end = 50_256;
  const begin = 50_363;
  const chain = [begin, ...WORDS.map((word) => TOKENS.indexOf(word)), begin + TIME_OF_A_SECOND];
  const directions = new Map([end, ...chain].map((id, index) => [id, directionOf(index)]));
  const embedding = tensor('decoder.token_embedding.weight', [vocabulary, STATE]);
  for (const [id, direction] of directions) add(embedding.values, id * STATE, direction, 5);
  const positions = tensor('decoder.positional_embedding', [TEXT_CONTEXT, STATE]);
  const words = 1 + WORDS.length;
  for (let at = 0; at < TEXT_CONTEXT; at += 1) {
    const next = chain[at] ?? end;
    add(positions.values, at * STATE, directions.get(next) ?? directionOf(0), 50);
    // A time may end the text: the end is almost as likely.
    if (next !== end && (at === 0 || at >= words)) add(positions.values, at * STATE, directions.get(end) ?? directionOf(0), 30);
  }
  return [positions, embedding];
}

/** Directions that are at right angles to each other, and whose numbers have the sum zero, so that normalisation leaves them as they are. */
function directionOf(index: number): Float32Array {
  const direction = new Float32Array(STATE);
  direction[2 * index] = Math.SQRT1_2;
  direction[2 * index + 1] = -Math.SQRT1_2;
  return direction;
}

function add(values: Float32Array, from: number, direction: Float32Array, factor: number): void {
  direction.forEach((value, index) => {
    values[from + index] = (values[from + index] ?? 0) + factor * value;
  });
}

function encodeTensor({ name, shape, values }: Tensor): readonly Buffer[] {
  return [integers(shape.length, name.length, 0, ...shape.toReversed()), Buffer.from(name), Buffer.from(values.buffer)];
}

function integers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, index) => bytes.writeInt32LE(value, 4 * index));
  return bytes;
}
