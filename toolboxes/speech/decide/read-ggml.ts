/**
 * Reads the head of a Whisper in one file, as whisper.cpp has them: a magic number, then eleven numbers that describe the network.
 * https://github.com/ggml-org/whisper.cpp/blob/master/models/convert-pt-to-ggml.py. The service uses it, too. Pure.
 */

export interface GgmlWhisper {
  /** Knows other languages than English. */
  readonly multilingual: boolean;
  /** Was trained to translate. Models with a shortened decoder, such as "turbo", were not: they write down what is said in its own language. */
  readonly translates: boolean;
}

export type GgmlHead = { readonly ok: true; readonly model: GgmlWhisper } | { readonly ok: false; readonly why: string };

export const GGML_HEAD_BYTES = 48;
const MAGIC = 0x67676d6c;
const TEXT_LAYERS_AT = 9 * 4;
const MELS_AT = 10 * 4;
const AUDIO_LAYERS_AT = 5 * 4;
const VOCABULARY_AT = 4;
/** The vocabulary for English has one entry less. */
const MULTILINGUAL_VOCABULARY = 51_865;
const ENGLISH_VOCABULARY = 51_864;
const MOST_VOCABULARY = 60_000;
const MOST_LAYERS = 256;

/** `head`: the first bytes of the file, which has `size` bytes. */
export function readGgmlHead(head: Uint8Array, size: number): GgmlHead {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (view.byteLength < 4 || view.getUint32(0, true) !== MAGIC) return { ok: false, why: 'it is not a model for whisper.cpp' };
  if (view.byteLength < GGML_HEAD_BYTES || size <= GGML_HEAD_BYTES) return { ok: false, why: 'it is cut off' };
  const vocabulary = view.getInt32(VOCABULARY_AT, true);
  const audioLayers = view.getInt32(AUDIO_LAYERS_AT, true);
  const textLayers = view.getInt32(TEXT_LAYERS_AT, true);
  const mels = view.getInt32(MELS_AT, true);
  const sound =
    vocabulary >= ENGLISH_VOCABULARY &&
    vocabulary <= MOST_VOCABULARY &&
    [audioLayers, textLayers].every((layers) => layers > 0 && layers <= MOST_LAYERS) &&
    (mels === 80 || mels === 128);
  if (!sound) return { ok: false, why: 'it is not a Whisper, or it is damaged' };
  const multilingual = vocabulary >= MULTILINGUAL_VOCABULARY;
  return { ok: true, model: { multilingual, translates: multilingual && textLayers === audioLayers } };
}
