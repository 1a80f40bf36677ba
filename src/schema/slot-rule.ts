/** One rule about a table in a slot's document, in two forms. */

export type Table = Readonly<Record<string, unknown>>;

export interface SlotRule {
  /** Path of the table that the rule applies to; `*` stands for each entry of a list, and an empty path for the slot itself. */
  readonly at: readonly string[];
  /** Key of that table that the problem is reported for; undefined: the table itself. */
  readonly key?: string;
  /** Keys are written as `writeKeys` expects them. */
  readonly message: string;
  readonly holds: (table: Table) => boolean;
  /** The same check as a CEL expression about `self`, the table. */
  readonly cel: string;
}

export const has = (table: Table, ...keys: readonly string[]): boolean => keys.some((key) => table[key] !== undefined);
