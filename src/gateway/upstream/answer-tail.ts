/** The end of an answer is kept for its token counts. */
import { estimateUsage, findUsage, type Usage } from './decide/judge-answer.ts';

/** The token counts are among the last bytes of an answer. */
const TAIL_BYTES = 4096;
/** The first letter of `event: …`. */
const LETTER_E = 0x65;

/** The last pieces of an answer, which hold its token counts. */
export class AnswerTail {
  #last: Buffer | undefined;
  #beforeLast: Buffer | undefined;
  #begun: Usage | undefined;
  #bytes = 0;

  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    // Only streams of named events count the prompt at their beginning.
    if (this.#last === undefined && bytes[0] === LETTER_E) this.#begun = findUsage(bytes.toString('latin1', 0, TAIL_BYTES));
    this.#beforeLast = this.#last;
    this.#last = bytes;
    this.#bytes += bytes.length;
  }

  /** Counts from the last piece, or the one before if that is only `[DONE]`; else an estimate for a text stream. */
  usage(isTextStream = false): Usage | undefined {
    if (this.#last === undefined) return undefined;
    const last = textOfEnd(this.#last);
    const before = this.#beforeLast === undefined ? '' : textOfEnd(this.#beforeLast);
    const counted = findUsage(last, this.#begun) ?? findUsage(before, this.#begun);
    if (counted !== undefined || !isTextStream) return counted;
    const estimated = estimateUsage(this.#bytes, before + last);
    return estimated && { ...estimated, ...this.#begun, output: estimated.output };
  }
}

const textOfEnd = (bytes: Buffer): string => bytes.toString('latin1', Math.max(0, bytes.length - TAIL_BYTES));
