/** Where bytes stop being UTF-8. */
import { positionOf, type TextPosition } from './toml-positions.ts';

const REPLACEMENT = '\u{FFFD}';
const REPLACEMENT_BYTES = [0xef, 0xbf, 0xbd];

/** The position of the first byte that belongs to no character; the end when all do. Pure. */
export function invalidUtf8Position(bytes: Uint8Array): TextPosition {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  const encoder = new TextEncoder();
  let offset = 0;
  let from = 0;
  for (let at = text.indexOf(REPLACEMENT); at !== -1; at = text.indexOf(REPLACEMENT, from)) {
    offset += encoder.encode(text.slice(from, at)).length;
    // The sign itself may stand in a text.
    if (!REPLACEMENT_BYTES.every((byte, index) => bytes[offset + index] === byte)) return positionOf(text, at);
    offset += REPLACEMENT_BYTES.length;
    from = at + 1;
  }
  return positionOf(text, text.length);
}
