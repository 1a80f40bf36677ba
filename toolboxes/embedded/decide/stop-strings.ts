/** Finds stop strings in a text that arrives in pieces. Holds back only what may become a stop string. Pure except for its own state. */

export interface StopStrings {
  /** Returns the text that may be sent now, and whether a stop string was found, after which nothing may be sent. */
  push(piece: string): { readonly text: string; readonly stopped: boolean };
  /** Returns the text that was held back, if the text ends without a stop string. */
  end(): string;
}

export function createStopStrings(stops: readonly string[]): StopStrings {
  let held = '';
  return {
    push(piece) {
      held += piece;
      const at = firstIndexOf(held, stops);
      if (at !== -1) {
        const text = held.slice(0, at);
        held = '';
        return { text, stopped: true };
      }
      const keep = longestPrefixAtEnd(held, stops);
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

function firstIndexOf(text: string, stops: readonly string[]): number {
  const found = stops.map((stop) => text.indexOf(stop)).filter((at) => at !== -1);
  return found.length === 0 ? -1 : Math.min(...found);
}

/** Returns the length of the longest suffix of `text` that is a prefix of a stop string. */
function longestPrefixAtEnd(text: string, stops: readonly string[]): number {
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
