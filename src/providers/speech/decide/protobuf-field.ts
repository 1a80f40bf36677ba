/** Reads the head of one field in the wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/). Pure. */

export interface FieldHead {
  readonly field: number;
  /** Offset of the value in the bytes. */
  readonly valueAt: number;
  /** Length of the value, which may reach beyond the bytes. */
  readonly valueBytes: number;
  /** The value is a text, bytes or a message. */
  readonly hasLength: boolean;
}

/** The longest number takes 10 bytes, so a head takes at most two of them. */
export const LONGEST_HEAD_BYTES = 20;
const LONGEST_NUMBER_BYTES = 10;
const FIXED_BYTES: Readonly<Partial<Record<number, number>>> = { 1: 8, 5: 4 };

/** Undefined if there is none: the bytes end too early, or are something else. */
export function readFieldHead(bytes: Uint8Array, at: number): FieldHead | undefined {
  const tag = readNumber(bytes, at);
  if (tag === undefined || tag.value < 8) return undefined;
  const wireType = tag.value % 8;
  const field = Math.floor(tag.value / 8);
  const fixed = FIXED_BYTES[wireType];
  if (fixed !== undefined) return { field, valueAt: tag.end, valueBytes: fixed, hasLength: false };
  const next = wireType === 0 || wireType === 2 ? readNumber(bytes, tag.end) : undefined;
  if (next === undefined) return undefined;
  if (wireType === 0) return { field, valueAt: tag.end, valueBytes: next.end - tag.end, hasLength: false };
  return { field, valueAt: next.end, valueBytes: next.value, hasLength: true };
}

/** Exact up to 2^53, which no length of a file reaches. */
function readNumber(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  for (let index = 0; index < LONGEST_NUMBER_BYTES; index += 1) {
    const byte = bytes[at + index];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { value, end: at + index + 1 };
  }
  return undefined;
}

/** Returns the texts of a message by the numbers of their fields; the last one of each counts. */
export function readTexts(message: Uint8Array): ReadonlyMap<number, string> {
  const texts = new Map<number, string>();
  for (let at = 0; at < message.length;) {
    const head = readFieldHead(message, at);
    if (head === undefined || head.valueAt + head.valueBytes > message.length) return texts;
    at = head.valueAt + head.valueBytes;
    if (head.hasLength) texts.set(head.field, new TextDecoder().decode(message.subarray(head.valueAt, at)));
  }
  return texts;
}
