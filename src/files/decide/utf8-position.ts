/** Finds the first byte that is not valid UTF-8. Pure. */
import { positionOf, type TextPosition } from '../toml/decide/toml-positions.ts';

const REPLACEMENT = '\u{FFFD}';
const REPLACEMENT_BYTES = [0xef, 0xbf, 0xbd];

/** Returns the position of the first byte that is not part of a character, or the end if all bytes are valid. */
export function invalidUtf8Position(bytes: Uint8Array): TextPosition {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  const encoder = new TextEncoder();
  let offset = 0;
  let from = 0;
  for (let at = text.indexOf(REPLACEMENT); at !== -1; at = text.indexOf(REPLACEMENT, from)) {
    offset += encoder.encode(text.slice(from, at)).length;
    // The text may contain the replacement character itself.
    if (!REPLACEMENT_BYTES.every((byte, index) => bytes[offset + index] === byte)) return positionOf(text, at);
    offset += REPLACEMENT_BYTES.length;
    from = at + 1;
  }
  return positionOf(text, text.length);
}
