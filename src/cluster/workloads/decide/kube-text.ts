/** Shortens texts of the cluster for conditions and Events. Pure. */

/** What a condition's message should hold at most of a foreign text. */
const LONGEST_CAUSE = 400;

export const truncate = (text: string, most = LONGEST_CAUSE): string => (text.length > most ? `${text.slice(0, most)}…` : text);
