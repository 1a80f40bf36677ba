/** Converts SlotSpecs to stored slots, and edits to patches. Pure. */
import type { KubeObject } from '../../client/ports.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { StoredSlot } from '../../../schema/slot/slot-editor.ts';

export function storedSlot(name: SlotName, object: KubeObject): StoredSlot {
  const spec = object['spec'];
  return { name, document: isTable(spec) ? spec : undefined, resourceVersion: versionOf(object), defaultsFilled: true };
}

/**
 * Changes with each change of the spec and only then. The server's own resource version also changes with each published status, so that an edit that takes
 * a minute would always conflict.
 */
export function versionOf({ metadata }: KubeObject): string {
  const { uid = '', generation, resourceVersion = '' } = metadata;
  return generation === undefined ? resourceVersion : `${generation}-${uid.slice(0, 8)}`;
}

/** Returns the merge patch (RFC 7396) from `before` to `after`; undefined if they are the same. Such a patch cannot set a key to null. */
export function patchBetween(before: unknown, after: unknown): unknown {
  if (!isTable(before) || !isTable(after)) return isSameValue(before, after) ? undefined : after;
  const changed = new Map<string, unknown>();
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) changed.set(key, null);
  for (const [key, value] of Object.entries(after)) {
    const inner = Object.hasOwn(before, key) ? patchBetween(before[key], value) : value;
    if (inner !== undefined) changed.set(key, inner);
  }
  return changed.size === 0 ? undefined : Object.fromEntries(changed);
}
