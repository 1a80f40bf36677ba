/** What must change to make one document of another: the fewest keys are touched. */

import { isTable } from '../../../schema/key-case.ts';
import { isSameValue } from '../../../schema/same-value.ts';

type Path = readonly string[];

export interface TomlChanges {
  /** Keys to take out, with everything below them. */
  readonly removals: readonly Path[];
  /** Keys whose value is no table and becomes another one. */
  readonly replacements: readonly { readonly path: Path; readonly value: unknown }[];
  /** New keys, by the table they belong to, which is there already. */
  readonly additions: readonly { readonly parent: Path; readonly entries: readonly (readonly [string, unknown])[] }[];
}

/** Undefined: both mean the same. Pure. */
export function findChanges(present: unknown, wanted: unknown): TomlChanges | undefined {
  const removals: Path[] = [];
  const replacements: { path: Path; value: unknown }[] = [];
  const additions: { parent: Path; entries: (readonly [string, unknown])[] }[] = [];
  const compare = (old: unknown, next: unknown, path: Path): void => {
    if (isSameValue(old, next)) return;
    if (isTable(old) && isTable(next)) {
      for (const key of Object.keys(old)) if (!Object.hasOwn(next, key)) removals.push([...path, key]);
      const added = Object.entries(next).filter(([key]) => !Object.hasOwn(old, key));
      if (added.length > 0) additions.push({ parent: path, entries: added });
      for (const [key, value] of Object.entries(next)) if (Object.hasOwn(old, key)) compare(old[key], value, [...path, key]);
      return;
    }
    // A table can be spread over the file: it goes as a whole, and what replaces it is added afterwards.
    if (isTable(old)) removals.push(path);
    else replacements.push({ path, value: next });
  };
  compare(present, wanted, []);
  return removals.length + replacements.length + additions.length === 0 ? undefined : { removals, replacements, additions };
}
