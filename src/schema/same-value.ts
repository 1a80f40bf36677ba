/** Compares two documents by value. The order of keys does not matter, and an undefined key counts as absent. Pure. */
import { isTable } from './key-case.ts';

export function isSameValue(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((value, index) => isSameValue(value, right[index]));
  }
  if (left instanceof Date && right instanceof Date) return left.toISOString() === right.toISOString();
  if (!isTable(left) || !isTable(right)) return false;
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...keys].every((key) => isSameValue(ownValue(left, key), ownValue(right, key)));
}

function ownValue(table: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
