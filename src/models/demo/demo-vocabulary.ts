/**
 * The vocabulary of the generated models, for SentencePiece: a token for each byte and each common character, and whole words.
 * SentencePiece joins two neighbouring tokens at a time, so each prefix of a word has to be a token too. Pure.
 */
import { bool, f32s, i32s, text, texts, u32, type GgufValue } from './encode-gguf.ts';

export interface Vocabulary {
  readonly tokens: readonly string[];
  readonly idOf: ReadonlyMap<string, number>;
  /** The `tokenizer.*` keys. */
  readonly metadata: readonly (readonly [string, GgufValue])[];
}

/** Ids of the special tokens. */
const UNKNOWN = 0;
const BEGIN = 1;
export const END = 2;

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

export function tokenId(vocabulary: Vocabulary, token: string): number {
  const id = vocabulary.idOf.get(token);
  if (id === undefined) throw new Error(`The vocabulary has no token "${token}"`);
  return id;
}
