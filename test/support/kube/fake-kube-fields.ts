/**
 * Ownership of the fields of an object, in the format of `managedFields`: trees of `f:field` and `k:{"name":"x"}`. The part of server-side apply that
 * the fake API server needs: fields of other managers stay, own fields that are no longer applied are removed. Pure.
 */
import { isDeepStrictEqual } from 'node:util';

export interface FieldTree {
  [key: string]: FieldTree;
}
export type Fields = Readonly<Record<string, unknown>>;

/** Lists whose items are merged by key. All others are replaced as a whole. */
const LIST_KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: ['name'],
  initContainers: ['name'],
  env: ['name'],
  volumes: ['name'],
  imagePullSecrets: ['name'],
  volumeMounts: ['mountPath'],
  conditions: ['type'],
  ownerReferences: ['uid'],
};

export function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the key of a list item, or undefined if the list is replaced as a whole. */
function itemKey(field: string, item: unknown): string | undefined {
  if (!isFields(item)) return undefined;
  if (field === 'ports') {
    const port = 'containerPort' in item ? 'containerPort' : 'port';
    return `k:${JSON.stringify({ [port]: item[port], protocol: item['protocol'] ?? 'TCP' })}`;
  }
  const keys = LIST_KEYS[field];
  if (keys === undefined || keys.some((key) => item[key] === undefined)) return undefined;
  return `k:${JSON.stringify(Object.fromEntries(keys.map((key) => [key, item[key]])))}`;
}

/** Returns the items by key, or undefined if the value is not a list that is merged by key. */
function keyed(field: string, value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (!Array.isArray(value)) return undefined;
  const items = new Map<string, unknown>();
  for (const item of value) {
    const key = itemKey(field, item);
    if (key === undefined) return undefined;
    items.set(key, item);
  }
  return items.size === 0 ? undefined : items;
}

/** Returns all fields that a value sets. */
export function fieldsOf(value: unknown, field = ''): FieldTree {
  if (isFields(value)) return Object.fromEntries(Object.entries(value).map(([key, below]) => [`f:${key}`, fieldsOf(below, key)]));
  const items = keyed(field, value);
  if (items === undefined) return {};
  return Object.fromEntries([...items].map(([key, item]) => [key, { '.': {}, ...fieldsOf(item) }]));
}

/** Returns the fields that are new or have changed. */
export function changedFields(before: unknown, after: unknown, field = ''): FieldTree {
  if (isFields(before) && isFields(after)) {
    const changed = Object.entries(after).flatMap(([key, value]): [string, FieldTree][] => {
      if (isDeepStrictEqual(before[key], value)) return [];
      return [[`f:${key}`, key in before ? changedFields(before[key], value, key) : fieldsOf(value, key)]];
    });
    return Object.fromEntries(changed);
  }
  const [old, now] = [keyed(field, before), keyed(field, after)];
  if (old === undefined || now === undefined) return fieldsOf(after, field);
  const changed = [...now].flatMap(([key, item]): [string, FieldTree][] => {
    if (isDeepStrictEqual(old.get(key), item)) return [];
    return [[key, old.has(key) ? changedFields(old.get(key), item) : { '.': {}, ...fieldsOf(item) }]];
  });
  return Object.fromEntries(changed);
}

export function union(left: FieldTree, right: FieldTree): FieldTree {
  const all: FieldTree = { ...left };
  for (const [key, below] of Object.entries(right)) all[key] = union(all[key] ?? {}, below);
  return all;
}

/** Returns the fields of the first tree that the second one does not contain. */
export function subtract(left: FieldTree, right: FieldTree): FieldTree {
  const rest: FieldTree = {};
  for (const [key, below] of Object.entries(left)) {
    const other = right[key];
    if (other === undefined) rest[key] = below;
    else {
      const deeper = subtract(below, other);
      if (Object.keys(deeper).length > 0) rest[key] = deeper;
    }
  }
  return rest;
}

/** Returns the fields of the tree that the value still contains. */
export function existing(tree: FieldTree, value: unknown, field = ''): FieldTree {
  const rest: FieldTree = {};
  const items = keyed(field, value);
  for (const [key, below] of Object.entries(tree)) {
    if (key === '.') rest[key] = below;
    else if (key.startsWith('f:')) {
      const name = key.slice(2);
      if (isFields(value) && name in value) rest[key] = existing(below, value[name], name);
    } else if (items?.has(key) === true) rest[key] = existing(below, items.get(key));
  }
  return rest;
}

/** Merges the applied value into the live one: maps and keyed lists are merged, everything else is replaced. */
export function overlay(live: unknown, applied: unknown, field = ''): unknown {
  if (isFields(live) && isFields(applied)) {
    const merged: Record<string, unknown> = { ...live };
    for (const [key, value] of Object.entries(applied)) merged[key] = overlay(live[key], value, key);
    return merged;
  }
  const [old, now] = [keyed(field, live), keyed(field, applied)];
  if (old === undefined || now === undefined) return applied;
  const merged = new Map(old);
  for (const [key, item] of now) merged.set(key, overlay(old.get(key), item));
  return [...merged.values()];
}

/** Returns the value without the fields of the tree, and without what becomes empty. */
export function without(value: unknown, tree: FieldTree, field = ''): unknown {
  if (isFields(value)) {
    const rest: Record<string, unknown> = {};
    for (const [key, below] of Object.entries(value)) {
      const gone = tree[`f:${key}`];
      const left = gone === undefined ? below : without(below, gone, key);
      if (left !== undefined) rest[key] = left;
    }
    return Object.keys(rest).length === 0 ? undefined : rest;
  }
  const items = keyed(field, value);
  if (items === undefined) return undefined;
  const left = [...items].flatMap(([key, item]) => {
    const gone = tree[key];
    if (gone === undefined) return [item];
    return '.' in gone ? [] : [without(item, gone) ?? {}];
  });
  return left.length === 0 ? undefined : left;
}

/** JSON merge patch, RFC 7396. */
export function mergePatched(live: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const merged: Record<string, unknown> = isFields(live) ? { ...live } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergePatched(merged[key], value);
  }
  return merged;
}
