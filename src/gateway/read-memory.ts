/**
 * The memory of what was read from a client. It is outside of V8's heap, 64 KiB for each read, and V8 goes through all objects of the service whenever 64 MB more of it are in use: left to the collection of
 * garbage, large bodies take more time there than in all of the gateway. So it is freed as soon as the upstream has the bytes (docs/speed.md).
 */
import type { ClientRequest } from './client-exchange.ts';

/** Smaller pieces cost more to free than to collect. */
const FREED_BYTES = 16 * 1024;

/** A class for speed, since there is one per request. */
export class ReadMemory {
  readonly #req: Pick<ClientRequest, 'free'>;
  #pieces: Buffer[] = [];

  constructor(req: Pick<ClientRequest, 'free'>) {
    this.#req = req;
  }

  /** Notes a piece that was read. */
  add(piece: Buffer): void {
    if (piece.length >= FREED_BYTES && this.#req.free !== undefined) this.#pieces.push(piece);
  }

  /** Nothing will read what was noted, and the kernel has all of it that was written anywhere. */
  free(): void {
    if (this.#pieces.length === 0) return;
    for (const piece of this.#pieces) this.#req.free?.(piece);
    this.#pieces = [];
  }

  /** Leaves what was noted to the collection of garbage, because it may still be in use. */
  leave(): void {
    this.#pieces = [];
  }
}
