type Word =
  | string
  | {
      readonly word: string;
      readonly use?: readonly string[];
      readonly in?: 'names';
      readonly before?: string;
      readonly except?: readonly string[];
    };

export const GLOSSARY: readonly { readonly term: string; readonly meaning: string; readonly not?: readonly Word[] }[];

export const PLAIN_ENGLISH: readonly { readonly use: readonly string[]; readonly not: readonly Word[] }[];
