/**
 * Edits as JSON merge patches (RFC 7396) and as lists of changes. Sending a patch keeps the comments in the slot's
 * file. Pure.
 */

export type Table = Readonly<Record<string, unknown>>;

export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the patch that turns `from` into `to`; empty if they are equal. */
export function diffTables(from: Table, to: Table): Table {
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [before, after] = [from[key], to[key]];
    if (after === undefined) {
      if (before !== undefined) patch[key] = null;
    } else if (isTable(before) && isTable(after)) {
      const inner = diffTables(before, after);
      if (Object.keys(inner).length > 0) patch[key] = inner;
    } else if (!isSame(before, after)) patch[key] = after;
  }
  return patch;
}

export function applyPatch(target: unknown, patch: Table): Table {
  const result: Record<string, unknown> = isTable(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = isTable(value) ? applyPatch(result[key], value) : value;
  }
  return result;
}

export interface ChangedKey {
  /** Dotted: `model.default`. */
  readonly key: string;
  /** JSON text; undefined if the key was, or is, absent. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

export function listChanges(from: Table, to: Table, prefix = ''): readonly ChangedKey[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((name): readonly ChangedKey[] => {
    const key = prefix + name;
    const [before, after] = [from[name], to[name]];
    if (isSame(before, after)) return [];
    if ((isTable(before) || before === undefined) && (isTable(after) || after === undefined))
      return listChanges(before ?? {}, after ?? {}, `${key}.`);
    return [{ key, before: text(before), after: text(after) }];
  });
}

function text(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

function isSame(one: unknown, other: unknown): boolean {
  if (isTable(one) && isTable(other)) {
    const keys = Object.keys(one);
    return keys.length === Object.keys(other).length && keys.every((key) => key in other && isSame(one[key], other[key]));
  }
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
