/** The last pieces of an answer, which hold its token counts. */
import { findUsage, type Usage } from './decide/find-usage.ts';

/** The token counts are among the last bytes of an answer. */
const TAIL_BYTES = 4096;

export class AnswerTail {
  #last: Buffer | undefined;
  #beforeLast: Buffer | undefined;

  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#beforeLast = this.#last;
    this.#last = bytes;
  }

  /** Token counts from the last piece, or from the piece before if the last one is only `[DONE]`. */
  usage(): Usage | undefined {
    if (this.#last === undefined) return undefined;
    return findUsage(textOfEnd(this.#last)) ?? (this.#beforeLast === undefined ? undefined : findUsage(textOfEnd(this.#beforeLast)));
  }
}

function textOfEnd(bytes: Buffer): string {
  return bytes.toString('latin1', Math.max(0, bytes.length - TAIL_BYTES));
}
