/**
 * Memory that the sockets of one download read into again and again. Without it, each read of a socket allocates 64 KiB: receiving then takes twice the processor time, and much more memory until the
 * garbage is collected. A socket fills one slab after another; a slab is free again when what it held was written.
 *
 * A body must be read to its end, and written, before the next request begins: only then is the order of slabs the order in which they are written.
 */
import type { Socket } from 'node:net';
import { buildConnector } from 'undici';

export interface ReadMemory {
  /** Opens connections for a dispatcher that has one request at a time. */
  readonly connect: buildConnector.connector;
  /** Says that a piece of a body was written, and everything that was received before it. Pieces in other memory are ignored. */
  release(piece: Buffer): void;
}

const SLAB_BYTES = 512 * 1024;
/** A connection needs up to ten: two are being written, two collect the next write, some wait, and one is being filled. What is beyond this is left to the garbage collector. */
const MAX_SLABS = 16;
/** With less room than this in a slab, the next one begins: reads of a few bytes would take longer. */
const LEAST_READ_BYTES = 64 * 1024;

export function createReadMemory(): ReadMemory {
  const owners = new WeakMap<ArrayBufferLike, Slabs>();
  return {
    connect(options, callback) {
      const slabs = createSlabs((slab) => owners.set(slab.buffer, slabs));
      const onread = {
        buffer: () => slabs.room(),
        /** Called as a method of the socket. False makes the socket wait until what it has is read. */
        callback(this: Socket, bytes: number): boolean {
          return this.push(slabs.take(bytes));
        },
      };
      // With HTTP/2, all requests of a download would share one connection.
      buildConnector({ allowH2: false, onread })(options, callback);
    },
    release: (piece) => owners.get(piece.buffer)?.release(piece.buffer),
  };
}

interface Slabs {
  /** The memory for the next read. Asking again without having taken anything returns the same. */
  room(): Buffer;
  /** Returns what the last read brought. */
  take(bytes: number): Buffer;
  release(memory: ArrayBufferLike): void;
}

function createSlabs(onNew: (slab: Buffer) => void): Slabs {
  /** In the order in which they were filled; the last one is being filled. */
  const inUse: Buffer[] = [];
  const free: Buffer[] = [];
  let filled = SLAB_BYTES;
  const current = (): Buffer => inUse.at(-1) ?? begin();
  const begin = (): Buffer => {
    const slab = free.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES);
    onNew(slab);
    inUse.push(slab);
    if (inUse.length > MAX_SLABS) inUse.shift();
    filled = 0;
    return slab;
  };
  return {
    room() {
      if (SLAB_BYTES - filled < LEAST_READ_BYTES) begin();
      return current().subarray(filled);
    },
    take(bytes) {
      const piece = current().subarray(filled, filled + bytes);
      filled += bytes;
      return piece;
    },
    release(memory) {
      // A slab that is free already, or left to the garbage collector, says nothing about the others.
      if (!inUse.some(({ buffer }) => buffer === memory)) return;
      while (inUse[0] !== undefined && inUse[0].buffer !== memory) free.push(...inUse.splice(0, 1));
    },
  };
}
