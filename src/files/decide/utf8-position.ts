/** Finds the first byte that is not valid UTF-8. Pure. */
import { positionOf, type TextPosition } from '../toml/decide/toml-positions.ts';

/** Returns the position of the first byte that is not part of a character, or the end if all bytes are valid. */
export function invalidUtf8Position(bytes: Uint8Array): TextPosition {
  const decode = (part: Uint8Array, stream: boolean) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(part, { stream });
  // Invalid bytes are decoded as the replacement character, so they are encoded as other bytes.
  const encoded = new TextEncoder().encode(decode(bytes, false));
  const changed = bytes.findIndex((byte, index) => byte !== encoded[index]);
  // The bytes before may end with the beginning of a character that is incomplete, which a stream leaves out.
  const valid = decode(changed === -1 ? bytes : bytes.subarray(0, changed), true);
  return positionOf(valid, valid.length);
}
