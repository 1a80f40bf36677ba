/**
 * Remembers the last result for each key and computes it again only when an input has changed. Inputs are compared by value, all of them and
 * whole, so that no field can be forgotten; inputs that are the same objects as before, as nearly all are, cost nothing to compare.
 */
import { isSameValue } from '../schema/same-value.ts';

export interface Memo<Key, Inputs extends readonly unknown[], Output> {
  get(key: Key, ...inputs: Inputs): Output;
  /** Forgets every key that is not in `keys`. */
  keepOnly(keys: { has(key: Key): boolean; readonly size: number }): void;
}

/** `compute` must be pure: the same inputs give the same output. */
export function createMemo<Key, Inputs extends readonly unknown[], Output>(
  compute: (...inputs: Inputs) => Output,
): Memo<Key, Inputs, Output> {
  const remembered = new Map<Key, { readonly inputs: Inputs; readonly output: Output }>();
  return {
    get(key, ...inputs) {
      const last = remembered.get(key);
      if (last !== undefined && isSameValue(last.inputs, inputs)) return last.output;
      const output = compute(...inputs);
      remembered.set(key, { inputs, output });
      return output;
    },
    keepOnly(keys) {
      if (remembered.size <= keys.size) return;
      for (const key of remembered.keys()) if (!keys.has(key)) remembered.delete(key);
    },
  };
}
