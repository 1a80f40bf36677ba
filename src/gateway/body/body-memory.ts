/** The memory of request bodies: chunks as they were read (`ReadMemory`), and chunks that are kept (`BodyPieces`). */
import type { ClientRequest } from '../client-exchange.ts';

/** Smaller pieces cost more to free than to collect. */
const FREED_BYTES = 16 * 1024;
/** Smaller bodies stay in the chunks in which they arrived, and so does the beginning of one that flows. */
const COPIED_FROM_BYTES = 1024 * 1024 + 64 * 1024;
/** The last segment of a body is only partly used, and mapping one takes as long as copying a few kilobytes. */
const SEGMENT_BYTES = 1024 * 1024;

/**
 * Frees what was read from a client as soon as the upstream has it. It is outside of V8's heap, and the garbage
 * collector takes more time for it than the gateway for everything else (docs/speed.md).
 */
export class ReadMemory {
  readonly #req: Pick<ClientRequest, 'free'>;
  #pieces: Buffer[] = [];

  constructor(req: Pick<ClientRequest, 'free'>) {
    this.#req = req;
  }

  add(piece: Buffer): void {
    if (piece.length >= FREED_BYTES && this.#req.free !== undefined) this.#pieces.push(piece);
  }

  /** Frees what was noted: nothing will read it, and the kernel has everything that was written. */
  free(): void {
    if (this.#pieces.length === 0) return;
    for (const piece of this.#pieces) this.#req.free?.(piece);
    this.#pieces = [];
  }

  /** Leaves what was noted to the garbage collector, because it may still be in use. */
  leave(): void {
    this.#pieces = [];
  }
}

/**
 * The chunks of a body. The system's allocator keeps the memory of freed chunks for long, so those of a large body are
 * copied into segments that are mapped and unmapped.
 */
export class BodyPieces {
  chunks: Buffer[] = [];
  #bytes = 0;
  #segment: Buffer | undefined;
  #used = 0;

  /** `kept`: the chunk itself is in use from now on. */
  add(chunk: Buffer): 'kept' | 'copied' {
    this.#bytes += chunk.length;
    if (this.#bytes <= COPIED_FROM_BYTES) {
      this.chunks.push(chunk);
      return 'kept';
    }
    let at = 0;
    while (at < chunk.length) {
      const segment = this.#segment ?? this.#newSegment();
      const count = chunk.copy(segment, this.#used, at);
      // The last piece is replaced by a longer view of the same segment.
      if (this.#used > 0) this.chunks.pop();
      this.#used += count;
      at += count;
      this.chunks.push(segment.subarray(0, this.#used));
      if (this.#used === SEGMENT_BYTES) this.#segment = undefined;
    }
    return 'copied';
  }

  join(): void {
    if (this.chunks.length > 1) this.chunks = [Buffer.concat(this.chunks)];
  }

  clear(): void {
    this.chunks = [];
    this.#segment = undefined;
  }

  #newSegment(): Buffer {
    // A buffer that may grow is mapped as a whole, whatever its size.
    const segment = Buffer.from(new ArrayBuffer(SEGMENT_BYTES, { maxByteLength: SEGMENT_BYTES }));
    this.#segment = segment;
    this.#used = 0;
    return segment;
  }
}
