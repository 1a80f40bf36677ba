/** Finds the fewest changes that turn one document into another. Pure. */
import { isTable } from '../../../schema/words/key-case.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';

type Path = readonly string[];
type Table = Readonly<Record<string, unknown>>;

/** New keys of one table, which is present already. */
export interface Addition {
  readonly parent: Path;
  readonly entries: readonly (readonly [string, unknown])[];
}

export interface TomlChanges {
  /** Keys to remove, with everything below them. */
  readonly removals: readonly Path[];
  /** Keys whose present value is not a table and is to be replaced. */
  readonly replacements: readonly { readonly path: Path; readonly value: unknown }[];
  readonly additions: readonly Addition[];
}

/** Returns undefined if both documents mean the same. */
export function findChanges(present: Table, wanted: Table): TomlChanges | undefined {
  const removals: Path[] = [];
  const replacements: { path: Path; value: unknown }[] = [];
  const additions: Addition[] = [];
  const compare = (old: Table, next: Table, parent: Path): void => {
    const added = Object.entries(next).filter(([key]) => !Object.hasOwn(old, key));
    if (added.length > 0) additions.push({ parent, entries: added });
    for (const [key, value] of Object.entries(old)) {
      const path = [...parent, key];
      const other = next[key];
      if (Object.hasOwn(next, key) && isSameValue(value, other)) continue;
      if (isTable(value) && isTable(other)) compare(value, other, path);
      // The lines of a table can be anywhere in the file, so it is removed and its replacement is added afterwards.
      else if (isTable(value) || !Object.hasOwn(next, key)) removals.push(path);
      else replacements.push({ path, value: other });
    }
  };
  compare(present, wanted, []);
  return removals.length + replacements.length + additions.length === 0 ? undefined : { removals, replacements, additions };
}
