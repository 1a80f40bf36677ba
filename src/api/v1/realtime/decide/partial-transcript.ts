/**
 * Which words of a sentence are sent while it is still spoken, and how often they are asked for. The pending sound is transcribed again and again; a word is sent once
 * two transcripts in a row agree on it and on everything before it, because the end of a transcript changes with what follows. Pure.
 */

export interface PartialFacts {
  /** Milliseconds of sound that is pending now. */
  readonly soundMs: number;
  /** Of it, when it was last asked for; 0 before. */
  readonly askedMs: number;
  /** How long the last answer took; 0 before. */
  readonly tookMs: number;
  /** Since the last answer. */
  readonly sinceMs: number;
}

/** Models need this much for the first words, and more often than this nobody reads. */
const EVERY_MS = 1000;
/** A session asks for at most a third of the time. What an answer takes includes waiting for other requests, so a busy engine is asked less. */
const PAUSE_FACTOR = 2;
/** The cost grows with the sound: beyond this, the words follow when the sound is committed. */
const LONGEST_MS = 30_000;

export function wantsPartial({ soundMs, askedMs, tookMs, sinceMs }: PartialFacts): boolean {
  return soundMs - askedMs >= EVERY_MS && soundMs <= LONGEST_MS && sinceMs >= tookMs * PAUSE_FACTOR;
}

/** A word with the space before it; in scripts without spaces, one character. */
const WORD =
  /\s*(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+)/gu;

/** Returns what follows `sent` of the words on which both transcripts agree; empty if there is nothing new. The last word of a transcript may be cut off. */
export function agreedDelta(sent: string, before: string, now: string): string {
  const old = wordsOf(before);
  const words = wordsOf(now);
  let agreed = 0;
  while (agreed < words.length - 1 && words[agreed] === old[agreed]) agreed += 1;
  return restAfter(sent, words.slice(0, agreed).join(''));
}

/** What follows `sent` in the final transcript; empty if that is another text, which the client gets as a whole in any case. */
export function restAfter(sent: string, text: string): string {
  return text.length > sent.length && text.startsWith(sent) ? text.slice(sent.length) : '';
}

const wordsOf = (text: string): readonly string[] => text.trim().match(WORD) ?? [];
