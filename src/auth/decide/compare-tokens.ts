/** What has changed between two versions of the tokens. Pure. */
import { isSameValue } from '../../schema/words/same-value.ts';
import type { Tokens } from './token-file-text.ts';

/** Ids. */
export interface StoreChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** With another label, scope or hash. */
  readonly edited: readonly string[];
}

/** Undefined if nothing has changed. */
export function compareTokens(before: Tokens, after: Tokens): StoreChange | undefined {
  const added = [...after.keys()].filter((id) => !before.has(id));
  const removed = [...before.keys()].filter((id) => !after.has(id));
  const edited = [...after].filter(([id, row]) => before.has(id) && !isSameValue(row, before.get(id))).map(([id]) => id);
  return added.length + removed.length + edited.length > 0 ? { added, removed, edited } : undefined;
}
