export const GLOSSARY: readonly { readonly term: string; readonly meaning: string }[];

export const SYNONYMS: readonly { readonly word: string; readonly use: readonly string[]; readonly in?: 'names' }[];
