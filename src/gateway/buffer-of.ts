/** Bytes as Node's streams take them: those of a text in UTF-8, or the same memory as an array of bytes, which must not change any more. */
export function bufferOf(bytes: string | Uint8Array): Buffer {
  return typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
