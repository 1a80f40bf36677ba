/**
 * Where connections to upstreams read into. Most answers, and the pieces of streams, are short: they are read into one buffer that all connections share, and copied out of it, which costs less than the
 * 64 KiB that Node allocates for each read otherwise. Once a connection has read a large piece, its next ones are read into buffers of their own and passed on as they are.
 */
import type { OnReadOpts } from 'node:net';

const BUFFER_BYTES = 64 * 1024;
/** Up to this size, copying costs less than a buffer of its own. */
const COPIED_BYTES = 16 * 1024;

/** A read fills it and calls back at once, so no two connections use it at the same time. */
const shared = Buffer.allocUnsafeSlow(BUFFER_BYTES);

/** The option `onread` of one connection. `onData` gets pieces that nothing else uses. */
export function readInto(onData: (piece: Buffer) => void): OnReadOpts {
  let isLarge = false;
  return {
    buffer: () => (isLarge ? Buffer.allocUnsafeSlow(BUFFER_BYTES) : shared),
    callback(bytes, buffer) {
      isLarge = bytes > COPIED_BYTES;
      const read = Buffer.from(buffer.buffer, buffer.byteOffset, bytes);
      onData(buffer === shared ? Buffer.from(read) : read);
      return true;
    },
  };
}
