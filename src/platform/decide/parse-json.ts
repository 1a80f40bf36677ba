/** Parses JSON from outside. Returns undefined if the text is not valid JSON. Pure. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Work that can be done in parts, with pauses in between or without. Pure. */

/** Yields after each part. What the work is given must not change before it has ended. */
export type Parts<Result> = Generator<undefined, Result, undefined>;

/** So many pieces of work of some microseconds each, such as slots, make one part: to ask after each piece whether to pause would cost as much as the piece. */
export const PIECES_PER_PART = 20;

/** Does all parts without a pause. */
export function inOneGo<Result>(parts: Parts<Result>): Result {
  for (;;) {
    const part = parts.next();
    if (part.done === true) return part.value;
  }
}
