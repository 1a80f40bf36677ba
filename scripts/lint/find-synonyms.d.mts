export interface Synonym {
  readonly word: string;
  /** What to write instead. */
  readonly use: readonly string[];
  readonly pattern: RegExp;
}

export function synonymsFor(path: string): readonly Synonym[];

export function findSynonyms(
  text: string,
  synonyms: readonly Synonym[],
  isName: (index: number) => boolean,
): readonly { readonly index: number; readonly length: number; readonly message: string }[];
