/** An answer that is kept until it is complete, because it is an error or must be translated. */
import type { ResponseHead } from './upstream/decide/response-head.ts';

/** An upstream's error is a few hundred bytes of JSON; the rest of a longer one is not read. */
const ERROR_BYTES = 64 * 1024;
/** The scores of 100,000 documents; only answers of this kind are translated. */
const TRANSLATED_BYTES = 8 * 1024 * 1024;

export class CollectedAnswer {
  readonly head: ResponseHead;
  readonly isError: boolean;
  readonly #pieces: Buffer[] = [];
  readonly #limitBytes: number;
  #bytes = 0;

  constructor(head: ResponseHead) {
    this.head = head;
    this.isError = head.status >= 300;
    this.#limitBytes = this.isError ? ERROR_BYTES : TRANSLATED_BYTES;
  }

  get isFull(): boolean {
    return this.#bytes >= this.#limitBytes;
  }

  add(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
  }

  text(): string {
    return Buffer.concat(this.#pieces).toString('utf8', 0, Math.min(this.#bytes, this.#limitBytes));
  }
}
