/**
 * Generates models of the BERT family without trained weights: an embedding model and a reranker. Each token has a pseudo-random
 * direction that depends on its number, attention and feed-forward add nothing, and the embedding is the mean over the tokens. Equal
 * texts get equal embeddings, texts that share words get similar ones, and the order matters a little. Pure.
 */
import { buildVocabulary, type Vocabulary } from './demo-chat.ts';
import { bool, encodeGguf, f32, filled, text, texts, u32, type GgufTensor } from './encode-gguf.ts';

export interface EmbedderModel {
  readonly name: string;
  /** `rank` adds a classifier head over the first token, which makes the model a reranker. */
  readonly head: 'mean' | 'rank';
}

type Shape = readonly [columns: number, rows: number];

interface Spread {
  readonly scale: number;
  readonly seed: number;
}

const CONTEXT = 512;
const WIDTH = 64;
const HEADS = 2;
const FEED_FORWARD = 64;
const POOLING = { mean: 1, rank: 4 } as const;
/** Small compared with the words, so that the same words in another order are similar but not equal. */
const POSITION_WEIGHT = 0.15;

const WORDS =
  `the of and to in is that it for was on are as with his they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know get through back much before also around another came come work three word must because does part even place well such here take why help put different away again off went old number great tell men say small every found still between name should home big give air line set own under read last never us left end along while might next sound below saw something thought both few those always looked show large often together asked house don't world going want school important until form food keep children feet land side without boy once animals life enough took sometimes four head above kind began almost live page got earth need far hand high year mother light parts country father let night following picture being study second eyes soon times story boys since white days ever paper hard near sentence better best across during today others however sure means knew try told young miles sun ways thing whole hear example heard several change answer room sea against top turned learn point city play toward five using himself usually money cat dog fox owl model token server gateway slot`
    .split(' ')
    .map((word) => `▁${word}`);

export function encodeEmbedder(model: EmbedderModel): Uint8Array {
  const vocabulary = buildVocabulary(WORDS, { end: true, spacePrefix: true });
  return encodeGguf({
    metadata: [
      ['general.architecture', text('bert')],
      ['general.name', text(model.name)],
      ['general.description', text('A demonstration: a table of word directions. It contains no trained weights')],
      ['general.file_type', u32(0)],
      ['bert.context_length', u32(CONTEXT)],
      ['bert.embedding_length', u32(WIDTH)],
      ['bert.block_count', u32(1)],
      ['bert.feed_forward_length', u32(FEED_FORWARD)],
      ['bert.attention.head_count', u32(HEADS)],
      ['bert.attention.layer_norm_epsilon', f32(1e-12)],
      ['bert.attention.causal', bool(false)],
      ['bert.pooling_type', u32(POOLING[model.head])],
      ['bert.vocab_size', u32(vocabulary.tokens.length)],
      ...(model.head === 'rank' ? [['bert.classifier.output_labels', texts(['relevance'])] as const] : []),
      ...vocabulary.metadata,
      ['tokenizer.ggml.token_type_count', u32(1)],
      // Between query and document, as in the tokenizers of real rerankers.
      ['tokenizer.ggml.add_sep_token', bool(true)],
      ['tokenizer.ggml.seperator_token_id', u32(2)],
      ['tokenizer.ggml.padding_token_id', u32(0)],
    ],
    tensors: [...inputTensors(vocabulary), ...block(model), ...(model.head === 'rank' ? classifier() : [])],
  });
}

function inputTensors(vocabulary: Vocabulary): GgufTensor[] {
  return [
    random('token_embd.weight', [WIDTH, vocabulary.tokens.length], { scale: 1, seed: 11 }),
    filled('token_types.weight', [WIDTH, 1], 0),
    random('position_embd.weight', [WIDTH, CONTEXT], { scale: POSITION_WEIGHT, seed: 12 }),
    ...norm('token_embd_norm'),
  ];
}

/** The head of a reranker reads only the first token, so its attention has to mix in the other tokens. */
function block(model: EmbedderModel): GgufTensor[] {
  const linear = (name: string, shape: Shape, spread: Spread): GgufTensor[] => [
    random(`blk.0.${name}.weight`, shape, spread),
    filled(`blk.0.${name}.bias`, [shape[1]], 0),
  ];
  const attention = (name: string, seed: number) => linear(name, [WIDTH, WIDTH], { scale: model.head === 'rank' ? 0.4 : 0, seed });
  return [
    ...attention('attn_q', 21),
    ...attention('attn_k', 22),
    ...attention('attn_v', 23),
    ...attention('attn_output', 24),
    ...norm('blk.0.attn_output_norm'),
    ...linear('ffn_up', [WIDTH, FEED_FORWARD], { scale: 0, seed: 25 }),
    ...linear('ffn_down', [FEED_FORWARD, WIDTH], { scale: 0, seed: 26 }),
    ...norm('blk.0.layer_output_norm'),
  ];
}

function classifier(): GgufTensor[] {
  return [
    random('cls.weight', [WIDTH, WIDTH], { scale: 0.3, seed: 31 }),
    filled('cls.bias', [WIDTH], 0),
    random('cls.output.weight', [WIDTH, 1], { scale: 0.5, seed: 32 }),
    filled('cls.output.bias', [1], 0),
  ];
}

function norm(name: string): GgufTensor[] {
  return [filled(`${name}.weight`, [WIDTH], 1), filled(`${name}.bias`, [WIDTH], 0)];
}

/** Values evenly spread over ±`scale` by a linear congruential generator on integers, which gives the same bytes on every machine. */
function random(name: string, shape: Shape, { scale, seed }: Spread): GgufTensor {
  let state = Math.imul(seed, 2_654_435_761) >>> 0;
  const data = Float32Array.from({ length: shape[0] * shape[1] }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (((state >>> 8) % 2001) / 1000 - 1) * scale;
  });
  return { name, shape, data };
}
