/** Whether two values mean the same, whatever the order of their keys; a key that is undefined counts as absent. For plain data: a `Map` equals only itself. Pure. */
import { isTable } from './key-case.ts';

export function isSameValue(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((value, index) => isSameValue(value, right[index]));
  }
  if (left instanceof Date && right instanceof Date) return left.toISOString() === right.toISOString();
  if (!isTable(left) || !isTable(right) || left instanceof Map || left instanceof Set) return false;
  for (const key of Object.keys(left)) if (!isSameValue(left[key], ownValue(right, key))) return false;
  for (const key of Object.keys(right)) if (!Object.hasOwn(left, key) && right[key] !== undefined) return false;
  return true;
}

/** Returns `before` if both mean the same, else `after`: what has not changed stays the same object. */
export function reuse<Value>(before: Value | undefined, after: Value): Value {
  return before !== undefined && isSameValue(before, after) ? before : after;
}

function ownValue(table: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
