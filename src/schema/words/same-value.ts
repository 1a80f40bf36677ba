/** Deep equality regardless of key order; an undefined key counts as absent. Plain data only: no `Map`. Pure. */
import { isTable } from './key-case.ts';

export function isSameValue(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((value, index) => value === right[index] || isSameValue(value, right[index]));
  }
  if (left instanceof Date && right instanceof Date) return left.toISOString() === right.toISOString();
  if (!isTable(left) || !isTable(right) || left instanceof Map || left instanceof Set) return false;
  return isSameTable(left, right);
}

/** Returns `before` if both mean the same, else `after`: what has not changed stays the same object. */
export function reuse<Value>(before: Value | undefined, after: Value): Value {
  return before !== undefined && isSameValue(before, after) ? before : after;
}

/** Compares two tables without one key. */
export function isSameExcept<Key extends string>(
  left: Readonly<Record<Key, unknown>>,
  right: Readonly<Record<Key, unknown>>,
  except: Key,
): boolean {
  return left === right || isSameTable(left, right, except);
}

/** Compares without allocating anything, since the loop compares thousands of tables in each pass. */
function isSameTable(left: Readonly<Record<string, unknown>>, right: Readonly<Record<string, unknown>>, except?: string): boolean {
  let unmatched = 0;
  for (const key in left) {
    const value = left[key];
    if (value === undefined || key === except) continue;
    // JSON may have a key `__proto__`, which every object without one inherits.
    if (value !== right[key] && !(Object.hasOwn(right, key) && isSameValue(value, right[key]))) return false;
    unmatched -= 1;
  }
  for (const key in right) if (right[key] !== undefined && key !== except) unmatched += 1;
  return unmatched === 0;
}
