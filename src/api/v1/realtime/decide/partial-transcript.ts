/**
 * Decides which words are sent before an utterance ends, and how often they are requested. The pending sound is
 * transcribed repeatedly; a word is sent once two transcripts in a row agree on it and everything before it. Pure.
 */

export interface PartialFacts {
  readonly soundMs: number;
  /** Pending sound at the last request; 0 before. */
  readonly askedMs: number;
  /** Duration of the last request; 0 before. */
  readonly tookMs: number;
  /** Time since the last answer. */
  readonly sinceMs: number;
}

/** Models need this much for the first words, and more often than this nobody reads. */
const EVERY_MS = 1000;
/** A session asks for at most a third of the time. Durations include queueing, so a busy engine is asked less. */
const PAUSE_FACTOR = 2;
/** The cost grows with the sound: beyond this, the words follow when the sound is committed. */
const LONGEST_MS = 30_000;

export function wantsPartial({ soundMs, askedMs, tookMs, sinceMs }: PartialFacts): boolean {
  return soundMs - askedMs >= EVERY_MS && soundMs <= LONGEST_MS && sinceMs >= tookMs * PAUSE_FACTOR;
}

/** A word with the space before it; in scripts without spaces, one character. */
const WORD =
  /\s*(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+)/gu;

/** The agreed words after `sent`; empty if there are none. The last word of a transcript may be cut off. */
export function agreedDelta(sent: string, before: string, now: string): string {
  const old = wordsOf(before);
  const words = wordsOf(now);
  let agreed = 0;
  while (agreed < words.length - 1 && words[agreed] === old[agreed]) agreed += 1;
  return restAfter(sent, words.slice(0, agreed).join(''));
}

/** The final transcript after `sent`; empty if it begins differently, since the client gets all of it anyway. */
export function restAfter(sent: string, text: string): string {
  return text.length > sent.length && text.startsWith(sent) ? text.slice(sent.length) : '';
}

const wordsOf = (text: string): readonly string[] => text.trim().match(WORD) ?? [];
