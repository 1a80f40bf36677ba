/**
 * Generates a chat model that is a table instead of a language model: none of its weights are trained. Attention and feed-forward add
 * nothing, each word of one sentence has its own direction in the embedding, and the output matrix maps each word to the next one. A
 * real inference server therefore answers any prompt with that sentence, at any temperature. Pure.
 */
import { encodeGguf, f32, filled, text, u32, bool, f32s, i32s, texts, type GgufTensor, type GgufValue } from './encode-gguf.ts';

interface SentenceModel {
  readonly name: string;
  /** In the notation of the tokenizer, where `▁` is a space. No word may occur twice, because the last word alone is the state. */
  readonly words: readonly string[];
  /** What follows the last word: the end, or the second word again without end. */
  readonly then: 'end' | 'repeat';
  /** Number of layers, each of which takes memory for keys and values and changes nothing. Default 1. */
  readonly layers?: number;
}

export const CHAT_TEMPLATE =
  '{% for message in messages %}<|{{ message.role }}|>{{ message.content }}</s>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}';

const CONTEXT = 4096;
const WIDTH = 64;
const HEADS = 2;
const FEED_FORWARD = 64;
/** With an RMS-normalised state of √64, the logit of the next word is 160 above all others, so even a temperature of 10 has no effect. */
const CERTAINTY = 20;

/** Throws if the sentence repeats a word or has more words than the embedding is wide. */
export function encodeSentenceModel(model: SentenceModel): Uint8Array {
  const { layers = 1 } = model;
  const vocabulary = buildVocabulary(model.words, { end: false, spacePrefix: false });
  return encodeGguf({
    metadata: [
      ['general.architecture', text('llama')],
      ['general.name', text(model.name)],
      ['general.description', text('A demonstration: a table that says one sentence. It contains no trained weights')],
      ['general.file_type', u32(0)],
      ['llama.context_length', u32(CONTEXT)],
      ['llama.embedding_length', u32(WIDTH)],
      ['llama.block_count', u32(layers)],
      ['llama.feed_forward_length', u32(FEED_FORWARD)],
      ['llama.attention.head_count', u32(HEADS)],
      ['llama.attention.head_count_kv', u32(HEADS)],
      ['llama.attention.layer_norm_rms_epsilon', f32(1e-5)],
      ['llama.rope.dimension_count', u32(WIDTH / HEADS)],
      ['llama.vocab_size', u32(vocabulary.tokens.length)],
      ...vocabulary.metadata,
      ['tokenizer.chat_template', text(CHAT_TEMPLATE)],
    ],
    tensors: [...tableTensors(model, vocabulary), ...Array.from({ length: layers }, (_, layer) => emptyBlock(layer)).flat()],
  });
}

/** Joins words into the sentence that the model generates. */
export function sentenceOf(words: readonly string[]): string {
  return words.join('').replaceAll('▁', ' ');
}

export function tableTensors(model: SentenceModel, vocabulary: Vocabulary): GgufTensor[] {
  const { words } = model;
  if (new Set(words).size !== words.length) throw new Error(`The sentence of "${model.name}" repeats a word`);
  if (words.length >= WIDTH) throw new Error(`The sentence of "${model.name}" has more than ${WIDTH - 1} words`);
  const ids = words.map((word) => tokenId(vocabulary, word));
  const embedding = new Float32Array(vocabulary.tokens.length * WIDTH);
  const output = new Float32Array(vocabulary.tokens.length * WIDTH);
  // Direction 0 means "not in the sentence"; the first word follows it.
  for (let id = 0; id < vocabulary.tokens.length; id += 1) embedding[id * WIDTH + ids.indexOf(id) + 1] = 1;
  const follow = (state: number, id: number): void => {
    output[id * WIDTH + state] = CERTAINTY;
  };
  const [first = END, second = END] = ids;
  follow(0, first);
  ids.forEach((_, position) => follow(position + 1, ids[position + 1] ?? (model.then === 'repeat' ? second : END)));
  return [
    { name: 'token_embd.weight', shape: [WIDTH, vocabulary.tokens.length], data: embedding },
    filled('output_norm.weight', [WIDTH], 1),
    { name: 'output.weight', shape: [WIDTH, vocabulary.tokens.length], data: output },
  ];
}

