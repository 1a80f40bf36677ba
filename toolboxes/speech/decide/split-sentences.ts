/** Prepares a text to be spoken: takes mark-up away and splits it into sentences, so that the first one can be heard early. Pure. */

/** Longer sentences are split at a comma or a space: a model processes a limited number of sounds at once. */
const MOST_CHARACTERS = 280;
/** ICU ends a sentence after these. */
const ABBREVIATION = /(?:^|[\s(])(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No|Nr|Fig|approx|e\.g|i\.e|z\.B|d\.h|bzw|ca|M|Mme|Sra?|Dra?|[A-Z])\.\s*$/;
const SPEAKABLE = /[\p{L}\p{N}]/u;

export const isSpeakable = (text: string): boolean => SPEAKABLE.test(text);

/** Takes away what is not read aloud: Markdown, HTML tags, addresses of links, emoji and control characters. */
export function plainText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/```[^\n]*\n?/g, ' ')
    .replaceAll(/!?\[([^\]\n]{0,500})\]\([^)\n]{0,2000}\)/g, '$1')
    .replaceAll(/<\/?[a-zA-Z][^<>\n]{0,500}>/g, ' ')
    .replaceAll(/^[ \t]{0,3}(?:#{1,6}|>|[-*+])[ \t]+/gm, '')
    .replaceAll(/(\*\*|__|~~|`)(?=\S)([^\n]{1,1000}?)(?<=\S)\1/g, '$2')
    .replaceAll(/(?<![\p{L}\p{N}*_])([*_])(?=[^\s*_])([^*_\n]{1,1000})(?<=\S)\1(?![\p{L}\p{N}])/gu, '$2')
    .replaceAll(/\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\p{Variation_Selector}|\u200d/gu, '')
    .replaceAll(/[\p{Cc}&&[^\n]]/gv, ' ')
    .replaceAll(/[^\S\n]+/g, ' ')
    .trim();
}

/** Sentences with at least one letter or digit, in their order. */
export function splitSentences(text: string): readonly string[] {
  const sentences: string[] = [];
  let begun = '';
  for (const { segment } of new Intl.Segmenter('en', { granularity: 'sentence' }).segment(text)) {
    begun += segment;
    if (ABBREVIATION.test(begun) || !isSpeakable(begun)) continue;
    sentences.push(...splitLong(begun.replaceAll(/\s+/g, ' ').trim()));
    begun = '';
  }
  if (isSpeakable(begun)) sentences.push(...splitLong(begun.replaceAll(/\s+/g, ' ').trim()));
  return sentences;
}

function splitLong(sentence: string): readonly string[] {
  const parts: string[] = [];
  let rest = sentence;
  while (rest.length > MOST_CHARACTERS) {
    const at = cutPlace(rest.slice(0, MOST_CHARACTERS));
    parts.push(rest.slice(0, at).trim());
    rest = rest.slice(at).trim();
  }
  return [...parts, rest].filter(isSpeakable);
}

/** Two parts of a sentence, cut behind the comma or else the space that is nearest to its middle. One part if there is no such place. */
export function splitInTwo(sentence: string): readonly string[] {
  for (const sign of [/[,;:،、，；：]/gu, /\s/gu]) {
    const places = [...sentence.matchAll(sign)].map(({ index }) => index + 1);
    const middle = sentence.length / 2;
    const [at] = places.toSorted((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
    const parts = at === undefined ? [] : [sentence.slice(0, at).trim(), sentence.slice(at).trim()];
    if (parts.length === 2 && parts.every(isSpeakable)) return parts;
  }
  return [sentence];
}

/** After the last comma, else after the last space, else anywhere, but not inside of a character. */
function cutPlace(text: string): number {
  const least = Math.floor(MOST_CHARACTERS / 3);
  for (const sign of [/[,;:،、，；：]/gu, /\s/gu]) {
    const last = [...text.matchAll(sign)].at(-1);
    if (last !== undefined && last.index >= least) return last.index + 1;
  }
  const code = text.charCodeAt(text.length - 1);
  return code >= 0xd800 && code <= 0xdbff ? text.length - 1 : text.length;
}
