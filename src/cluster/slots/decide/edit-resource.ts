/** What an edit makes of a SlotSpec, and the patch that brings the server there. Pure. */
import type { KubeObject } from '../../client/ports.ts';
import { isTable } from '../../../schema/key-case.ts';
import type { SlotName } from '../../../schema/names.ts';
import { isSameValue } from '../../../schema/same-value.ts';
import type { StoredSlot } from '../../../schema/slot-editor.ts';

export function storedSlot(name: SlotName, object: KubeObject): StoredSlot {
  const spec = object['spec'];
  return { name, document: isTable(spec) ? spec : undefined, resourceVersion: versionOf(object), defaultsFilled: true };
}

/**
 * Changes with each change of the text, and only then: the server's own resource version changes with each status that is written too, and an edit
 * that took a minute would never get through.
 */
export function versionOf({ metadata }: KubeObject): string {
  const { uid = '', generation, resourceVersion = '' } = metadata;
  return generation === undefined ? resourceVersion : `${generation}-${uid.slice(0, 8)}`;
}

/** The merge patch (RFC 7396) that makes `after` of `before`. Undefined: they are the same already. A null in a table cannot be said. */
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
