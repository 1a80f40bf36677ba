/**
 * Remembers the last result for each key and computes it again only when an input has changed. Inputs are compared by
 * value, all of them and whole, so that no field can be forgotten; inputs that are the same objects as before, as
 * nearly all are, cost next to nothing.
 */
import { isSameValue } from '../schema/words/same-value.ts';

/** `compute` must be pure: the same inputs give the same output. */
export function createMemo<Key, Inputs extends readonly unknown[], Output>(compute: (...inputs: Inputs) => Output) {
  const remembered = new Map<Key, { inputs: readonly unknown[]; readonly output: Output }>();
  return {
    get(key: Key, ...inputs: Inputs): Output {
      const last = remembered.get(key);
      if (last !== undefined && hasSameInputs(last, inputs)) return last.output;
      const output = compute(...inputs);
      remembered.set(key, { inputs, output });
      return output;
    },
    /** Forgets every key that is not in `keys`. */
    keepOnly: (keys: Keys<Key>): void => forgetOthers(remembered, keys),
  };
}

/**
 * Whether something was made from inputs that mean the same. Where they are other objects, it keeps those: the next
 * inputs are most likely the same objects.
 */
function hasSameInputs(made: { inputs: readonly unknown[] }, inputs: readonly unknown[]): boolean {
  const before = made.inputs;
  if (before.length !== inputs.length) return false;
  let identical = true;
  for (let index = 0; index < inputs.length; index += 1) {
    if (before[index] === inputs[index]) continue;
    if (!isSameValue(before[index], inputs[index])) return false;
    identical = false;
  }
  if (!identical) made.inputs = inputs;
  return true;
}

type Keys<Key> = { has(key: Key): boolean; readonly size: number };

export function forgetOthers<Key>(remembered: Map<Key, unknown>, keys: Keys<Key>): void {
  if (remembered.size <= keys.size) return;
  for (const key of remembered.keys()) if (!keys.has(key)) remembered.delete(key);
}

/** Remembers a result for `ms` milliseconds. Errors are not remembered. */
export function memoizeFor<T>(ms: number, compute: () => T, now: () => number = () => performance.now()): () => T {
  let last: { readonly until: number; readonly value: T } | undefined;
  return () => {
    const at = now();
    // The time is read first, so that the result is at least as new as it says.
    if (last === undefined || at >= last.until) last = { until: at + ms, value: compute() };
    return last.value;
  };
}
