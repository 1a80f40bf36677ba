/**
 * Frees the memory of a large buffer at once, instead of with the next collection of garbage. It is outside of V8's heap, and V8 goes through all objects of the server whenever some megabytes
 * more of it are in use, which takes longer than to prepare a short recording for the engine. All views of it are empty afterwards. Does nothing for memory that the buffer shares with others.
 */
export function freeMemory({ buffer, byteLength }: ArrayBufferView): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength && !buffer.detached) buffer.transfer(0);
}