function emptyBlock(layer: number): GgufTensor[] {
  return [
    filled(`blk.${layer}.attn_norm.weight`, [WIDTH], 1),
    filled(`blk.${layer}.attn_q.weight`, [WIDTH, WIDTH], 0),
    filled(`blk.${layer}.attn_k.weight`, [WIDTH, WIDTH], 0),
    filled(`blk.${layer}.attn_v.weight`, [WIDTH, WIDTH], 0),
    filled(`blk.${layer}.attn_output.weight`, [WIDTH, WIDTH], 0),
    filled(`blk.${layer}.ffn_norm.weight`, [WIDTH], 1),
    filled(`blk.${layer}.ffn_gate.weight`, [WIDTH, FEED_FORWARD], 0),
    filled(`blk.${layer}.ffn_up.weight`, [WIDTH, FEED_FORWARD], 0),
    filled(`blk.${layer}.ffn_down.weight`, [FEED_FORWARD, WIDTH], 0),
  ];
}

/**
 * The vocabulary of the generated models, for SentencePiece: a token for each byte and each common character, and whole words.
 * SentencePiece joins two neighbouring tokens at a time, so each prefix of a word has to be a token too. Pure.
 */

export interface Vocabulary {
  readonly tokens: readonly string[];
  readonly idOf: ReadonlyMap<string, number>;
  /** The `tokenizer.*` keys. */
  readonly metadata: readonly (readonly [string, GgufValue])[];
}

/** Ids of the special tokens. */
const UNKNOWN = 0;
const BEGIN = 1;
const END = 2;

const SPECIAL = ['<unk>', '<s>', '</s>', '<|system|>', '<|user|>', '<|assistant|>', '<|tool|>'];
const CHARACTERS = '▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?\'"()-/';
/** Types of `tokenizer.ggml.token_type`. */
const TYPE = { normal: 1, unknown: 2, control: 3, byte: 6 } as const;

/** `words` are in the notation of the tokenizer, where `▁` is a space. */
export function buildVocabulary(words: readonly string[], options: { readonly end: boolean; readonly spacePrefix: boolean }): Vocabulary {
  const tokens: string[] = [];
  const types: number[] = [];
  const scores: number[] = [];
  const idOf = new Map<string, number>();
  const add = (token: string, type: number, score: number): void => {
    if (idOf.has(token)) return;
    idOf.set(token, tokens.length);
    tokens.push(token);
    types.push(type);
    scores.push(score);
  };
  SPECIAL.forEach((token, id) => add(token, id === UNKNOWN ? TYPE.unknown : TYPE.control, 0));
  for (let byte = 0; byte < 256; byte += 1) add(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`, TYPE.byte, 0);
  for (const character of CHARACTERS) add(character, TYPE.normal, -1000);
  for (const word of words) {
    const characters = Array.from(word);
    // Longer tokens score higher, so that the tokenizer completes a word that it has started.
    for (let length = 2; length <= characters.length; length += 1) add(characters.slice(0, length).join(''), TYPE.normal, length - 100);
  }
  return {
    tokens,
    idOf,
    metadata: [
      ['tokenizer.ggml.model', text('llama')],
      ['tokenizer.ggml.pre', text('default')],
      ['tokenizer.ggml.tokens', texts(tokens)],
      ['tokenizer.ggml.scores', f32s(scores)],
      ['tokenizer.ggml.token_type', i32s(types)],
      ['tokenizer.ggml.bos_token_id', u32(BEGIN)],
      ['tokenizer.ggml.eos_token_id', u32(END)],
      ['tokenizer.ggml.unknown_token_id', u32(UNKNOWN)],
      ['tokenizer.ggml.add_bos_token', bool(true)],
      ['tokenizer.ggml.add_eos_token', bool(options.end)],
      ['tokenizer.ggml.add_space_prefix', bool(options.spacePrefix)],
    ],
  };
}

function tokenId(vocabulary: Vocabulary, token: string): number {
  const id = vocabulary.idOf.get(token);
  if (id === undefined) throw new Error(`The vocabulary has no token "${token}"`);
  return id;
}
