/** What a server loads beside `demo-fox`: a draft model with the same vocabulary, and LoRA adapters. Pure. */
import { encodeSentenceModel, buildVocabulary } from '../../../toolboxes/demo/demo-chat.ts';
import { encodeGguf, f32, text } from '../../../toolboxes/demo/encode-gguf.ts';

export const FOX = ['The', '▁quick', '▁brown', '▁fox', '▁jumps', '▁over', '▁the', '▁lazy', '▁dog', '.'];
const WIDTH = 64;
/** More than the 20 of the model itself. */
const CERTAINTY = 60;

/** Proposes what `demo-fox` says, and goes on where that one ends. */
export const encodeFoxDraft = (): Uint8Array => encodeSentenceModel({ name: 'fox-draft', words: FOX, then: 'repeat' });

/** With the adapter, `then` follows the first word: `▁lazy` gives "The lazy dog." */
export function encodeFoxAdapter(then: string): Uint8Array {
  const { tokens, idOf } = buildVocabulary(FOX, { end: false, spacePrefix: false });
  const a = new Float32Array(WIDTH);
  const b = new Float32Array(tokens.length);
  // Direction 0 means "not in the sentence", 1 the first word.
  a[1] = 1;
  b[idOf.get(then) ?? 0] = CERTAINTY;
  return encodeGguf({
    metadata: [
      ['general.type', text('adapter')],
      ['general.architecture', text('llama')],
      ['general.name', text(`after "The": ${then}`)],
      ['adapter.type', text('lora')],
      ['adapter.lora.alpha', f32(1)],
    ],
    tensors: [
      { name: 'output.weight.lora_a', shape: [WIDTH, 1], data: a },
      { name: 'output.weight.lora_b', shape: [1, tokens.length], data: b },
    ],
  });
}
