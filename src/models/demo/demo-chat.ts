/**
 * Generates a chat model that is a table instead of a language model: none of its weights are trained. Attention and feed-forward add
 * nothing, each word of one sentence has its own direction in the embedding, and the output matrix maps each word to the next one. A
 * real inference server therefore answers any prompt with that sentence, at any temperature. Pure.
 */
import { buildVocabulary, END, tokenId, type Vocabulary } from './demo-vocabulary.ts';
import { encodeGguf, f32, filled, text, u32, type GgufTensor } from './encode-gguf.ts';

export interface SentenceModel {
  readonly name: string;
  /** In the notation of the tokenizer, where `▁` is a space. No word may occur twice, because the last word alone is the state. */
  readonly words: readonly string[];
  /** What follows the last word: the end, or the second word again without end. */
  readonly then: 'end' | 'repeat';
  /** Number of layers, each of which takes memory for keys and values and changes nothing. Default 1. */
  readonly layers?: number;
}

const CHAT_TEMPLATE =
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

function tableTensors(model: SentenceModel, vocabulary: Vocabulary): GgufTensor[] {
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
