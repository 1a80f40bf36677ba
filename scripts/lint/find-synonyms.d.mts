export function findSynonyms(
  text: string,
  isName: (index: number) => boolean,
): readonly { readonly index: number; readonly length: number; readonly message: string }[];
