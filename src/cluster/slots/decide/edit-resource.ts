/** Converts SlotSpecs to stored slots, edits to patches, and rejections by the server to problems. Pure. */
import type { KubeObject } from '../../client/ports.ts';
import { isTable } from '../../../schema/words/key-case.ts';
import type { SlotName } from '../../../schema/words/names.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { StoredSlot } from '../../../schema/slot/slot-editor.ts';
import type { SpecProblem } from '../../../schema/slot/slot-spec.ts';

export function storedSlot(name: SlotName, object: KubeObject): StoredSlot {
  const spec = object['spec'];
  return { name, document: isTable(spec) ? spec : undefined, resourceVersion: versionOf(object), defaultsFilled: true };
}

/** Changes with the spec only: one that changes with each published status would make every long edit conflict. */
export function versionOf({ metadata }: KubeObject): string {
  const { uid = '', generation, resourceVersion = '' } = metadata;
  return generation === undefined ? resourceVersion : `${generation}-${uid.slice(0, 8)}`;
}

/** The merge patch (RFC 7396) from `before` to `after`; undefined if they are the same. It cannot set a key to null. */
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

/** Keys that the server has dropped because its definition lacks them. It says nothing about them. */
export function findDropped(sent: unknown, stored: unknown, path = 'spec'): readonly string[] {
  if (sent === null || sent === undefined) return [];
  if (stored === undefined) return [path];
  return isTable(sent) && isTable(stored) ? Object.keys(sent).flatMap((key) => findDropped(sent[key], stored[key], `${path}.${key}`)) : [];
}

const FIELD = String.raw`<nil>|(?:spec|metadata|status)(?:\.[\w-]+|\[[^\]]*\])*`;
const FIRST_FIELD = new RegExp(`^(${FIELD}): `);
/** The beginning of the next field in a list: `, spec.priority: `. */
const BEFORE_NEXT_FIELD = new RegExp(`, (?=(?:${FIELD}): )`);

/** Accompanies other problems, and only reports that there may be more. */
const NOT_CHECKED = 'some validation rules were not checked because the object was invalid';

/** `SlotSpec.inference.svc.dev "img" is invalid: [spec.model.default: Required value, spec.priority: Invalid …]` */
export function parseRejection(message: string): readonly SpecProblem[] {
  const text = message.replace(/^.*? is invalid: /s, '');
  const list = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const problems = list.split(BEFORE_NEXT_FIELD).map(parseProblem);
  const specific = problems.filter((problem) => !problem.message.includes(NOT_CHECKED));
  return specific.length === 0 ? problems : specific;
}

function parseProblem(text: string): SpecProblem {
  const [prefix = '', field = '<nil>'] = FIRST_FIELD.exec(text) ?? [];
  return { path: pathOf(field), message: text.slice(prefix.length), style: 'camelCase' };
}

function pathOf(field: string): readonly (string | number)[] {
  if (field === '<nil>') return [];
  const parts = [...field.matchAll(/([\w-]+)|\[([^\]]*)\]/g)].map(([, name, key = '']) => name ?? (/^\d+$/.test(key) ? Number(key) : key));
  return parts[0] === 'spec' ? parts.slice(1) : parts;
}
