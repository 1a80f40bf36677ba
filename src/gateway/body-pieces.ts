/**
 * The pieces of a request body in memory. Pieces that arrive are allocated one by one by the system's allocator, which keeps the memory of hundreds of
 * megabytes of them long after they are free. So the pieces of a large body are copied into segments that are mapped from the system and unmapped when they are free.
 */

/** Bodies up to this size, which are nearly all, stay in the pieces in which they arrived, and so does the beginning of a body that flows. */
const COPIED_FROM_BYTES = 1024 * 1024 + 64 * 1024;
/** The last segment of a body is only partly used, and mapping one takes as long as copying a few kilobytes. */
const SEGMENT_BYTES = 1024 * 1024;

/** A class for speed, since there is one per request. */
export class BodyPieces {
  chunks: Buffer[] = [];
  bytes = 0;
  #segment: Buffer | undefined;
  /** Bytes used in the last segment. */
  #used = 0;

  /** Says what became of the chunk. */
  add(chunk: Buffer): 'kept' | 'copied' {
    this.bytes += chunk.length;
    if (this.bytes <= COPIED_FROM_BYTES) {
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

  /** Joins all pieces into one buffer. */
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
