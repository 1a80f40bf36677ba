/**
 * Models of the BERT family made by hand: an embedding model and a reranker. No weight of them is trained: each token has a
 * pseudo-random direction that its number decides, attention and feed-forward add nothing, and the mean over the tokens is the answer.
 * So equal texts are equal, texts that share words are near each other, and order counts a little. Pure; the same bytes each time.
 */
import { buildVocabulary, type Vocabulary } from './demo-vocabulary.ts';
import { bool, encodeGguf, f32, text, texts, u32, type GgufTensor } from './gguf-writer.ts';

export interface EmbedderModel {
  readonly name: string;
  /** A classifier head over the first token makes it a reranker. */
  readonly head: 'mean' | 'rank';
}

const CONTEXT = 512;
const WIDTH = 64;
const HEADS = 2;
const FEED_FORWARD = 64;
const POOLING = { mean: 1, rank: 4 } as const;
/** Small beside the words, so that the same words in another order are near, not equal. */
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
      // between query and document, as the tokenizers of real rerankers have it
      ['tokenizer.ggml.add_sep_token', bool(true)],
      ['tokenizer.ggml.seperator_token_id', u32(2)],
      ['tokenizer.ggml.padding_token_id', u32(0)],
    ],
    tensors: [...inputTensors(vocabulary), ...block(model), ...(model.head === 'rank' ? classifier() : [])],
  });
}

function inputTensors(vocabulary: Vocabulary): GgufTensor[] {
  return [
    random('token_embd.weight', WIDTH, vocabulary.tokens.length, 1, 11),
    { name: 'token_types.weight', shape: [WIDTH, 1], data: new Float32Array(WIDTH) },
    random('position_embd.weight', WIDTH, CONTEXT, POSITION_WEIGHT, 12),
    ...norm('token_embd_norm'),
  ];
}

/** A reranker's attention lets the first token, which its head reads, see the words. */
function block(model: EmbedderModel): GgufTensor[] {
  const linear = (name: string, columns: number, rows: number, scale: number, seed: number): GgufTensor[] => [
    random(`blk.0.${name}.weight`, columns, rows, scale, seed),
    { name: `blk.0.${name}.bias`, shape: [rows], data: new Float32Array(rows) },
  ];
  const mixing = model.head === 'rank' ? 0.4 : 0;
  return [
    ...linear('attn_q', WIDTH, WIDTH, mixing, 21),
    ...linear('attn_k', WIDTH, WIDTH, mixing, 22),
    ...linear('attn_v', WIDTH, WIDTH, mixing, 23),
    ...linear('attn_output', WIDTH, WIDTH, mixing, 24),
    ...norm('blk.0.attn_output_norm'),
    ...linear('ffn_up', WIDTH, FEED_FORWARD, 0, 25),
    ...linear('ffn_down', FEED_FORWARD, WIDTH, 0, 26),
    ...norm('blk.0.layer_output_norm'),
  ];
}

function classifier(): GgufTensor[] {
  return [
    random('cls.weight', WIDTH, WIDTH, 0.3, 31),
    { name: 'cls.bias', shape: [WIDTH], data: new Float32Array(WIDTH) },
    random('cls.output.weight', WIDTH, 1, 0.5, 32),
    { name: 'cls.output.bias', shape: [1], data: new Float32Array(1) },
  ];
}

function norm(name: string): GgufTensor[] {
  return [
    { name: `${name}.weight`, shape: [WIDTH], data: new Float32Array(WIDTH).fill(1) },
    { name: `${name}.bias`, shape: [WIDTH], data: new Float32Array(WIDTH) },
  ];
}

/** Evenly spread over ±`scale` by a linear congruential generator: whole numbers only, so that every machine makes the same bytes. */
function random(name: string, columns: number, rows: number, scale: number, seed: number): GgufTensor {
  let state = Math.imul(seed, 2_654_435_761) >>> 0;
  const data = Float32Array.from({ length: columns * rows }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (((state >>> 8) % 2001) / 1000 - 1) * scale;
  });
  return { name, shape: [columns, rows], data };
}
