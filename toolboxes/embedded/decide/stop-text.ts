/** Finds stop strings in a text that comes in pieces, holding back no more than what may become one. Pure but for its own state. */

export interface StopText {
  /** What may be sent now, and whether a stop string has come: nothing after it is ever sent. */
  push(piece: string): { readonly text: string; readonly stopped: boolean };
  /** What was held back, when the text ends without a stop string. */
  end(): string;
}

export function createStopText(stops: readonly string[]): StopText {
  let held = '';
  return {
    push(piece) {
      held += piece;
      const at = firstOf(held, stops);
      if (at !== -1) {
        const text = held.slice(0, at);
        held = '';
        return { text, stopped: true };
      }
      const keep = longestBegin(held, stops);
      const text = held.slice(0, held.length - keep);
      held = held.slice(held.length - keep);
      return { text, stopped: false };
    },
    end() {
      const text = held;
      held = '';
      return text;
    },
  };
}

function firstOf(text: string, stops: readonly string[]): number {
  const found = stops.map((stop) => text.indexOf(stop)).filter((at) => at !== -1);
  return found.length === 0 ? -1 : Math.min(...found);
}

/** Length of the longest end of `text` that is the beginning of a stop string. */
function longestBegin(text: string, stops: readonly string[]): number {
  let longest = 0;
  for (const stop of stops) {
    for (let length = Math.min(stop.length - 1, text.length); length > longest; length -= 1) {
      if (text.endsWith(stop.slice(0, length))) {
        longest = length;
        break;
      }
    }
  }
  return longest;
}
