/** Parses JSON from outside. Returns undefined if the text is not valid JSON. Pure. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Work in parts, with or without pauses in between: it yields after each part, and its input must not change before it
 * has ended.
 */
export type Parts<Result> = Generator<undefined, Result, undefined>;

/**
 * A part has so many pieces of some microseconds each, such as slots: to ask after each piece whether to pause would
 * cost as much as the piece.
 */
export const PIECES_PER_PART = 20;

/** Does all parts without a pause. */
export function inOneGo<Result>(parts: Parts<Result>): Result {
  for (;;) {
    const part = parts.next();
    if (part.done === true) return part.value;
  }
}
