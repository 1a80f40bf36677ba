/** Applies a JSON merge patch (RFC 7396): objects are merged, `null` removes a key, any other value replaces the old one. */
import { isTable } from './words/key-case.ts';

export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isTable(patch)) return patch;
  const merged = new Map(isTable(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else if (value !== undefined) merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}
